"""Starts commands and says what each has cost. Run by measure.py, not by people.

It is a process of its own, and imports next to nothing, because Linux hands the
memory peak of a parent down to the child that it starts: under a Python which
holds listings of eighty thousand files, every command would seem to need
hundreds of megabytes.

A request on stdin is a marshalled tuple (argv, directory, environment, output
file, error file, seconds); the answer a tuple (exit code, user, system, wall,
peak KiB, whether a process was left behind). Processes that the command has
waited for are counted in.
"""

import marshal
import os
import signal
import sys
import time


def start(argv, directory, environment, output, errors):
    pid = os.fork()
    if pid:
        return pid
    try:
        os.setpgid(0, 0)
        os.umask(0o022)
        os.chdir(directory)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        for number, path in ((1, output), (2, errors)):
            os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644), number)
        os.execvpe(argv[0], argv, environment)
    except OSError as error:
        os.write(2, f"{argv[0]}: {error}\n".encode())
    os._exit(127)


def left_behind(group):
    """A process that outlives the command works uncounted: that must be known."""
    try:
        os.killpg(group, signal.SIGKILL)
        return True
    except ProcessLookupError:
        return False


def answer(request):
    argv, directory, environment, output, errors, seconds = request
    began = time.monotonic()
    pid = start(argv, directory, environment, output, errors)
    signal.signal(signal.SIGALRM, lambda *_: os.killpg(pid, signal.SIGKILL))
    signal.alarm(seconds)
    _, status, used = os.wait4(pid, 0)
    wall = time.monotonic() - began
    signal.alarm(0)
    code = os.waitstatus_to_exitcode(status)
    return (code, used.ru_utime, used.ru_stime, wall, used.ru_maxrss, left_behind(pid))


def main():
    while True:
        try:
            request = marshal.load(sys.stdin.buffer)
        except EOFError:
            return
        marshal.dump(answer(request), sys.stdout.buffer)
        sys.stdout.buffer.flush()


main()
