"""How far measured ceilings are from the real fix: `make bench-ceilings`.

Each program of `bench/ceilings/` is slow in one known way and reads PLANTED_FIX=1 as the fix by hand. Its ceiling comes from a diagnosis
with what-if replays of the slow version, the real speed-up from interleaved, paired starts of both versions, as verdicts
measure it. Rows are kept as they are measured, so that a bench that was cut off goes on where it was; `--again NAME` measures one
more time. The last line of the output is one JSON document.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path

from kept_results import KeptResults

from trainflash import stats
from trainflash.bench import STARTS_TO_AFFORD, measure
from trainflash.bench.estimate import estimate
from trainflash.errors import TrainFlashError
from trainflash.schema import Command, Diagnosis, Summary
from trainflash.workflow import diagnosing, session

PROGRAMS = Path(__file__).resolve().parent / "ceilings"
# What each program is slow by; the first finding of one of these kinds is the one whose ceiling counts.
PLANTED = {
    "decode": ("input_cpu",),
    "decode_workers": ("input_cpu",),
    "parse": ("input_cpu", "repeated_work"),
    "collate": ("collate",),
    "slow_disk": ("input_io",),
    "slow_disk_workers": ("input_io",),
    "stream": ("input_cpu",),
    "get_batch": ("input_cpu",),
    "mask": ("repeated_work", "host_code"),
    "evaluation": ("evaluation",),
    "checkpoint": ("checkpoint",),
    "log_flush": ("logging",),
    "metrics": ("host_code",),
    "anomaly": ("debug_api",),
    "anomaly_with": ("debug_api",),
    "recompute": ("recompute",),
    "collect": ("garbage_collection",),
    "restart_workers": ("worker_startup",),
}

LEAST_STARTS = 2  # a speed-up of 1.3 and more needs no verdict, only an interval
SLICES_S = 10.0  # of slices in each start


def command(fixed: bool) -> Command:
    return Command((sys.executable, "train.py"), env={"PLANTED_FIX": "1" if fixed else "0", "OMP_NUM_THREADS": "1"})


def measured(name: str, folder: Path, seconds: float, starts: int) -> dict:
    """One row: ceiling, real speed-up and error, or why there is none."""
    project = folder / name / "project"
    shutil.rmtree(project.parent, ignore_errors=True)
    project.mkdir(parents=True)
    shutil.copy(PROGRAMS / f"{name}.py", project / "train.py")
    opened = session.create(project, folder / name / "state", on_progress=say)
    began = time.monotonic()
    diagnosis, summary = diagnosing.diagnose(opened, command(False), seconds=seconds, ceilings=True)
    diagnosed_s = time.monotonic() - began
    row = {**ceiling_of(name, diagnosis, summary), "load": round(os.getloadavg()[0], 1), "diagnosed_s": round(diagnosed_s, 1)}
    ys = real_ys(opened, folder / name / "pairs", starts)
    if len(ys) < LEAST_STARTS:
        return row | {"reason": f"{len(ys)} usable starts of both versions"}
    real = stats.interval(ys)
    row |= {"real": math.exp(real.mean), "real_low": math.exp(real.low), "real_high": math.exp(real.high), "starts": real.n}
    if row.get("ceiling"):
        row["error"] = row["ceiling"] / row["real"] - 1
    return row


def real_ys(opened: session.Session, directory: Path, starts: int) -> list[float]:
    """log(slow ÷ fixed time of a step), one for each usable start of both versions, measured in turns."""
    commands = {"baseline": command(False), "candidate": command(True)}
    budget_s = STARTS_TO_AFFORD * SLICES_S
    pair = measure.Bench(opened.sandbox, commands, directory, time.monotonic() + 60 * starts + 60, budget_s)
    plan, ys = measure.Plan(), []
    for n in range(1, starts + 1):
        seen, plan = measure.resident(pair, n, plan, lambda done, total, n=n: say(f"start {n}, slices", done, total))
        start, _ = estimate(n, "resident", seen["baseline"], seen["candidate"], spent_s=0.0, even_slices=lambda slices: False)
        ys += [start.y] if start.y is not None else []
    return ys


def ceiling_of(name: str, diagnosis: Diagnosis, summary: Summary) -> dict:
    """The measured ceiling of the planted finding."""
    found = [finding for finding in diagnosis.findings if finding.kind in PLANTED[name]]
    first = diagnosis.findings[0].kind if diagnosis.findings else None
    if not found:
        return {"first": first, "reason": diagnosis.abstained or "not found"}
    finding = found[0]
    row = {"first": first, "kind": finding.kind, "bound": round(1 / (1 - min(0.99, finding.share)), 3)}
    if finding.ceiling is None or finding.ceiling.how != "measured":
        return row | {"reason": "; ".join(note for note in diagnosis.notes if "ceiling" in note) or "the ceiling is a bound"}
    what_if = next(each for each in summary.what_if if each.kind == finding.kind)
    interval = {"low": what_if.ci_low, "high": what_if.ci_high, "blocks": what_if.blocks}
    return row | {"replaced": what_if.replaced, "ceiling": what_if.speedup, **interval}


def say(label: str, done: int, total: int) -> None:
    print(f"\r\033[K{label} {done}", end="", file=sys.stderr, flush=True)


def table(rows: dict[str, dict]) -> dict:
    """Print all rows, and return the summary of their errors."""
    print(f"{'program':18} {'finding':16} {'replaced':18} {'bound':>6} {'ceiling':>8} {'real':>7} {'interval':>14} {'error':>7}")
    for name, row in rows.items():
        real = f"{row['real_low']:.2f} to {row['real_high']:.2f}" if "real" in row else ""
        figures = [f"{row[key]:.2f}" if row.get(key) else "-" for key in ("bound", "ceiling", "real")]
        error = f"{row['error']:+.1%}" if "error" in row else row.get("reason", "")
        print(
            f"{name:18} {row.get('kind', '-'):16} {row.get('replaced', '-')[:18]:18} {figures[0]:>6} {figures[1]:>8} "
            f"{figures[2]:>7} {real:>14} {error:>7}"
        )
    errors = sorted(abs(row["error"]) for row in rows.values() if "error" in row)
    if len(errors) < 2:
        return {"programs": len(rows), "with_error": len(errors)}
    p90 = statistics.quantiles(errors, n=10, method="inclusive")[8]
    bounds = [abs(row["bound"] / row["real"] - 1) for row in rows.values() if "error" in row]
    return {
        "programs": len(rows),
        "with_error": len(errors),
        "median_error": round(statistics.median(errors), 4),
        "p90_error": round(p90, 4),
        "median_error_of_bounds": round(statistics.median(bounds), 4),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", type=Path, default=Path(tempfile.gettempdir()) / "trainflash-bench-ceilings.json")
    parser.add_argument("--folder", type=Path, help="where projects and sandboxes lie; default: a temporary folder")
    parser.add_argument("--seconds", type=float, default=20.0, help="of each diagnosis")
    parser.add_argument("--starts", type=int, default=4, help="pairs of processes for each real speed-up")
    parser.add_argument("--again", nargs="*", default=[], choices=[*PLANTED, "all"])
    parser.add_argument("programs", nargs="*", default=[])
    arguments = parser.parse_args()
    kept = KeptResults(arguments.results, bool)
    folder = arguments.folder or Path(tempfile.mkdtemp(prefix="trainflash-bench-"))
    for name in arguments.programs or PLANTED:
        if kept.has(name) and name not in arguments.again and "all" not in arguments.again:
            continue
        try:
            kept.put(name, measured(name, folder, arguments.seconds, arguments.starts))
        except TrainFlashError as failed:
            kept.put(name, {"reason": failed.message})
        print(f"\r\033[K{name}: {json.dumps(kept.rows[name])}", file=sys.stderr, flush=True)
    rows = {name: kept.rows[name] for name in PLANTED if name in kept.rows}
    print(json.dumps({"schema": "bench_ceilings.v1", **table(rows), "rows": rows}))


if __name__ == "__main__":
    main()
