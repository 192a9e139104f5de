"""Fits a temperature field with L-BFGS: python solve.py [dunlin.json]"""

import sys
import time

import torch

from field import Field
from jsonconf import load
from plates import measurements, split


class Problem:
    def __init__(self, conf):
        inputs, seen = measurements(conf.points * conf.chunks // 8, conf.seed)
        self.field = Field(conf.width, conf.layers, conf.seed)
        with torch.no_grad():
            self.parts = split(self.field.features(inputs), seen, conf.chunks // 4)
        self.optimizer = torch.optim.LBFGS(
            self.field.parameters(), lr=0.3, max_iter=conf.inner, history_size=conf.history, tolerance_change=0.0
        )
        self.calls = 0

    def closure(self, features, seen):
        def evaluate():
            self.optimizer.zero_grad()
            loss = (self.field(features) - seen).square().mean()
            loss = loss + 1e-5 * sum(layer.weight.square().mean() for layer in self.field.layers)
            loss.backward()
            self.calls += 1
            return loss

        return evaluate

    def round(self, number: int) -> float:
        features, seen = self.parts[number % len(self.parts)]
        return self.optimizer.step(self.closure(features, seen)).item()


def main():
    conf = load(*sys.argv[1:2])
    torch.manual_seed(conf.seed)
    problem = Problem(conf)
    began, value = time.time(), float("nan")
    for number in range(conf.rounds):
        value = problem.round(number)
        if (number + 1) % conf.report == 0:
            print(f"round {number + 1} loss {value:.5f} after {problem.calls} evaluations", flush=True)
    print(f"{conf.rounds} steps in {time.time() - began:.3f}s, loss {value:.6f}")


if __name__ == "__main__":
    main()
