"""Plays stories on the page in a real browser, and tells how each went.

usage: main.py SAFEPOINT CHROMIUM [--shots DIR] [--story NAME]     (scripts/test-page starts it)
"""

import argparse
import sys
import time
import traceback
from pathlib import Path

from playwright.sync_api import sync_playwright

import shots
import stories
from room import Room


def arguments():
    parser = argparse.ArgumentParser(prog="test-page")
    parser.add_argument("safepoint")
    parser.add_argument("chromium")
    parser.add_argument("--shots", metavar="DIR")
    parser.add_argument("--story", action="append", metavar="NAME")
    return parser.parse_args()


def play(given, browser, story):
    """One story, in a room and a browser profile of its own."""
    name = story.__name__
    print(f"{name:<28}", end=" ", flush=True)
    began = time.monotonic()
    room = Room(given.safepoint)
    context = browser.new_context(base_url=room.address, reduced_motion="reduce")
    context.set_default_timeout(15_000)
    page = context.new_page()
    told = []
    page.on("console", lambda message: message.type == "error" and told.append(message.text))
    page.on("pageerror", lambda error: told.append(str(error)))
    try:
        story(room, page)
        # What the browser complains about (a refused script, say) is a failure too.
        bad = [text for text in told if "status of 40" not in text and "status of 409" not in text]
        assert not bad, f"the browser complained: {bad}"
        print(f"ok      {time.monotonic() - began:5.1f} s", flush=True)
        return True
    except Exception:
        print("FAILED", flush=True)
        traceback.print_exc()
        page.screenshot(path=f"/tmp/page-{name}.png")
        print(f"the last page is in /tmp/page-{name}.png", told)
        return False
    finally:
        context.close()
        room.close()


def main():
    given = arguments()
    chosen = [story for story in stories.STORIES if not given.story or story.__name__ in given.story]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=given.chromium, args=["--no-sandbox"])
        print(f"chromium {browser.version}")
        if given.shots:
            room = Room(given.safepoint)
            try:
                shots.take(room, browser, Path(given.shots))
            finally:
                room.close()
            return 0
        played = [play(given, browser, story) for story in chosen]
        browser.close()
    print(f"{sum(played)} of {len(played)} stories hold")
    return 0 if all(played) and played else 1


sys.exit(main())
