"""How often is a verdict wrong, and what does it cost? Live comparisons of programs with themselves, and replays of the recorded starts.

    python bench/verdicts.py live --minutes 60                  programs against themselves, as many as the time allows
    python bench/verdicts.py live --minutes 20 --factor 1.1     the candidate is really 1.1 times as fast: its baseline burns more
    python bench/verdicts.py live --minutes 20 --factor 0.9     the candidate burns more
    python bench/verdicts.py replay                        labels at random, true speed-ups by shifting; a fixed n beside
    python bench/verdicts.py futility                      what ending hopeless comparisons early saves, and costs, on drawn noise
    python bench/verdicts.py cost                          what a timed run carries a step, beside the bare program

The starts of a live comparison are judged as they come by two rules, each until it is decided: is the candidate faster (a verdict), and is
it slower than the gate tolerates (`bench/gate.py` reads those). Everything measured is appended to results/verdicts/ and goes on there
after an interruption, within a comparison too.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from kept_results import append_lines, read_lines

from trainflash import bench, launch, sandbox, stats
from trainflash.gate import pairs
from trainflash.gate.tolerances import ToleranceConfig
from trainflash.schema import Command, Sandbox, SpeedVerdict, Start, from_plain, to_plain

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results" / "verdicts"
PROGRAMS = ("steady", "worker", "bursty", "ragged", "small_ops", "files", "threads", "ranks")
BUDGET_S = 1800.0  # on a busy machine four starts alone can take ten minutes
MOST_FIXED = 64
SAMPLES = 20  # kept of each side of a start: means of as many blocks of steps, what asv would keep of a benchmark
LIMIT = pairs.limit(ToleranceConfig())  # what the gate tolerates


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    what = parser.add_subparsers(dest="what", required=True)
    live = what.add_parser("live")
    live.add_argument("--minutes", type=float, default=60.0)
    live.add_argument("--factor", type=float, default=1.0, help="true speed of the candidate, the baseline's is 1")
    live.add_argument("--programs", default=",".join(PROGRAMS))
    live.add_argument("--work", type=Path, default=Path(tempfile.gettempdir()) / "trainflash-verdicts")
    again = what.add_parser("replay")
    again.add_argument("--times", type=int, default=400, help="comparisons drawn for each program and true speed-up")
    again.add_argument("--seed", type=int, default=1)
    early = what.add_parser("futility")
    early.add_argument("--times", type=int, default=2000, help="comparisons drawn for each noise and true speed-up")
    carried = what.add_parser("cost")
    carried.add_argument("--pairs", type=int, default=10)
    given = parser.parse_args()
    RESULTS.mkdir(parents=True, exist_ok=True)
    if given.what == "live":
        measure(given.minutes, given.factor, tuple(given.programs.split(",")), given.work)
    elif given.what == "cost":
        cost(given.pairs)
    elif given.what == "futility":
        futility(given.times)
    else:
        replay(given.times, given.seed)
    return 0


class BothRules:
    """A judge for `bench.compare` that goes on until the speed rule and the gate's rule are both decided; each keeps its first decision."""

    def __init__(self) -> None:
        self._rules = {"speed": bench.judge_starts, "gate": pairs.judge_by(LIMIT)}
        self.decided: dict[str, tuple[SpeedVerdict, int]] = {}  # and after how many starts that count

    def __call__(self, starts: list[Start], **asked: Any) -> SpeedVerdict:
        came = {name: rule(starts, **asked) for name, rule in self._rules.items() if name not in self.decided}
        self.close(came, starts)
        return next(
            (verdict for verdict in came.values() if verdict.decision == "continue"),
            self.decided["speed"][0] if "speed" in self.decided else None,
        )

    def close(self, came: dict[str, SpeedVerdict], starts: Sequence[Start]) -> None:
        counted = sum(start.y is not None for start in starts)
        self.decided |= {name: (verdict, counted) for name, verdict in came.items() if verdict.decision != "continue"}

    def ended(self, verdict: SpeedVerdict, starts: Sequence[Start]) -> None:
        """More starts cannot change the answer: what is not decided yet ends in `verdict`."""
        self.close({name: verdict for name in self._rules if name not in self.decided}, starts)


