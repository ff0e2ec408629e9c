"""The steps each peer goes through, as generators that pause after each timed step.

Pausing lets the caller give every peer its turn at the same step before anyone
goes on to the next one, so that a noisy minute hits all of them alike.
"""

import contextlib
import os
import shutil
import subprocess
import time
from collections import deque

import changes
import filesystem
import measure

WATCHER_READY_SECONDS = 120


class Bench:
    """Everything a step needs: where to work, the launcher, and the samples so far."""

    def __init__(self, place, launcher, repeats):
        self.place = place
        self.launcher = launcher
        self.repeats = repeats
        self.samples = []
        self.run = 0

    def enter(self, kind, tree):
        """A fresh copy of the tree and an empty store for one peer."""
        place = os.path.join(self.place, f"{tree.name}-{kind.name.replace(' ', '')}")
        shutil.rmtree(place, ignore_errors=True)
        os.makedirs(place)
        work = os.path.join(place, "tree")
        subprocess.run(["cp", "-a", tree.path, work], check=True)
        return kind(work, os.path.join(place, "store"))

    def leave(self, peer):
        shutil.rmtree(os.path.dirname(peer.tree), ignore_errors=True)

    def execute(self, peer, commands):
        return self.launcher.run(commands, peer.tree, peer.environment())

    def timed(self, peer, commands):
        """Warm cache, clean disk queue, then the commands."""
        changes.read_all(peer.tree)
        filesystem.settle(self.place)
        return self.execute(peer, commands)

    def keep(self, tree, peer, step, cost, store=None, growth=None, fault=""):
        self.samples.append(
            measure.Sample(
                tree=tree.name,
                peer=peer.name,
                step=step,
                run=self.run,
                cpu=cost.cpu,
                user=cost.user,
                system=cost.system,
                wall=cost.wall,
                peak=cost.peak,
                store=store,
                growth=growth,
                fault="; ".join(filter(None, (cost.fault, fault))),
            )
        )

    def checkpoint(self, tree, peer, step):
        before = changes.allocated(*peer.kept())
        cost = self.timed(peer, peer.checkpoint())
        peer.learn(cost.output)
        store = changes.allocated(*peer.kept())
        self.keep(tree, peer, step, cost, store, store - before)
        peer.tidy()

    def roll_back(self, tree, peer, step, expected):
        cost = self.timed(peer, peer.roll_back())
        wrong = changes.difference(expected, changes.listing(peer.tree, peer.own_names), peer.exact_times)
        self.keep(tree, peer, step, cost, fault=f"not as before: {wrong}" if wrong else "")
        if wrong:
            self.mend(peer, expected)

    def mend(self, peer, expected):
        """After a wrong roll back the strays are removed, so that the next step is judged by itself."""
        for path in sorted(changes.listing(peer.tree, peer.own_names).keys() - expected.keys(), reverse=True):
            full = os.path.join(peer.tree, path)
            with contextlib.suppress(OSError):
                os.rmdir(full) if os.path.isdir(full) and not os.path.islink(full) else os.unlink(full)


def prepared(bench, kind, tree):
    peer = bench.enter(kind, tree)
    cost = bench.execute(peer, peer.prepare())
    if cost.fault:
        raise RuntimeError(f"{peer.name} could not be made ready: {cost.fault}")
    return peer


def source_session(bench, kind, tree):
    """All steps for a tree of source. Short ones are repeated; their mean is used."""
    peer = prepared(bench, kind, tree)
    yield
    bench.checkpoint(tree, peer, "first")
    yield
    for _ in range(bench.repeats):
        bench.checkpoint(tree, peer, "no change")
        yield
    for turn in range(bench.repeats):
        changes.edit_ten(peer.tree, peer.own_names, f"edit-{bench.run}-{turn}")
        bench.checkpoint(tree, peer, "ten edits")
        yield
    for turn in range(bench.repeats):
        changes.touch_thousand(peer.tree, peer.own_names, f"touch-{bench.run}-{turn}")
        bench.checkpoint(tree, peer, "touch 1000")
        yield
    expected = changes.listing(peer.tree, peer.own_names)
    for turn in range(bench.repeats):
        changes.damage_twenty(peer.tree, peer.own_names, f"damage-{bench.run}-{turn}")
        bench.roll_back(tree, peer, "roll back 20", expected)
        yield
    changes.remove_half(peer.tree, peer.own_names)
    bench.roll_back(tree, peer, "roll back half", expected)
    yield
    bench.leave(peer)


def huge_session(bench, kind, tree):
    """The steps for a few very large files."""
    peer = prepared(bench, kind, tree)
    yield
    bench.checkpoint(tree, peer, "first")
    yield
    for _ in range(bench.repeats):
        bench.checkpoint(tree, peer, "no change")
        yield
    changes.rewrite_middle(peer.tree, f"edit-{bench.run}")
    bench.checkpoint(tree, peer, "1 MiB edit")
    yield
    expected = changes.listing(peer.tree, peer.own_names)
    changes.rewrite_middle(peer.tree, f"damage-{bench.run}")
    bench.roll_back(tree, peer, "roll back 1 MiB", expected)
    yield
    bench.leave(peer)


def in_turns(sessions):
    """Each session takes one step, then the next session."""
    waiting = deque(sessions)
    while waiting:
        session = waiting.popleft()
        with contextlib.suppress(StopIteration):
            next(session)
            waiting.append(session)


def one_after_the_other(sessions):
    """For trees so big that copies for all peers fit neither in memory nor on the disk."""
    for session in sessions:
        for _ in session:
            pass


def run_once(bench, kinds, tree):
    """One run of all peers over one tree; who begins changes from run to run."""
    shift = bench.run % len(kinds)
    order = kinds[shift:] + kinds[:shift]
    if tree.name == "huge":
        one_after_the_other(huge_session(bench, kind, tree) for kind in order)
    else:
        in_turns([source_session(bench, kind, tree) for kind in order])


def watched_once(bench, kind, tree):
    """Checkpoints after ten edits while a watcher runs: the cost must not grow with the tree.

    What the watcher itself spends from the edits to the end of the checkpoint
    is added, or the work could simply be moved there.
    """
    peer = prepared(bench, kind, tree)
    peer.learn(bench.execute(peer, peer.checkpoint()).output)
    watcher = subprocess.Popen(
        peer.command("watch"), env=peer.environment(), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        if not wait_until_watching(bench, peer, watcher):
            bench.keep(tree, peer, "watched edits", measure.Cost(), fault="the watcher did not start")
            return
        bench.execute(peer, peer.checkpoint())  # the first one under a watcher still has to look at everything
        for turn in range(bench.repeats):
            changes.read_all(peer.tree)
            filesystem.settle(bench.place)
            spent = measure.watcher_cpu(watcher.pid)
            changes.edit_ten(peer.tree, peer.own_names, f"watch-{bench.run}-{turn}")
            cost = bench.execute(peer, peer.checkpoint())
            cost.system += measure.watcher_cpu(watcher.pid) - spent
            bench.keep(tree, peer, "watched edits", cost)
    finally:
        watcher.terminate()
        watcher.wait()
        bench.leave(peer)


def wait_until_watching(bench, peer, watcher):
    """Asks for the status until it says that the watcher runs."""
    until = time.monotonic() + WATCHER_READY_SECONDS
    while time.monotonic() < until and watcher.poll() is None:
        output = bench.execute(peer, [peer.command("watch", "--status", "--json")]).output
        if '"running":true' in "".join(output.split()):
            return True
        time.sleep(0.1)
    return False
