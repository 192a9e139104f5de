"""Asking the depot."""

import os
import socket
from contextlib import contextmanager

from depot import SIZE, take


class Visitor:
    def __init__(self, path):
        self.path, self.line, self.owner = path, None, None

    def sign_in(self):
        link = socket.socket(socket.AF_UNIX)
        link.connect(self.path)
        link.sendall(b"VISIT")
        if take(link, 2) != b"OK":
            raise ConnectionError(f"not let in at {self.path}")
        return link

    @contextmanager
    def visit(self):
        if os.environ.get("PLANTED_FIX") == "1":
            if self.line is None or self.owner != os.getpid():
                self.line, self.owner = self.sign_in(), os.getpid()
            yield self.line
        else:
            with self.sign_in() as line:
                yield line

    def sheet(self, number):
        with self.visit() as line:
            line.sendall(number.to_bytes(4, "big"))
            answer = take(line, SIZE)
        if answer is None:
            raise ConnectionError(f"the depot hung up at sheet {number}")
        return answer
