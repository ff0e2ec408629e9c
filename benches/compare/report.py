"""Figures, ratios to git in the same run, and whether the targets are met."""

import math
import os
import platform
from dataclasses import dataclass
from statistics import mean, median

YARDSTICK = "git"
SUBJECT = "safepoint"
MB = 1_000_000
MIB = 1 << 20

# (trees, step, what is compared, limit). None for `thousand`: there the start of a process is all one sees.
SOURCE = ("medium", "large")
RATIO_TARGETS = (
    (SOURCE, "first", "cpu", 0.25),
    (SOURCE, "no change", "cpu", 0.8),
    (SOURCE, "ten edits", "cpu", 0.8),
    (SOURCE, "roll back 20", "cpu", 0.7),
    (SOURCE, "roll back half", "cpu", 0.6),
    (SOURCE, "first", "store", 0.6),
    (("huge",), "first", "cpu", 0.1),
)
HUGE_GROWTH_LIMIT = 4 * MIB
MEMORY_LIMIT = 200 * MB
WATCHER_LIMIT = 2.0
WATCHED_PAIR = ("thousand", "large")


class Figures:
    """Samples, asked by tree, peer and step."""

    def __init__(self, samples):
        self.samples = samples

    def of(self, tree, peer, step):
        return [s for s in self.samples if (s.tree, s.peer, s.step) == (tree, peer, step)]

    def value(self, tree, peer, step, what):
        """The median over the runs of the mean within a run; None where nothing was measured.

        A step that failed has a figure too, but never one to be proud of: it is
        marked in the table and cannot meet a target.
        """
        by_run = {}
        for sample in self.of(tree, peer, step):
            amount = getattr(sample, what)
            if amount is not None:
                by_run.setdefault(sample.run, []).append(amount)
        return median(mean(amounts) for amounts in by_run.values()) if by_run else None

    def ratio(self, tree, peer, step, what):
        """The median of the ratios within each run: both sides saw the same noise."""
        ratios = []
        for run in sorted({s.run for s in self.samples}):
            part = Figures([s for s in self.samples if s.run == run])
            mine, git = (part.value(tree, name, step, what) for name in (peer, YARDSTICK))
            if mine is not None and git:
                ratios.append(mine / git)
        return median(ratios) if ratios else None

    def faults(self, tree, peer, step):
        return [s.fault for s in self.of(tree, peer, step) if s.fault]

    def peak(self, tree, peer):
        return max((s.peak for s in self.samples if (s.tree, s.peer) == (tree, peer)), default=None)

    def ordered(self, attribute, **conditions):
        """Distinct values in the order in which they first appeared."""
        chosen = (s for s in self.samples if all(getattr(s, k) == v for k, v in conditions.items()))
        return list(dict.fromkeys(getattr(s, attribute) for s in chosen))


@dataclass
class Verdict:
    """One target: `met` is None where it was not measured."""

    what: str
    figure: str
    limit: str
    met: bool | None

    @property
    def word(self):
        return {True: "ok", False: "MISSED", None: "not measured"}[self.met]


def machine(place_line, floor, resolution, versions):
    """What the reader must know to believe the figures."""
    lines = [
        f"{os.cpu_count()} cores, {platform.system()} {platform.release()}, load {os.getloadavg()[0]:.1f}",
        f"file system: {place_line}",
        f"CPU time is resolved to {resolution:g} s; memory peaks below {floor / MB:.0f} MB cannot be told apart",
    ]
    return lines + [f"{name}: {version}" for name, version in versions.items()]


def table(head, rows):
    """An aligned Markdown table, first column to the left."""
    cells = [[str(c) for c in row] for row in [head, *rows]]
    widths = [max(len(row[i]) for row in cells) for i in range(len(head))]

    def line(row):
        first, *rest = (c.ljust(w) if i == 0 else c.rjust(w) for i, (c, w) in enumerate(zip(row, widths)))
        return "| " + " | ".join([first, *rest]) + " |"

    rule = "|" + "|".join("-" * (w + 1) + ("-" if i == 0 else ":") for i, w in enumerate(widths)) + "|"
    return "\n".join([line(cells[0]), rule, *map(line, cells[1:])])


def number(value):
    """Three significant digits, never in powers of ten."""
    if value is None:
        return "–"
    digits = 2 if value == 0 else max(0, min(4, 2 - math.floor(math.log10(abs(value)))))
    return f"{value:.{digits}f}"


def with_ratio(value, ratio, faulty, unit=1):
    if value is None:
        return "–"
    shown = number(value / unit) + (f" ({ratio:.2f})" if ratio is not None else "")
    return shown + (" FAILED" if faulty else "")


