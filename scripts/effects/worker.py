"""One worker: runs cases that it is told of, one after the other, in its own world."""

import json
import os
import platform
import shutil
import sys
import time
import traceback

import carriers
import cases
import namespace
import watch
from room import Room

# A server hears of a datagram a moment after it was sent.
SETTLE = 0.02


def work(binary):
    namespace.enclose(binary)
    room = Room()
    room.renew()
    switch = carriers.has_switch()
    for name in carriers.NAMES:
        room.renew()
        carriers.check(name)
    namespace.end_all()
    for line in sys.stdin:
        asked = json.loads(line)
        answer = [run(room, cases.ALL[asked["number"]], name, switch) for name in asked["runs"]]
        print(json.dumps(answer), flush=True)
    return 0


def run(room, case, name, switch):
    """One run of a case: what it came to, and why."""
    missing = [it for it in case.needs if not shutil.which(it, path=carriers.ENVIRONMENT["PATH"])]
    if case.root and not namespace.is_root():
        missing.append("the root user")
    # Numbers of calls differ from machine to machine.
    if platform.machine() != "x86_64" and any(it in case.line + case.before for it in ("syscall(", "x86-64")):
        missing.append("this kind of machine")
    if missing:
        return {"run": name, "verdict": "skipped", "why": [f"this needs {missing[0]}"]}
    if name == "blind" and not switch:
        return {"run": name, "verdict": "skipped", "why": ["the binary has no switch: it is built without fault points"]}
    if name == "blind" and case.words:
        return {"run": name, "verdict": "skipped", "why": [f"held by words alone: {case.words}"]}
    began = time.monotonic()
    try:
        answer = {"run": name, **look_for_effect(room, case, name)}
    except Exception:  # noqa: BLE001 - one case says nothing of the next
        answer = {"run": name, "verdict": "broken", "why": traceback.format_exc().strip().splitlines()[-3:]}
    answer["took"] = round(time.monotonic() - began, 2)
    return answer


def look_for_effect(room, case, name):
    namespace.end_all()
    room.renew()
    watched = watch.Watch(case, room)
    try:
        ran = carriers.carry(name, case.line, case.number)
        if case.after and (name == "control" or not (ran.held or carriers.is_next_held(name))):
            carriers.carry("control", case.after, 0)
        time.sleep(SETTLE if ran.held else max(SETTLE, case.wait))
        found = watched.effects(ran.output, name == "control")
    finally:
        reached = watched.close()
        namespace.end_all()
    found += reached
    shown = ran.output.strip().splitlines()[-4:] if os.environ.get("EFFECTS_OUTPUT") else []
    if name == "control":
        is_effective = any(kind == case.sees for kind, _ in found)
        tail = ran.output.strip().splitlines()[-2:]
        return {"verdict": "effective"} if is_effective else {"verdict": "ineffective", "why": ["without Safepoint it has no effect", *tail]}
    if ran.held and "could not judge" in ran.output:
        return {"verdict": "broken", "why": [ran.output]}
    if found:
        return {"verdict": "effect", "why": ["held, and yet" if ran.held else "unasked", *(it for _, it in found[:4]), *shown]}
    return {"verdict": "held" if ran.held else "refused", "why": shown}
