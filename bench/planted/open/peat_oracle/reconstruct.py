"""Penalised multinomial response curves, core after core, by L-BFGS."""

import os
import time

import torch

from belief import unlikely
from bog import KNOTS, SPECIES, core

ROUNDS = 10  # L-BFGS calls per core


def misfit(curves, basis, counts):
    logits = basis @ curves.T
    return -(counts * torch.log_softmax(logits, 1)).sum() / len(counts)


def fitting(basis, counts):
    """Yields the loss after each round of one core's fit."""
    curves = (0.1 * torch.randn(SPECIES, KNOTS, dtype=torch.float64)).requires_grad_()
    solver = torch.optim.LBFGS([curves], lr=0.5, max_iter=3, history_size=6)

    def closure():
        solver.zero_grad()
        loss = misfit(curves, basis, counts) + unlikely(curves) / SPECIES
        loss.backward()
        return loss

    for _ in range(ROUNDS):
        yield solver.step(closure).item()


def all_cores():
    number = 0
    while True:
        for loss in fitting(*core(number)):
            yield number, loss
        number += 1


def main():
    torch.manual_seed(8)
    steps = int(os.environ.get("PLANTED_STEPS", 700))
    began, shown = time.perf_counter(), -1
    for _, (number, loss) in zip(range(steps), all_cores()):
        if number % 10 == 0 and number != shown:
            shown = number
            print(f"core {number}: starts at {loss:.4f}", flush=True)
    print(f"{steps} steps in {time.perf_counter() - began:.3f} s, loss {loss:.6f}")


if __name__ == "__main__":
    main()
