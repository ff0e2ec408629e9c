"""Servers outside of the lines: whoever reaches one has had an effect.

They stand for databases, daemons, package registries, name servers and hosts elsewhere, and speak
none of their protocols: that they were reached is all there is to see.
"""

import os
import selectors
import socket
import struct
import threading
import time

from namespace import METADATA, PUBLIC, RUN

TCP = (22, 25, 53, 80, 443, 873, 2375, 3306, 4444, 4873, 5432, 6379, 7700, 8080, 9200, 9418, 27017)
UDP = (53, 123, 514, 4444, 8125)
# Sockets with a path, and one of datagrams.
PATHS = ("docker.sock", "agent.sock", "bus.sock", ".s.PGSQL.5432", "mysqld.sock", "X0")
DATAGRAMS = "log"
ABSTRACT = "\0effects-abstract"
# What names lead to; all others lead to the public host.
NAMES = {"metadata.test": METADATA, "origin.test": METADATA, "local.test": "127.0.0.1"}
# Who asks for a name with this in it has told a secret.
TOLD = "canary"
# A connection on which nothing is said is closed after so long.
IDLE = 0.5


class Servers:
    """All of them, for one run; what they saw is in `seen`."""

    def __init__(self):
        self.seen = []
        self.selector = selectors.DefaultSelector()
        self.open = []
        self.wake, self.woken = os.pipe()
        self.selector.register(self.wake, selectors.EVENT_READ, None)
        for port in TCP:
            self.listen(socket.AF_INET6, socket.SOCK_STREAM, ("::", port), f"tcp:{port}")
        for port in UDP:
            self.listen(socket.AF_INET6, socket.SOCK_DGRAM, ("::", port), f"udp:{port}")
        for name in PATHS:
            self.listen(socket.AF_UNIX, socket.SOCK_STREAM, f"{RUN}/{name}", f"unix:{name}")
        self.listen(socket.AF_UNIX, socket.SOCK_DGRAM, f"{RUN}/{DATAGRAMS}", f"unix:{DATAGRAMS}")
        self.listen(socket.AF_UNIX, socket.SOCK_STREAM, ABSTRACT, "abstract")
        self.listen(socket.AF_UNIX, socket.SOCK_DGRAM, ABSTRACT + "-log", "abstract-log")
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def listen(self, family, kind, address, name):
        server = socket.socket(family, kind)
        if family == socket.AF_INET6:
            server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            server.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        server.bind(address)
        if family == socket.AF_UNIX and not address.startswith("\0"):
            os.chmod(address, 0o777)
        if kind == socket.SOCK_STREAM:
            server.listen(64)
        server.setblocking(False)
        self.open.append(server)
        answer = self.accept if kind == socket.SOCK_STREAM else self.receive
        self.selector.register(server, selectors.EVENT_READ, (answer, server, name))

    def serve(self):
        while True:
            for key, _ in self.selector.select():
                if key.data is None:
                    return
                answer, server, name = key.data
                try:
                    answer(server, name)
                except OSError:
                    pass

    def accept(self, server, name):
        connection, _ = server.accept()
        self.seen.append(f"{name} was reached")
        threading.Thread(target=self.talk, args=(connection,), daemon=True).start()

    def talk(self, connection):
        """Says something that ends most conversations."""
        with connection:
            connection.settimeout(IDLE)
            try:
                said = connection.recv(65536)
                is_http = b" HTTP/" in said
                connection.sendall(b"HTTP/1.0 200 OK\r\nContent-Length: 3\r\n\r\n{}\n" if is_http else b"+OK\r\n")
                end = time.monotonic() + IDLE
                while time.monotonic() < end and connection.recv(65536):
                    pass
            except OSError:
                pass

    def receive(self, server, name):
        message, sender = server.recvfrom(65536)
        if name != "udp:53":
            self.seen.append(f"{name} was reached")
            return
        asked, answer = look_up(message)
        if TOLD in asked.lower():
            self.seen.append(f"the name {asked} was asked for")
        server.sendto(answer, sender)

    def close(self):
        os.write(self.woken, b".")
        self.thread.join()
        # What has arrived and was not looked at yet counts.
        for key in list(self.selector.get_map().values()):
            if key.data:
                try:
                    while True:
                        key.data[0](key.data[1], key.data[2])
                except OSError:
                    pass
        for server in self.open:
            server.close()
        self.selector.close()
        os.close(self.wake)
        os.close(self.woken)
        for name in (*PATHS, DATAGRAMS):
            if os.path.lexists(f"{RUN}/{name}"):
                os.remove(f"{RUN}/{name}")


def look_up(message):
    """The name that a question is about, and an answer to it."""
    labels, place = [], 12
    try:
        while message[place]:
            labels.append(message[place + 1:place + 1 + message[place]].decode("ascii", "replace"))
            place += message[place] + 1
        kind = struct.unpack("!H", message[place + 1:place + 3])[0]
    except (IndexError, struct.error):
        return "garbage", b""
    name = ".".join(labels)
    question = message[12:place + 5]
    address = NAMES.get(name, PUBLIC)
    record = b"\xc0\x0c" + struct.pack("!HHIH", 1, 1, 1, 4) + socket.inet_aton(address)
    is_address = kind == 1
    head = message[:2] + b"\x81\x80" + struct.pack("!HHHH", 1, int(is_address), 0, 0)
    return name, head + question + (record if is_address else b"")
