"""How well answers of "what if the ranks were other" hold: jobs are simulated with known truth, measured, changed and simulated again.

A job has ranks that work between collectives, one of which may be slow (by a factor, or by a constant), work that varies from step to step,
lengths that differ between ranks in each step, and a ring whose transfer grows with the ranks. From a few hundred recorded steps three
answers are predicted; the truth is a long simulation of the changed job. `make bench-what-if`.
"""

from __future__ import annotations

import argparse
import statistics
from dataclasses import dataclass, replace

import numpy as np

from trainflash.summary.rank_what_if import Stretches, predictions

TARGETS = {"median": 0.03, "p90": 0.08}
TRUTH_STEPS = 20_000


@dataclass(frozen=True)
class Job:
    """`work_ns`: mean own work before each collective; `noise`, `lengths`: sd of its logarithm, by chance and by the data."""

    ranks: int
    work_ns: np.ndarray
    noise: float
    lengths: float
    transfer_ns: float  # of two ranks
    slow_factor: float = 1.0  # of rank 1
    slow_ns: float = 0.0

    def measure(self, rng: np.random.Generator, steps: int) -> Stretches:
        shape = (self.ranks, steps, len(self.work_ns))
        own = self.work_ns * np.exp(rng.normal(0, self.noise, shape))
        own = own * np.exp(rng.normal(0, self.lengths, (self.ranks, steps, 1)))
        own[1] = own[1] * self.slow_factor + self.slow_ns
        ring = self.transfer_ns * 2 * (self.ranks - 1) / self.ranks
        return Stretches(own, ring * np.exp(rng.normal(0, 0.05, shape[1:])))

    def changed(self, name: str) -> Job:
        if name == "level":
            return replace(self, slow_factor=1.0, slow_ns=0.0)
        return replace(self, ranks=2 * self.ranks)


def truth_ns(job: Job, name: str, rng: np.random.Generator) -> float:
    """The mean step of the changed job; with equal work, chance and lengths together are the mean over the ranks of each step."""
    if name != "balanced":
        return job.changed(name).measure(rng, TRUTH_STEPS).step_ns()
    made = job.measure(rng, TRUTH_STEPS)
    level = np.ones((job.ranks, 1, 1))
    level[1] = job.slow_factor
    plain = (made.own - (np.arange(job.ranks) == 1)[:, None, None] * job.slow_ns) / level
    own = plain.mean(axis=0, keepdims=True) * level
    own[1] += job.slow_ns
    return Stretches(own, made.transfer).step_ns()


def drawn(rng: np.random.Generator) -> Job:
    work = rng.uniform(5e6, 50e6) * rng.dirichlet(np.full(rng.integers(1, 5), 4.0))
    by = rng.integers(3)
    return Job(
        ranks=int(rng.choice([2, 4, 8, 16, 64])),
        work_ns=work,
        noise=float(rng.uniform(0.01, 0.15)),
        lengths=float(rng.choice([0.0, rng.uniform(0.05, 0.4)])),
        transfer_ns=float(rng.uniform(0.0, 0.3) * work.sum() / len(work)),
        slow_factor=float(rng.uniform(1.1, 2.0)) if by == 1 else 1.0,
        slow_ns=float(rng.uniform(0.1, 1.0) * work.mean()) if by == 2 else 0.0,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=200)
    parser.add_argument("--steps", type=int, default=200, help="recorded steps of each job")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    rng = np.random.default_rng(arguments.seed)
    errors: dict[str, list[float]] = {}
    for _ in range(arguments.jobs):
        job = drawn(rng)
        for answer in predictions(job.measure(rng, arguments.steps)):
            if answer.name == "level" and job.slow_factor == 1.0 and job.slow_ns == 0.0:
                continue  # there is no slow rank to be levelled
            errors.setdefault(answer.name, []).append(abs(answer.step_ms * 1e6 / truth_ns(job, answer.name, rng) - 1))
    everything = [error for each in errors.values() for error in each]
    print("| answer | jobs | median error | p90 |\n|---|---|---|---|")
    for name, found in [*errors.items(), ("all", everything)]:
        print(f"| {name} | {len(found)} | {statistics.median(found):.1%} | {np.quantile(found, 0.9):.1%} |")
    print(f"bars: {TARGETS['median']:.0%} in the median, {TARGETS['p90']:.0%} at p90")


if __name__ == "__main__":
    main()