def tree_report(figures, tree, description):
    """All tables of one tree."""
    steps = [s for s in figures.ordered("step", tree=tree) if s != "watched edits"]
    peers = figures.ordered("peer", tree=tree)
    parts = [f"## {tree}: {description}"]
    for what, title in (("cpu", "CPU seconds (ratio to git)"), ("wall", "Wall seconds (ratio to git)")):
        rows = [[peer, *(step_cell(figures, tree, peer, step, what) for step in steps)] for peer in peers]
        parts.append(f"{title}\n\n{table(['peer', *steps], rows)}")
    parts.append(storage_report(figures, tree, peers, steps))
    faults = [
        f"- {peer}, {step}: {found[0]}" + (f" (and {len(found) - 1} more)" if len(found) > 1 else "")
        for peer in peers
        for step in steps
        if (found := figures.faults(tree, peer, step))
    ]
    if faults:
        parts.append("Failures\n\n" + "\n".join(faults))
    return "\n\n".join(parts)


def step_cell(figures, tree, peer, step, what):
    return with_ratio(
        figures.value(tree, peer, step, what), figures.ratio(tree, peer, step, what), figures.faults(tree, peer, step)
    )


def storage_report(figures, tree, peers, steps):
    grown = [s for s in steps if s != "first" and figures.value(tree, peers[0], s, "growth") is not None]
    rows = []
    for peer in peers:
        peak = figures.peak(tree, peer)
        first = with_ratio(figures.value(tree, peer, "first", "store"), figures.ratio(tree, peer, "first", "store"), False, MB)
        growth = [figures.value(tree, peer, step, "growth") for step in grown]
        rows.append([peer, number(peak / MB), first, *(with_ratio(g, None, False, MB) for g in growth)])
    head = ["peer", "peak memory", "store after first", *(f"growth, {step}" for step in grown)]
    return f"Memory and storage in MB (ratio to git)\n\n{table(head, rows)}"


def verdicts(figures):
    """All targets that the chosen trees can show."""
    trees = figures.ordered("tree")
    found = []
    for tree in trees:
        if not any(s.step == "first" and s.tree == tree for s in figures.samples):
            continue  # only watched
        for judged, step, what, limit in RATIO_TARGETS:
            if tree in judged:
                found.append(ratio_verdict(figures, tree, step, what, limit))
        if tree == "huge":
            found.append(growth_verdict(figures))
        found.append(memory_verdict(figures, tree))
        found += fault_verdicts(figures, tree)
    if any(s.step == "watched edits" for s in figures.samples):
        found.append(watcher_verdict(figures))
    return found


def ratio_verdict(figures, tree, step, what, limit):
    ratio = figures.ratio(tree, SUBJECT, step, what)
    faulty = bool(figures.faults(tree, SUBJECT, step))
    name = f"{tree}: {step}, {'CPU' if what == 'cpu' else 'storage'} to git"
    met = None if ratio is None else ratio <= limit and not faulty
    return Verdict(name, number(ratio) + (" FAILED" if faulty else ""), f"≤ {limit}", met)


def growth_verdict(figures):
    growth = figures.value("huge", SUBJECT, "1 MiB edit", "growth")
    met = None if growth is None else growth <= HUGE_GROWTH_LIMIT
    shown = "–" if growth is None else f"{number(growth / MIB)} MiB"
    return Verdict("huge: growth by a 1 MiB edit", shown, f"≤ {HUGE_GROWTH_LIMIT // MIB} MiB", met)


def memory_verdict(figures, tree):
    peak = figures.peak(tree, SUBJECT)
    shown = "–" if peak is None else f"{number(peak / MB)} MB"
    return Verdict(f"{tree}: peak memory", shown, f"≤ {MEMORY_LIMIT // MB} MB", None if peak is None else peak <= MEMORY_LIMIT)


def fault_verdicts(figures, tree):
    """Whatever else went wrong with the subject: a fast failure is no result."""
    mine = [s for s in figures.samples if (s.tree, s.peer) == (tree, SUBJECT)]
    faults = [s for s in mine if s.fault]
    return [Verdict(f"{tree}: steps without failure", f"{len(mine) - len(faults)} of {len(mine)}", "all", not faults)] if mine else []


def watcher_verdict(figures):
    small, big = (figures.value(tree, SUBJECT, "watched edits", "cpu") for tree in WATCHED_PAIR)
    faulty = any(figures.faults(tree, SUBJECT, "watched edits") for tree in WATCHED_PAIR)
    name, limit = "watched: ten edits, large to thousand", f"≤ {WATCHER_LIMIT}"
    if faulty:
        return Verdict(name, "FAILED", limit, False)
    if not small or big is None:
        return Verdict(name, "–", limit, None)
    shown = f"{number(big / small)} ({number(big)} s to {number(small)} s)"
    return Verdict(name, shown, limit, big / small <= WATCHER_LIMIT)


def verdict_report(found):
    rows = [[v.what, v.figure, v.limit, v.word] for v in found]
    return "## Targets\n\n" + table(["target", "figure", "limit", "verdict"], rows)
