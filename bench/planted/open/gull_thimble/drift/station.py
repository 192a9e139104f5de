"""The trainer's side of the archive."""

import json
import os
import socket
import subprocess
import sys

import numpy as np
import torch

from drift.protocol import BYE, CUT, HEAD, receive


class Station:
    def __init__(self, settings):
        self.s, self.span = settings, settings.past + settings.ahead
        facts = {"buoys": settings.buoys, "hours": settings.hours, "channels": settings.channels, "seed": settings.seed, "span": self.span}
        self.keeper = subprocess.Popen([sys.executable, "-m", "drift.archive", json.dumps(facts)], stdout=subprocess.PIPE, text=True)
        self.line = socket.create_connection(("127.0.0.1", int(self.keeper.stdout.readline())))
        self.rng = np.random.default_rng(settings.seed + 1)

    def tell(self, kind, body=b""):
        head = HEAD.pack(kind, len(body))
        if os.environ.get("PLANTED_FIX") == "1":
            self.line.sendall(head + body)
        else:
            self.line.sendall(head)
            self.line.sendall(body)

    def windows(self):
        s = self.s
        while True:
            buoy = self.rng.integers(0, s.buoys, s.batch)
            hour = self.rng.integers(0, s.hours - self.span, s.batch)
            self.tell(CUT, np.stack([buoy, hour]).astype("<u4").tobytes())
            raw = receive(self.line, 4 * s.batch * self.span * s.channels)
            cut = torch.frombuffer(raw, dtype=torch.float32).view(s.batch, self.span, s.channels)
            yield cut[:, : s.past], cut[:, s.past :]

    def close(self):
        self.tell(BYE)
        self.line.close()
        self.keeper.wait(5)
