"""Hands the cases to workers, each in a world of its own, and says what came of them."""

import argparse
import json
import os
import queue
import subprocess
import sys
import threading

import carriers
import cases
import namespace
import worker

# So many letters of a line are shown.
SHOWN = 160


def main(binary):
    arguments = read_arguments(binary)
    if arguments.worker:
        return worker.work(arguments.binary)
    chosen = [one for one in cases.ALL if not arguments.only or any(it in one.group for it in arguments.only)]
    if arguments.list:
        for group in sorted({one.group for one in chosen}):
            print(f"{group}: {sum(one.group == group for one in chosen)}")
        print(f"{len(chosen)} cases")
        return 0
    if not os.access(arguments.binary, os.X_OK):
        sys.exit(f"error: no binary at {arguments.binary}: build it, or name one in SAFEPOINT")
    if not chosen:
        sys.exit("error: no case of this class")
    runs = ["control", *(arguments.carrier or carriers.NAMES)]
    return report(spread(chosen, runs, arguments), arguments.verbose)


def read_arguments(binary):
    parser = argparse.ArgumentParser(prog="effects-campaign")
    parser.add_argument("--only", action="append", metavar="CLASS", help="only classes whose name contains this")
    parser.add_argument("--carrier", action="append", choices=carriers.NAMES, help="only this carrier")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--list", action="store_true", help="name the classes and run nothing")
    parser.add_argument("--verbose", action="store_true", help="one line for every run")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    arguments.binary = os.path.abspath(os.environ.get("SAFEPOINT", binary))
    return arguments


def spread(chosen, runs, arguments):
    """What each run of each case came to, in the order of the cases."""
    waiting, found, lock = queue.Queue(), {}, threading.Lock()
    for one in chosen:
        waiting.put(one.number)

    def serve():
        process = subprocess.Popen(
            namespace.command(["--worker"]), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env={**os.environ, "SAFEPOINT": arguments.binary},
        )
        while True:
            try:
                number = waiting.get_nowait()
            except queue.Empty:
                break
            process.stdin.write(json.dumps({"number": number, "runs": runs}) + "\n")
            process.stdin.flush()
            answer = process.stdout.readline()
            with lock:
                if not answer:
                    found[number] = [{"run": "worker", "verdict": "broken", "why": ["the worker ended"]}]
                    return
                found[number] = json.loads(answer)
        process.stdin.close()
        process.wait()

    threads = [threading.Thread(target=serve) for _ in range(max(1, min(arguments.workers, len(chosen))))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    none = [{"run": "worker", "verdict": "broken", "why": ["no worker was left"]}]
    return [(one, found.get(one.number, none)) for one in chosen]


def safe(text):
    """A line of other people's letters, for a terminal."""
    shown = "".join(it if it.isprintable() else {"\n": "⏎", "\t": " "}.get(it, "?") for it in text)
    return shown if len(shown) <= SHOWN else shown[:SHOWN] + "…"


def report(outcomes, verbose):
    passed = failed = 0
    counted, skipped = {}, {}
    for one, runs in outcomes:
        for run in runs:
            verdict = run["verdict"]
            counted[run["run"], verdict] = counted.get((run["run"], verdict), 0) + 1
            if verdict == "skipped":
                skipped.setdefault(run["why"][0], []).append(safe(one.line))
                continue
            is_good = verdict in ("held", "refused", "effective")
            passed, failed = passed + is_good, failed + (not is_good)
            if not is_good or verbose:
                why = "; ".join(run.get("why", []))
                print(f"{'ok' if is_good else 'FAILED'} {one.group} [{run['run']}] {verdict}: `{safe(one.line)}` {safe(why)}")
    for why, lines in sorted(skipped.items()):
        print(f"skipped, {why}: {len(lines)}")
        if verbose:
            print("".join(f"    `{line}`\n" for line in lines), end="")
    for run in ["control", *carriers.NAMES]:
        parts = [f"{count} {verdict}" for (of, verdict), count in sorted(counted.items()) if of == run]
        if parts:
            print(f"{run}: {', '.join(parts)}")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0
