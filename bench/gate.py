"""How often is the gate wrong, and what does it cost? Its live decisions, and replays of the recorded starts.

    python bench/gate.py spread --runs 10        p50 of repeated runs: paired, and plain beside it
    python bench/gate.py replay                  labels at random, true losses by shifting; the rules of others beside

The live comparisons are those of `bench/verdicts.py live`, whose starts the gate's rule judges as they come. The runs of `spread` are
appended to results/gate/ and go on there after an interruption.
For the rules of pytest-benchmark and asv install those two (`pip install pytest-benchmark asv`); without them they are left out.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import shutil
import statistics
import sys
import tempfile
from collections import Counter
from pathlib import Path

import verdicts
from kept_results import append_lines, read_lines
from verdicts import LIMIT, lived, prepare, shifted, swapped, upper

from trainflash import bench, launch, stats, trace
from trainflash.gate import pairs
from trainflash.schema import Command, Sandbox, Start, from_plain

RESULTS = Path(__file__).resolve().parent / "results" / "gate"
BUDGET_S = 1800.0
TRUE_LOSSES = (1.0, 0.95, 0.90, 0.85)  # speed of the change ÷ speed before


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    what = parser.add_subparsers(dest="what", required=True)
    spread = what.add_parser("spread")
    spread.add_argument("--runs", type=int, default=10)
    spread.add_argument("--programs", default="steady,ragged")
    spread.add_argument("--work", type=Path, default=Path(tempfile.gettempdir()) / "trainflash-gate-bench")
    again = what.add_parser("replay")
    again.add_argument("--times", type=int, default=400, help="gates drawn for each program and true loss")
    again.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    RESULTS.mkdir(parents=True, exist_ok=True)
    os.environ["OMP_NUM_THREADS"] = "1"
    if given.what == "spread":
        for program in given.programs.split(","):
            repeat(program, given.runs, given.work)
    else:
        replay(given.times, given.seed)
    return 0


def repeat(program: str, runs: int, work: Path) -> None:
    """p50 of `runs` repeated runs: of one paired start each against the same program, and of the program alone."""
    box = prepare(work)
    command = Command((sys.executable, f"{program}.py"))
    before = [line for line in read_lines(RESULTS / "spread.jsonl") if line["program"] == program]
    for number in range(len(before), runs):
        directory = work / f"spread-{program}"
        shutil.rmtree(directory, ignore_errors=True)
        judge = pairs.judge_by(LIMIT, most_starts=stats.LEAST_STARTS)
        _, judged = bench.compare(box, command, command, directory, budget_s=BUDGET_S, judge=judge)
        starts = [
            [statistics.median(line[side][1]) for side in ("baseline", "candidate")] for line in read_lines(directory / "steps.jsonl")
        ]
        line = {
            "program": program,
            "run": number,
            "paired": starts,
            "told": judged.speedup.mean if judged.speedup else None,
            "plain_ms": alone(box, command, work / "alone"),
            "load": os.getloadavg()[0],
        }
        append_lines(RESULTS / "spread.jsonl", [line])
        print(f"{program} run {number}: plain p50 {line['plain_ms']:.3f} ms, paired p50 {starts}", flush=True)
    print(json.dumps(spread_of(program), indent=1))


def spread_of(program: str) -> dict:
    """Largest distance of a run's p50 from the median of all runs: paired (relative to the program beside it), and plain.

    `told` is the same of the ratio that a paired gate goes by.
    """
    lines = [line for line in read_lines(RESULTS / "spread.jsonl") if line["program"] == program and line["paired"]]
    paired = [math.exp(statistics.fmean(math.log(theirs / ours) for ours, theirs in line["paired"])) for line in lines]
    one = [line["paired"][0][1] / line["paired"][0][0] for line in lines]
    plain = [line["plain_ms"] for line in lines]
    told = [line["told"] for line in lines if line.get("told")]
    return {"program": program, "runs": len(lines), **{
        name: max(abs(value / statistics.median(values) - 1) for value in values) if values else None
        for name, values in (("paired", paired), ("paired_one_start", one), ("told", told), ("plain", plain))
    }}  # fmt: skip


def alone(box: Sandbox, command: Command, run_dir: Path, steps: int = 300, warmup: int = 20) -> float:
    """p50 step of one plain run, wall milliseconds."""
    shutil.rmtree(run_dir, ignore_errors=True)
    launch.require_success(launch.run(box, "baseline", command, run_dir, capture="timing", max_steps=steps + warmup, timeout=600.0))
    return statistics.median(float(ns) for ns in trace.load(run_dir).ranks[0].wall_ns[warmup:]) / 1e6


def replay(times: int, seed: int) -> None:
    """Gates drawn from the recorded starts of programs against themselves."""
    pools: dict[str, list[Start]] = {}
    samples: dict[str, list[dict[str, list[float]]]] = {}
    for line in read_lines(verdicts.RESULTS / "starts.jsonl"):
        if line["factor"] != 1.0 or line["y"] is None:
            continue
        pools.setdefault(line["program"], []).append(
            from_plain(Start, {name: value for name, value in line.items() if name in Start.__dataclass_fields__}, "starts.jsonl")
        )
        if line.get("samples"):
            samples.setdefault(line["program"], []).append(line["samples"])
    rng, rows, totals = random.Random(seed), [], Counter()
    for program, pool in pools.items():
        if len(pool) < stats.LOOKS[1]:
            continue
        row: dict = {"program": program, "starts": len(pool), "start_s": statistics.fmean(start.spent_s for start in pool)}
        for speed in TRUE_LOSSES:
            came = [play(rng, pool, speed) for _ in range(times)]
            decisions = Counter(decision for decision, _ in came)
            row[f"{speed:g}"] = {"pass": decisions["accept"] / times, "fail": decisions["reject"] / times,
                                 "inconclusive": decisions["inconclusive"] / times,
                                 "starts": statistics.fmean(used for _, used in came)}  # fmt: skip
            totals.update({f"fail_{speed:g}": decisions["reject"], f"of_{speed:g}": times})
        row["others"] = others(rng, samples.get(program, []), times)
        rows.append(row)
        print(json.dumps(row))
    if not rows:
        print("too few starts are recorded: run `bench/verdicts.py live` first", file=sys.stderr)
        return
    live = lived("gate")
    equal = live.get("1", {})
    wrong, of = equal.get("reject", 0) + totals["fail_1"], sum(equal.values()) + totals["of_1"]
    spent = [line["gate"]["program_s"] for line in read_lines(verdicts.RESULTS / "live.jsonl") if line["factor"] == 1.0 and "gate" in line]
    summary = {
        "live": live,
        "false_failures": f"{wrong} of {of}",
        "false_failures_upper_95": upper(wrong, of),
        "true_loss_of_10_fails": totals["fail_0.9"] / totals["of_0.9"],
        "program_s_of_a_gate": statistics.fmean(spent) if spent else None,
        "spread": [spread_of(program) for program in dict.fromkeys(line["program"] for line in read_lines(RESULTS / "spread.jsonl"))],
    }
    print(json.dumps(summary, indent=1))
    (RESULTS / "replay.json").write_text(json.dumps({"summary": summary, "programs": rows}, indent=1) + "\n", encoding="utf-8")


def play(rng: random.Random, pool: list[Start], speed: float) -> tuple[str, int]:
    """One gate: starts drawn with random labels, the change `speed` times as fast, until the rule stops."""
    judge, drawn = pairs.judge_by(LIMIT), []
    while True:
        verdict = judge(drawn, affordable=stats.LOOKS[-1])
        if verdict.decision != "continue":
            return verdict.decision, len(drawn)
        start = rng.choice(pool)
        drawn.append(shifted(swapped(start) if rng.random() < 0.5 else start, speed))


def others(rng: random.Random, pool: list[dict[str, list[float]]], times: int) -> dict:
    """How often the rules of other tools fail one run of a program beside another run of it; each run is one side of one start.

    pytest-benchmark: `--benchmark-compare-fail=mean:5%` (also min, median). asv: `asv continuous --factor 1.05`, its own test of samples.
    """
    sides = [side for each in pool for side in each.values()]
    if len(sides) < 2:
        return {}
    found: dict = {}
    for name, fails in (*_pytest_benchmark(), *_asv()):
        for speed in (1.0, 0.9):
            wrong = 0
            for _ in range(times):
                before, now = rng.sample(sides, 2)
                wrong += fails(before, [value / speed for value in now])
            found[f"{name} fails at {speed:g}"] = wrong / times
    return found


def _pytest_benchmark() -> list:
    try:
        from pytest_benchmark.utils import PercentageRegressionCheck
    except ImportError:
        return []

    def rule(field):
        checked = PercentageRegressionCheck(field, 5.0)
        of = {"mean": statistics.fmean, "min": min, "median": statistics.median}[field]
        return lambda before, now: bool(checked.fails({field: of(now)}, {field: of(before)}))

    return [(f"pytest-benchmark {field}:5%", rule(field)) for field in ("mean", "min", "median")]


def _asv() -> list:
    try:
        from asv._stats import is_different
        from asv_runner.statistics import compute_stats
    except ImportError:
        return []

    def fails(before, now):
        stats_before, stats_now = (compute_stats(samples, 1)[1] for samples in (before, now))
        ratio = statistics.median(now) / statistics.median(before)
        return ratio > 1.05 and bool(is_different(before, now, stats_before, stats_now, p_threshold=0.002))

    return [("asv factor 1.05", fails)]


if __name__ == "__main__":
    sys.exit(main())
