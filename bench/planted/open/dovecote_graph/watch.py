"""Validation with Monte-Carlo dropout: several passes, averaged."""

import os

import torch

EVERY = 60 if os.environ.get("PLANTED_FIX") == "2" else 5


class Validator:
    def __init__(self, net, flock, passes=5):
        self.net, self.flock, self.passes = net, flock, passes
        self.best = 0.0

    def attach(self, bus):
        bus.on("batch", self.on_batch)

    @torch.no_grad()
    def validate(self):
        state = torch.get_rng_state()
        total = 0
        for _ in range(self.passes):
            total = total + self.net(self.flock.x, self.flock.src, self.flock.dst).softmax(-1)
        torch.set_rng_state(state)
        guess = total[self.flock.held_out].argmax(-1)
        return (guess == self.flock.y[self.flock.held_out]).float().mean().item()

    def on_batch(self, step, truth, scores):
        if step % EVERY == 0:
            self.best = max(self.best, self.validate())
