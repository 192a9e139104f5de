import os
import time

import torch

from .ear import Ear
from .repertoire import Repertoire
from .settings import Settings


class Rehearsal:
    """One piece after the other, some batches of each."""

    def __init__(self, settings):
        self.s = settings
        self.repertoire = Repertoire(settings)
        self.ear = Ear(settings)
        torch._dynamo.config.recompile_limit = settings.graphs
        self.heard = torch.compile(self.ear, backend=settings.backend)
        self.optimizer = torch.optim.Adam(self.ear.parameters(), settings.rate, fused=True)

    def open(self, piece):
        if os.environ.get("PLANTED_FIX") == "1":
            return lambda frames: self.heard(torch.roll(frames, -piece.tonic, -1))
        self.ear.attune(piece.tonic)
        return self.heard

    def batches(self):
        done = 0
        while True:
            for piece in self.repertoire.pieces:
                listen = self.open(piece)
                for _ in range(self.s.rehearsal):
                    if done == self.s.steps:
                        return
                    yield piece, listen
                    done += 1

    def run(self):
        began = time.perf_counter()
        for step, (piece, listen) in enumerate(self.batches(), 1):
            frames, stray = self.repertoire.sing(piece)
            loss = torch.nn.functional.smooth_l1_loss(listen(frames), stray)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            if step % 60 == 0:
                print(f"{step:5d} {piece.title}: off by {loss.item():.4f}", flush=True)
        print(f"{self.s.steps} steps in {time.perf_counter() - began:.2f} s, loss {loss.item():.5f}")


if __name__ == "__main__":
    torch.manual_seed(31)
    Rehearsal(Settings()).run()
