"""Runs commands, and keeps what they have cost.

CPU seconds are the figure to trust: user and system time of the command and of
every process it has waited for. Wall time depends on what else the machine does.
"""

import marshal
import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

LONGEST = 3 * 3600


@dataclass
class Cost:
    """Of one command, or of several run one after the other."""

    code: int = 0
    user: float = 0.0
    system: float = 0.0
    wall: float = 0.0
    peak: int = 0
    output: str = ""
    fault: str = ""

    @property
    def cpu(self):
        return self.user + self.system


@dataclass
class Sample:
    """One timed step. Bytes for memory and storage; `store` is None where nothing was stored."""

    tree: str
    peer: str
    step: str
    run: int
    cpu: float
    user: float
    system: float
    wall: float
    peak: int
    store: int | None = None
    growth: int | None = None
    fault: str = ""
    load: float = field(default_factory=lambda: os.getloadavg()[0])


class Launcher:
    """The small process which starts everything that is measured (launch.py says why)."""

    def __init__(self, scratch):
        self.output = os.path.join(scratch, "stdout")
        self.errors = os.path.join(scratch, "stderr")
        script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "launch.py")
        self.process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-B", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, umask=0o022
        )

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait()

    def run(self, commands, directory, environment):
        """Runs the commands in order, stops at the first that fails, adds up their costs."""
        total = Cost()
        for argv in commands:
            for path in (self.output, self.errors):
                Path(path).write_bytes(b"")
            marshal.dump((argv, directory, environment, self.output, self.errors, LONGEST), self.process.stdin)
            self.process.stdin.flush()
            code, user, system, wall, peak, left = marshal.load(self.process.stdout)
            total.code = code
            total.user += user
            total.system += system
            total.wall += wall
            total.peak = max(total.peak, peak * 1024)
            total.output = Path(self.output).read_text(errors="replace")
            if left:
                total.fault = f"`{os.path.basename(argv[0])}` left a process behind"
            if code:
                total.fault = f"`{' '.join([os.path.basename(argv[0]), *argv[1:3]])}` exit {code}: {self.last_line()}"
                break
        return total

    def last_line(self):
        lines = Path(self.errors).read_text(errors="replace").strip().splitlines()
        return lines[-1][:160] if lines else "nothing on stderr"

    def floor(self):
        """The peak that even the smallest command shows: smaller figures cannot be told apart."""
        return self.run([["true"]], "/", dict(os.environ)).peak


def cpu_resolution(launcher):
    """The smallest CPU time that is told from none, in seconds.

    Kernels either count ticks (then nearly all short commands show 0 or one
    tick) or measure to the nanosecond; only a try tells which.
    """
    environment = dict(os.environ)
    times = [launcher.run([["true"]], "/", environment).cpu for _ in range(20)]
    coarse = all(abs(t * 1000 - round(t * 1000)) < 1e-6 for t in times)
    return 0.01 if coarse else 0.000001


def watcher_cpu(pid):
    """CPU seconds of all threads of a running process, to the nanosecond."""
    total = 0
    for task in Path(f"/proc/{pid}/task").iterdir():
        total += int(Path(task, "schedstat").read_text().split()[0])
    return total / 1e9
