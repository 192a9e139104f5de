"""Equal programs under made noise: how often do their steps "change", how often is one accepted, where starts look along the run?

    python bench/changing_noise.py --times 300

Rows of a start have noise that lasts (each keeps `lasts` of the one before), stalls, and a part that stays for the start, as MEASURE has it
for net and wall clocks. The comparison is the real one: looks along the run, starts that count, the decision rule.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import statistics
import sys
from collections import Counter
from dataclasses import dataclass, replace

from trainflash import bench, stats
from trainflash.bench import course, spans
from trainflash.schema import Start

STEP_MS, WINDOW = 9.0, 20


@dataclass(frozen=True)
class Noise:
    """Standard deviations in log units: of a row's ratio, of a start; how much of a row's noise lasts into the next; stalls a row."""

    row: float
    start: float
    clock: str
    lasts: float = 0.5
    stalls: float = 0.0
    own: float = 0.06  # of a row by CPU time


NOISES = {
    "net, quiet": Noise(0.06, 0.012, "net"),
    "net, busy": Noise(0.08, 0.015, "net", 0.8, 0.05),
    "wall, busy": Noise(0.2, 0.07, "wall", 0.7, 0.05),
    "wall, very busy": Noise(0.4, 0.2, "wall", 0.8, 0.1),
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    for name, noise in NOISES.items():
        for factor in (1.0, 0.95, 1.1):
            draw = random.Random(given.seed)
            came = [compare(draw, noise, math.log(factor)) for _ in range(given.times)]
            decisions = Counter(decision for decision, _, _ in came)
            row = {
                "noise": name,
                "factor": factor,
                "accept": decisions["accept"],
                "reject": decisions["reject"],
                "inconclusive": decisions["inconclusive"],
                "changes_said": sum(said for _, said, _ in came),
                "starts": round(statistics.fmean(starts for _, _, starts in came), 1),
            }
            print(json.dumps(row), flush=True)
    return 0


def compare(draw: random.Random, noise: Noise, true: float) -> tuple[str, bool, int]:
    """(decision, whether it rests on steps that change, starts)"""
    starts: list[Start] = []
    lines: list[dict] = []
    while True:
        seen = course.of_starts(starts, lines)
        changes = seen is not None and seen.changes
        counted = course.over_the_run(starts, lines) if changes else starts
        decision = bench.judge_starts(counted, affordable=stats.LOOKS[-1]).decision
        if decision != "continue" or len(starts) >= 2 * stats.LOOKS[-1]:
            return ("inconclusive" if decision == "continue" else decision), changes, len(starts)
        start, rows = one(draw, noise, true, len(starts) + 1, seen is None or not seen.known)
        starts.append(start)
        lines.append({"n": start.n, "course": rows})


def one(draw: random.Random, noise: Noise, true: float, n: int, far: bool) -> tuple[Start, list[spans.Row]]:
    """A start with twelve slices, or with six and sixteen windows along the run."""
    level, drift, rows = draw.gauss(true, noise.start), [0.0] * 4, []
    spread = [noise.row / math.sqrt(2)] * 2 + [noise.own] * 2
    for number in range(22 if far else 12):
        drift = [
            noise.lasts * each + math.sqrt(1 - noise.lasts**2) * draw.gauss(0, sd) for each, sd in zip(drift, spread, strict=True)
        ]  # fmt: skip
        stalled = [abs(draw.gauss(0, 0.5)) if draw.random() < noise.stalls else 0.0 for _ in range(2)]
        ours, theirs = (STEP_MS * math.exp(drift[at] + stalled[at] - at * level) for at in (0, 1))
        own = [STEP_MS * math.exp(drift[2 + at] - at * level) for at in (0, 1)]
        first = 5 + WINDOW * number if number < 6 or not far else 125 + 60 * (number - 6)
        rows.append((first, WINDOW, ours, theirs, ours, theirs, *own))
    early = rows[:6] if far else rows
    y = math.log(sum(row[2] for row in early) / sum(row[3] for row in early))
    ratios = [math.log(row[2] / row[3]) for row in early]
    start = Start(n, "resident", y, y, noise.clock, steps=WINDOW * len(early), scatter=stats.standard_error(ratios))  # type: ignore[arg-type]
    if far:
        over = math.log(statistics.fmean(row[2] for row in rows) / statistics.fmean(row[3] for row in rows))
        scatter = spans.scatter([math.log(row[2] / row[3]) for row in rows])
        start = replace(start, last_step=rows[-1][0] + WINDOW, y_run=over, y_run_wall=over, scatter_run=scatter)
    return start, rows


if __name__ == "__main__":
    sys.exit(main())
