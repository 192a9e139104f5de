"""Messages between the drawing store and whoever asks it: kind and length, then the body."""

import os
import socket
import struct

HEAD = struct.Struct("!4sI")


class Line:
    def __init__(self, sock):
        self.sock = sock
        self.inlet = sock.makefile("rb")

    @classmethod
    def to(cls, port):
        return cls(socket.create_connection(("127.0.0.1", port)))

    def send(self, kind, body=b""):
        head = HEAD.pack(kind, len(body))
        if os.environ.get("PLANTED_FIX") == "1":
            self.sock.sendall(head + body)
        else:
            self.sock.sendall(head)
            self.sock.sendall(body)

    def receive(self):
        head = self.inlet.read(HEAD.size)
        if len(head) < HEAD.size:
            raise EOFError("the other side has hung up")
        kind, length = HEAD.unpack(head)
        return kind, self.inlet.read(length)

    def ask(self, kind, body=b""):
        self.send(kind, body)
        return self.receive()[1]

    def close(self):
        self.inlet.close()
        self.sock.close()
