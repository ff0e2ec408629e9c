"""A world of our own for the clients: no network but this machine, and mounts that end with us."""

import fcntl
import os
import socket
import struct
import subprocess
import sys

INSIDE = "SAFEPOINT_TEST_CLIENTS_INSIDE"
SET_FLAGS = 0x8914  # SIOCSIFFLAGS
UP = 0x1  # IFF_UP


def is_inside():
    return INSIDE in os.environ


def start_again(*more):
    """Runs this program with more arguments in namespaces of its own, and returns how it ends."""
    become_root = [] if os.geteuid() == 0 else ["--map-root-user"]
    command = ["unshare", "--net", "--mount", *become_root, "--", sys.executable, *sys.argv, *more]
    return subprocess.run(command, env={**os.environ, INSIDE: "1"}).returncode


def raise_loopback():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, SET_FLAGS, struct.pack("16sh", b"lo", UP))


def only_loopback():
    """Whether there is nothing but loopback: the tests are worth nothing otherwise."""
    return [name for _, name in socket.if_nameindex()] == ["lo"]


def is_temporary(path):
    return os.path.realpath(path).startswith(("/tmp/", "/var/tmp/"))


def hide_temporary(needed):
    """An empty /tmp for as long as we live: clients leave things there. Not where it holds what we need."""
    if not any(is_temporary(path) for path in needed):
        subprocess.run(["mount", "-t", "tmpfs", "none", "/tmp"], check=True)
