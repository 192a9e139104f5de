"""`python -m meadow`: learn to learn growth curves."""

import argparse
import logging
import os
import time

import torch

from meadow.learner import MetaLearner
from meadow.tasks import Meadows


def main() -> None:
    parser = argparse.ArgumentParser(prog="meadow")
    parser.add_argument("--plots", type=int, default=8, help="tasks in a meta-batch")
    parser.add_argument("--shots", type=int, default=20)
    parser.add_argument("--inner-steps", type=int, default=3)
    parser.add_argument("--inner-lr", type=float, default=0.02)
    parser.add_argument("--width", type=int, default=160)
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--evaluate-every", type=int, default=60)
    parser.add_argument("--steps", type=int, default=int(os.environ.get("PLANTED_STEPS", "440")))
    options = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    log = logging.getLogger("meadow")
    torch.manual_seed(57)
    meadows = Meadows(seed=57, shots=options.shots)
    held_out = [Meadows(seed=58, shots=options.shots).draw() for _ in range(6)]
    learner = MetaLearner(options.width, options.inner_lr, options.inner_steps, options.lr)
    began, loss = time.perf_counter(), 0.0
    for step in range(1, options.steps + 1):
        loss = learner.update([meadows.draw() for _ in range(options.plots)])
        if step % 5 == 0:
            log.info("step %d loss %.4f, inner rates %s", step, loss, [round(rate, 4) for rate in learner.rates()])
        if step % options.evaluate_every == 0:
            log.info("held-out meadows %.4f", learner.evaluate(held_out))
    print(f"{options.steps} steps in {time.perf_counter() - began:.2f}s, loss {loss:.6f}")


if __name__ == "__main__":
    main()