def measure(minutes: float, factor: float, programs: tuple[str, ...], work: Path) -> None:
    """Live comparisons in turn, the program that has fewest first, until the time is over; one that was cut off goes on."""
    os.environ["OMP_NUM_THREADS"] = "1"
    box = prepare(work)
    ends = time.monotonic() + 60 * minutes
    while time.monotonic() < ends:
        done = Counter(line["program"] for line in read_lines(RESULTS / "live.jsonl") if line["factor"] == factor)
        program = min(programs, key=lambda name: (done[name], programs.index(name)))
        directory = work / f"{program}-{factor:g}-{done[program]}"
        began = time.monotonic()
        argv = (sys.executable, f"{program}.py")
        baseline, candidate = (Command(argv, env={"EXTRA": f"{more:.4f}"} if more > 0 else {}) for more in (factor - 1, 1 / factor - 1))
        judge = BothRules()
        asked = bench.Question(far=True)
        runs, verdict = bench.compare(box, baseline, candidate, directory, budget_s=BUDGET_S, question=asked, judge=judge)
        judge.ended(verdict, runs.starts)
        marks = {"program": program, "factor": factor, "verdict": done[program]}
        samples = {line["n"]: kept(line) for line in read_lines(directory / "steps.jsonl")}
        append_lines(RESULTS / "starts.jsonl", [{**marks, **to_plain(start), "samples": samples.get(start.n)} for start in runs.starts])
        spent, counted = seconds_of(runs.starts)
        line = {
            **marks,
            **{name: said_of(verdict, n, spent) for name, (verdict, n) in judge.decided.items()},
            "starts": len(runs.starts),
            "counted": counted,
            "took_s": round(time.monotonic() - began, 1),
            "load": round(os.getloadavg()[0], 2),
            "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        }
        append_lines(RESULTS / "live.jsonl", [line])
        shutil.rmtree(directory, ignore_errors=True)
        decisions = ", ".join(f"{name} {line[name]['decision']} after {line[name]['counted']}" for name in judge.decided)
        print(f"{program} {factor:g} #{done[program]}: {decisions}; {line['took_s']} s, load {line['load']}", flush=True)


def seconds_of(starts: Sequence[Start]) -> tuple[list[float], int]:
    """Program time, seconds, up to the end of each start that counts, what did not count included; and how many count."""
    up_to, spent = [], 0.0
    for start in starts:
        spent += start.spent_s
        if start.y is not None:
            up_to.append(spent)
    return up_to, len(up_to)


def said_of(verdict: SpeedVerdict, counted: int, spent: list[float]) -> dict:
    return {
        "decision": verdict.decision,
        "counted": counted,
        "program_s": round(spent[counted - 1], 1) if 0 < counted <= len(spent) else 0.0,
        "speedup": to_plain(verdict.speedup) if verdict.speedup else None,
        "least_detectable": verdict.least_detectable,
        "reason": verdict.reason,
    }


def kept(line: dict) -> dict[str, list[float]]:
    """Means of blocks of steps, milliseconds, of both sides."""
    found = {}
    for side in ("baseline", "candidate"):
        times = line[side][1]
        size = max(1, len(times) // SAMPLES)
        found[side] = [round(statistics.fmean(times[at : at + size]), 5) for at in range(0, size * min(SAMPLES, len(times)), size)]
    return found


def cost(pairs: int, steps: int = 2000, slice_steps: int = 25) -> None:
    """CPU time a step of a small program in a timed run, paced in slices, and of the same program bare; a bare pair as the control."""
    os.environ["OMP_NUM_THREADS"] = "1"
    with tempfile.TemporaryDirectory() as folder:
        box = prepare(Path(folder) / "work")
        command = Command((sys.executable, "counted.py", str(steps)))
        carried, control = [], []
        for number in range(pairs):
            bare, again = (_bare(box, command) for _ in range(2))
            timed = _timed(box, command, Path(folder) / f"timed-{number}", slice_steps)
            carried.append(timed - (bare + again) / 2)
            control.append(again - bare)
            print(f"bare {bare:.0f} and {again:.0f}, timed {timed:.0f} microseconds a step", flush=True)
    found = {
        "pairs": pairs,
        "carried_us": {"median": statistics.median(carried), "least": min(carried), "most": max(carried)},
        "bare_against_bare_us": {"median": statistics.median(control), "least": min(control), "most": max(control)},
        "load": os.getloadavg()[0],
    }
    print(json.dumps(found, indent=1))
    (RESULTS / "cost.json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


def _bare(box: Sandbox, command: Command) -> float:
    done = subprocess.run(command.argv, cwd=box.baseline, capture_output=True, text=True, check=True)
    return _said(done.stdout)


def _timed(box: Sandbox, command: Command, run_dir: Path, slice_steps: int) -> float:
    process = launch.start(box, "baseline", command, run_dir, capture="timing", pace=True)
    reins = process.reins
    assert reins is not None
    report = reins.hear(600, process.alive)
    while report is not None and not report.get("ended"):
        reins.tell(f"run {slice_steps}")
        report = reins.hear(600, process.alive)
    process.wait(60)
    return _said(process.finish().output_tail)


def _said(output: str) -> float:
    return float(output.partition("microseconds a step:")[2].split()[0])


def prepare(work: Path) -> Sandbox:
    """A sandbox of the programs, made once."""
    project = work / "project"
    known = next((work / "box").glob("**/sandbox.json"), None)
    if known is not None:
        return sandbox.load(known.parent)
    shutil.rmtree(work, ignore_errors=True)
    shutil.copytree(HERE / "verdict_programs", project, ignore=shutil.ignore_patterns("__pycache__"))
    git = ["git", "-C", str(project), "-c", "user.name=bench", "-c", "user.email=bench@localhost"]
    for words in (["init", "--quiet"], ["add", "--all"], ["commit", "--quiet", "--message", "programs"]):
        subprocess.run([*git, *words], check=True)
    return sandbox.create(project, work / "box")


def replay(times: int, seed: int) -> None:
    """Comparisons drawn from the recorded starts of programs against themselves."""
    pools: dict[str, list[Start]] = {}
    unusable = Counter()
    for line in read_lines(RESULTS / "starts.jsonl"):
        if line["factor"] == 1.0:
            start = from_plain(Start, {name: value for name, value in line.items() if name in Start.__dataclass_fields__}, "starts.jsonl")
            if start.y is None:
                unusable[line["program"]] += 1
            else:
                pools.setdefault(line["program"], []).append(start)
    rng = random.Random(seed)
    rows, totals = [], Counter()
    for program in [name for name in PROGRAMS if len(pools.get(name, ())) >= stats.LOOKS[1]]:
        pool = pools[program]
        ys = [start.y for start in pool if start.y is not None]
        row = {
            "program": program,
            "starts": len(pool),
            "unusable": unusable[program],
            "rms": math.sqrt(statistics.fmean(y * y for y in ys)),
        }
        row["start_s"] = statistics.fmean(start.spent_s for start in pool)
        for factor in (1.0, 1.10, 0.95):
            came = [play(rng, pool, factor) for _ in range(times)]
            decisions = Counter(decision for decision, _ in came)
            row[f"accept_{factor:g}"] = decisions["accept"] / times
            row[f"mean_starts_{factor:g}"] = statistics.fmean(used for _, used in came)
            totals[f"accept_{factor:g}"] += decisions["accept"]
            totals[f"of_{factor:g}"] += times
        blocks = [decision for pool_read in (pool, [swapped(start) for start in pool]) for decision in disjoint(pool_read)]
        row["disjoint"], row["disjoint_accepts"] = len(blocks), blocks.count("accept")
        rows.append(row)
        print(json.dumps(row))
    if not rows:
        print("no starts are recorded yet: run `live` first", file=sys.stderr)
        return
    known = {row["program"]: pools[row["program"]] for row in rows}
    as_often = smallest_fixed(random.Random(seed), known, times, {row["program"]: min(0.9, row["accept_1.1"]) for row in rows})
    ninety = smallest_fixed(random.Random(seed), known, times, dict.fromkeys(known, 0.9))
    spent = {row["program"]: (row["mean_starts_1"] + row["mean_starts_1.1"]) / 2 * row["start_s"] for row in rows}
    quiet = [row for row in rows if row["accept_1.1"] >= 0.9]
    summary = {
        "live": lived("speed"),
        "starts": sum(row["starts"] for row in rows),
        "programs": len(rows),
        "false_accepts": f"{totals['accept_1']} of {totals['of_1']}",
        "false_accepts_upper_95": upper(totals["accept_1"], totals["of_1"]),
        "power_at_1.10": totals["accept_1.1"] / totals["of_1.1"],
        "power_at_1.10_reached_by": [row["program"] for row in quiet],
        "accepts_at_0.95": f"{totals['accept_0.95']} of {totals['of_0.95']}",
        "disjoint_false_accepts": f"{sum(row['disjoint_accepts'] for row in rows)} of {sum(row['disjoint'] for row in rows)}",
        "fixed_same_power": {**as_often, "time_ratio": _ratio(spent, as_often["starts"], rows)},
        "fixed_power_0.9": {**ninety, "time_ratio": _ratio(spent, ninety["starts"], rows)},
        "sequential_starts": statistics.fmean((row["mean_starts_1"] + row["mean_starts_1.1"]) / 2 for row in rows),
        "sequential_s": spent,
    }
    print(json.dumps(summary, indent=1))
    (RESULTS / "replay.json").write_text(json.dumps({"summary": summary, "programs": rows}, indent=1) + "\n", encoding="utf-8")


def lived(rule: str) -> dict[str, dict[str, int]]:
    """Decisions of the live comparisons, by true speed."""
    came: dict[str, Counter] = {}
    for line in read_lines(RESULTS / "live.jsonl"):
        if rule in line:
            came.setdefault(f"{line['factor']:g}", Counter())[line[rule]["decision"]] += 1
    return {factor: dict(counts) for factor, counts in came.items()}


def _ratio(spent: dict[str, float], starts: int | None, rows: list[dict]) -> float | None:
    """Program time of the sequential rule ÷ that of `starts` starts for each program."""
    return sum(spent.values()) / sum(starts * row["start_s"] for row in rows) if starts else None


def play(rng: random.Random, pool: list[Start], factor: float) -> tuple[str, int]:
    """One comparison: starts drawn with random labels, the candidate `factor` times as fast, until the rule stops."""
    drawn: list[Start] = []
    while True:
        verdict = bench.judge_starts(drawn, affordable=stats.LOOKS[-1])
        if verdict.decision != "continue":
            return verdict.decision, len(drawn)
        start = rng.choice(pool)
        drawn.append(shifted(swapped(start) if rng.random() < 0.5 else start, factor))


def futility(times: int) -> None:
    """Print how comparisons end without and with the stop for futility, by noise of a start and true speed-up; half normal, half t3."""
    print("| noise of a start | true | accept | reject | ended as futile | starts |\n|---|---|---|---|---|---|")
    for sd, factor in ((sd, factor) for sd in (0.05, 0.105, 0.15, 0.24) for factor in (0.89, 1.0, 1.05, 1.1, 1.2)):
        ends = [
            [_ended(random.Random(f"{sd} {factor} {k}"), sd, factor, k % 2 == 0, chance) for k in range(times)]
            for chance in (0.0, stats.FUTILE)
        ]
        cells = [
            " → ".join(f"{sum(word == each for each, _ in one) / times:.1%}" for one in ends) for word in ("accept", "reject", "futile")
        ]
        used = " → ".join(f"{statistics.fmean(starts for _, starts in one):.1f}" for one in ends)
        print(f"| {sd:.3g} | {factor:g} | {' | '.join(cells)} | {used} |", flush=True)


def _ended(rng: random.Random, sd: float, factor: float, normal: bool, chance: float) -> tuple[str, int]:
    """How a comparison ends that stops for futility below `chance`, and after how many starts."""
    ys: list[float] = []
    before, stats.FUTILE = stats.FUTILE, chance
    try:
        while True:
            noise = rng.gauss(0, 1)
            if not normal:  # Student's t with three degrees of freedom, of the same variance
                noise /= math.sqrt(sum(rng.gauss(0, 1) ** 2 for _ in range(3)))
            ys.append(math.log(factor) + sd * noise)
            verdict = stats.decide(ys, ys, affordable=stats.LOOKS[-1])
            if verdict.decision != "continue":
                return "futile" if "any more" in verdict.reason else verdict.decision, len(ys)
    finally:
        stats.FUTILE = before


def disjoint(pool: list[Start]) -> list[str]:
    """Comparisons from starts in the order measured, each start used once."""
    decisions, drawn = [], []
    for start in pool:
        drawn.append(start)
        verdict = bench.judge_starts(drawn, affordable=stats.LOOKS[-1])
        if verdict.decision != "continue":
            decisions.append(verdict.decision)
            drawn = []
    return decisions


def smallest_fixed(rng: random.Random, pools: dict[str, list[Start]], times: int, wanted: dict[str, float]) -> dict:
    """The fewest starts, fixed beforehand, that find a true 1.10 as often as `wanted` with at most 1 false accept in 600.

    Its rule: the 95 % t-interval of the mean lies above 1.02 (the sequential rule's floor of the sd). `starts` is what serves all programs:
    nobody knows a program's noise before the first start; `by_program` is what an oracle would choose.
    """
    by_program: dict[str, int | None] = {}
    for program, pool in pools.items():
        for n in range(stats.LEAST_STARTS, MOST_FIXED + 1):
            rates = {factor: statistics.fmean(fixed_accepts(rng, pool, n, factor) for _ in range(times)) for factor in (1.10, 1.0)}
            if rates[1.10] >= wanted[program] and rates[1.0] <= 1 / 600:
                by_program[program] = n
                break
        else:
            by_program[program] = None
    known = [n for n in by_program.values() if n is not None]
    return {"by_program": by_program, "starts": max(known) if known else None}


def fixed_accepts(rng: random.Random, pool: list[Start], n: int, factor: float) -> bool:
    ys = []
    for _ in range(n):
        start = rng.choice(pool)
        ys.append((start.y or 0.0) * (1 if rng.random() < 0.5 else -1) + math.log(factor))
    sd = max(statistics.stdev(ys), stats.SD_FLOOR)
    return statistics.fmean(ys) - stats.t_quantile(0.975, n - 1) * sd / math.sqrt(n) > math.log(stats.LEAST_GAIN)


def swapped(start: Start) -> Start:
    """The start with the two programs' names exchanged."""
    sides = {}
    for name in Start.__dataclass_fields__:
        if name.startswith("baseline_"):
            other = name.replace("baseline_", "candidate_")
            sides |= {name: getattr(start, other), other: getattr(start, name)}
    return replace(start, y=-(start.y or 0.0), y_wall=-(start.y_wall or 0.0), **sides)


def shifted(start: Start, factor: float) -> Start:
    """The start as it would have been with a candidate `factor` times as fast in every step."""
    faster = {
        name: value / factor
        for name in ("candidate_step_ms", "candidate_p95_ms", "candidate_p99_ms")
        if (value := getattr(start, name)) is not None
    }
    return replace(start, y=(start.y or 0.0) + math.log(factor), y_wall=(start.y_wall or 0.0) + math.log(factor), **faster)


def upper(hits: int, of: int) -> float:
    """Upper end of the exact one-sided 95 % interval of a rate."""
    low, high = hits / of, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        tail = sum(math.comb(of, k) * middle**k * (1 - middle) ** (of - k) for k in range(hits + 1))
        low, high = (middle, high) if tail > 0.05 else (low, middle)
    return high


if __name__ == "__main__":
    sys.exit(main())
