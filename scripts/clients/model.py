"""A model that says what a story wants it to say, on a port of this machine.

A script is a list of turns, one for each answer. A turn is a list of blocks (see wires.py),
or a function that is given what the model was told so far and returns such a list: so a
turn can act on a denial, and a test can do something in between, while the client waits.

Which turn is wanted is read from the request, so a client that asks twice is answered
twice the same. A request that offers no tools is for something beside the conversation, a
title for instance, and never moves the script.
"""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import wires

BESIDE = [{"text": "ok"}]
AT_AN_END = [{"text": "There is nothing more to do."}]


class Told:
    """What a model was told in one conversation."""

    def __init__(self, wire, body):
        self.results = wire.results(body)
        self.first_words = wire.first_words(body)
        self.body = body

    @property
    def last(self):
        """What the last tool returned."""
        return self.results[-1] if self.results else ""

    @property
    def everything(self):
        """All of it, as JSON without escaped letters."""
        return json.dumps(self.body, ensure_ascii=False)


class Script:
    """The turns of one conversation."""

    def __init__(self, turns, when=None):
        self.turns = turns
        self.when = when
        self.said = {}
        self.told = None

    def is_for(self, told):
        return self.when is None or self.when in told.first_words

    def say(self, turn, told):
        self.told = told
        if turn not in self.said:
            wanted = self.turns[turn] if turn < len(self.turns) else AT_AN_END
            self.said[turn] = wanted(told) if callable(wanted) else wanted
        return self.said[turn]

    @property
    def is_finished(self):
        return len(self.said) >= len(self.turns)


class Model:
    """A server for one run of a client."""

    def __init__(self, turns, branches=()):
        """`branches` maps words of a first message to the turns of that conversation."""
        self.main = Script(turns)
        self.branches = {when: Script(its, when) for when, its in dict(branches).items()}
        self.errors = []
        self.lock = threading.Lock()
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), handler(self))
        self.server.daemon_threads = True
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)

    @property
    def port(self):
        return self.server.server_address[1]

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()

    def blocks(self, wire, body):
        """Which answer a request gets, and its number."""
        if not wire.offers_tools(body):
            return 0, BESIDE
        told, turn = Told(wire, body), wire.answers_so_far(body)
        scripts = [script for script in self.branches.values() if script.is_for(told)]
        script = (scripts or [self.main])[0]
        with self.lock:
            try:
                return turn, script.say(turn, told)
            except Exception as error:  # The client must come to an end; the story fails later.
                self.errors.append(error)
                return turn, AT_AN_END


def handler(model):
    """The class of a server's requests."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_):
            pass

        def do_HEAD(self):
            self.reply(200, b"", "text/plain")

        def do_GET(self):
            self.reply(200, b'{"object": "list", "data": [], "models": []}', "application/json")

        def do_POST(self):
            body = json.loads(read_body(self) or b"{}")
            path = self.path.split("?")[0]
            wire = next((wire for wire in wires.ALL if wire.fits(path)), None)
            if wire is None:
                return self.reply(404, b"{}", "application/json")
            turn, blocks = model.blocks(wire, body)
            answer = b"".join(wire.answer(body, turn, blocks))
            return self.reply(200, answer, "text/event-stream")

        def reply(self, code, content, kind):
            self.send_response(code)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

    return Handler


def read_body(request):
    """What was sent: of a given length, or in chunks."""
    if "chunked" not in request.headers.get("Transfer-Encoding", "").lower():
        return request.rfile.read(int(request.headers.get("Content-Length") or 0))
    content = b""
    while size := int(request.rfile.readline().split(b";")[0], 16):
        content += request.rfile.read(size)
        request.rfile.readline()
    request.rfile.readline()
    return content
