# SPDX-License-Identifier: BSD-3-Clause
"""A UNIX socket that speaks docs/control.md with answers made up by a test."""
import json
import os
import socket
import tempfile
import threading

GREETING = {"millrace": "0.1.0", "protocol": 1}
END = {"end": True, "error": None}
LIMIT_S = 60


def line(value):
    """An object as a line, or bytes as they are."""
    return value if isinstance(value, bytes) else json.dumps(
        value, separators=(",", ":"), ensure_ascii=False).encode() + b"\n"


class FakeEngine:
    """Serves one client after another. `answer` is what it says when it was asked: objects and
    bytes, in any iterable. `piece` cuts it into writes of so many bytes. `greeting` None: hangs up
    at once. `hears` False: answers without having been asked. `stays` keeps the connection open
    behind the answer until the client goes, and `gone` is set when it has.
    """

    def __init__(self, answer=(END,), *, greeting=GREETING, piece=None, hears=True, stays=True):
        self.answer, self.greeting, self.piece = answer, greeting, piece
        self.hears, self.stays = hears, stays
        self.requests, self.gone = [], threading.Event()
        # a socket's path is short: not below pytest's own directory
        self.directory = tempfile.TemporaryDirectory(prefix="millrace-test-")
        self.path = os.path.join(self.directory.name, "millrace.sock")
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.bind(self.path)
        self.socket.listen()
        self.thread = threading.Thread(target=self.serve, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()
        self.thread.join(LIMIT_S)
        self.directory.cleanup()

    def serve(self):
        while True:
            try:
                client, _ = self.socket.accept()
            except OSError:
                return
            with client:
                client.settimeout(LIMIT_S)
                try:
                    self.talk(client)
                except (BrokenPipeError, ConnectionResetError):
                    pass
            self.gone.set()

    def send(self, client, data):
        step = self.piece or len(data) or 1
        for start in range(0, len(data), step):
            client.sendall(data[start:start + step])

    def talk(self, client):
        if self.greeting is None:
            return
        self.send(client, line(self.greeting))
        if self.hears:
            request = client.makefile("rb").readline()
            if not request:
                return
            self.requests.append(json.loads(request))
        for value in self.answer:
            self.send(client, line(value))
        if self.stays:
            client.recv(1)
