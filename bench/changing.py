"""Programs whose steps change along the run: is a verdict's factor of the whole run true? Whole runs of both versions are the truth.

    python bench/changing.py                     everything that is not measured yet, then the table
    python bench/changing.py --minutes 20        as much as that time allows; it goes on there
    python bench/changing.py --only late_leak    one program
    python bench/changing.py --score             the table alone

Truth: CPU seconds of whole runs, both versions in turn, without the probe; these programs have one thread and wait for nothing.
Beside the verdict stands what its first steps alone would have said. Everything measured is appended to results/changing/.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from kept_results import append_lines, read_lines
from owners_project import make_repository

from trainflash import bench, sandbox, stats
from trainflash.schema import Command, Sandbox, to_plain

HERE = Path(__file__).resolve().parent
PROGRAMS = HERE / "changing_programs"
RESULTS = HERE / "results" / "changing"
PAIRS = 3
BUDGET_S = 420.0  # on a busy machine a start of two whole runs takes a minute
SIDES = ("baseline", "candidate")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=math.inf)
    parser.add_argument("--only", default="")
    parser.add_argument("--score", action="store_true")
    parser.add_argument("--budget", type=float, default=BUDGET_S, help="seconds for a verdict; other budgets are kept apart")
    parser.add_argument("--pairs", type=int, default=PAIRS, help="whole runs of each version, for the truth")
    parser.add_argument("--work", type=Path, default=Path(tempfile.gettempdir()) / "trainflash-changing")
    given = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = "1"
    RESULTS.mkdir(parents=True, exist_ok=True)
    names = given.only.split(",") if given.only else sorted(path.stem for path in PROGRAMS.glob("*.py") if path.stem != "task")
    ends = time.monotonic() + 60 * given.minutes
    for name in [] if given.score else names:
        if time.monotonic() < ends:
            judge(name, given.budget, given.work / digest())
        while time.monotonic() < ends and len(known("truth", name)) < given.pairs:
            append_lines(RESULTS / "truth.jsonl", [{"program": name, **pair(name, len(known("truth", name)))}])
    score(names, given.budget)
    return 0


def known(kind: str, name: str) -> list[dict]:
    return [line for line in read_lines(RESULTS / f"{kind}.jsonl") if line["program"] == name]


def steps_of(name: str) -> int:
    """How many steps a program makes: its loop says so."""
    return int(re.findall(r"^for \w+ in range\((\d+)\):", (PROGRAMS / f"{name}.py").read_text(encoding="utf-8"), re.MULTILINE)[-1])


def pair(name: str, number: int) -> dict[str, float]:
    """CPU seconds of one whole run of each version."""
    return {side: cpu_s([sys.executable, f"{name}.py", side]) for side in (SIDES if number % 2 == 0 else reversed(SIDES))}


def cpu_s(argv: list[str]) -> float:
    process = subprocess.Popen(argv, cwd=PROGRAMS)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(argv)} ended with {process.returncode}")
    return round(used.ru_utime + used.ru_stime, 3)


def judge(name: str, budget_s: float, work: Path) -> None:
    """The verdict on a program, once."""
    if any(line["budget_s"] == budget_s for line in known("verdicts", name)):
        return
    box, directory, steps = prepare(work), work / f"{name}-{budget_s:g}", steps_of(name)
    baseline, candidate = (Command((sys.executable, f"{name}.py", side)) for side in SIDES)
    began = time.monotonic()
    question = bench.Question(far=True, run_steps=steps)
    runs, verdict = bench.compare(box, baseline, candidate, directory, budget_s=budget_s, question=question)
    verdict = bench.with_costs(verdict, runs.starts, bench.OwnersRun(steps), course=bench.course_of(directory, runs.starts))
    early = [start.y for start in runs.starts if start.y is not None]
    line = {
        "program": name,
        "budget_s": budget_s,
        "decision": verdict.decision,
        "reason": verdict.reason,
        "whole_run": to_plain(verdict.whole_run) if verdict.whole_run else None,
        "speedup": to_plain(verdict.speedup) if verdict.speedup else None,
        "early": math.exp(statistics.fmean(early)) if early else None,
        "starts": len(runs.starts),
        "took_s": round(time.monotonic() - began, 1),
        "load": round(os.getloadavg()[0], 2),
    }
    append_lines(RESULTS / "verdicts.jsonl", [line])
    shutil.rmtree(directory, ignore_errors=True)
    print(f"{name}: {verdict.decision} after {line['took_s']} s; {verdict.reason}", flush=True)


def prepare(work: Path) -> Sandbox:
    """A sandbox of the programs, made once."""
    known = next((work / "box").glob("**/sandbox.json"), None)
    if known is not None:
        return sandbox.load(known.parent)
    project = work / "project"
    shutil.rmtree(work, ignore_errors=True)
    shutil.copytree(PROGRAMS, project, ignore=shutil.ignore_patterns("__pycache__"))
    make_repository(project)
    return sandbox.create(project, work / "box")


def digest() -> str:
    """Of all programs."""
    return hashlib.sha256(b"".join(path.read_bytes() for path in sorted(PROGRAMS.glob("*.py")))).hexdigest()[:12]


def score(names: list[str], budget_s: float) -> None:
    """Each program's true factor beside what was said of it; then how often that was right."""
    rows = [row for name in names if (row := of_program(name, budget_s)) is not None]
    for row in rows:
        print(json.dumps(row))
    claimed = [row for row in rows if row["said"] is not None]
    print(
        json.dumps(
            {
                "programs": len(rows),
                "claims": len(claimed),
                "inside": sum(row["inside"] for row in claimed),
                "accepted_though_slower": sum(row["decision"] == "accept" and row["true"] < 1 for row in rows),
                "rejected_though_faster": sum(row["decision"] == "reject" and row["true"] > stats.LEAST_GAIN for row in rows),
                "inconclusive": sum(row["decision"] == "inconclusive" for row in rows),
                "median_s": statistics.median(row["took_s"] for row in rows) if rows else None,
            },
            indent=1,
        )
    )


def of_program(name: str, budget_s: float) -> dict | None:
    pairs = known("truth", name)
    found = next((line for line in known("verdicts", name) if line["budget_s"] == budget_s), None)
    if not pairs or found is None:
        return None
    ratios = [math.log(each["baseline"] / each["candidate"]) for each in pairs]
    whole = found["whole_run"] or {}
    true = math.exp(statistics.fmean(ratios))
    said = whole.get("speedup")
    return {
        "program": name,
        "true": round(true, 3),
        "true_se": round(statistics.stdev(ratios) / math.sqrt(len(ratios)), 3) if len(ratios) > 1 else None,
        "said": said and round(said, 3),
        "interval": [round(whole["ci_low"], 3), round(whole["ci_high"], 3)] if said else None,
        "inside": bool(said and whole["ci_low"] <= true <= whole["ci_high"]),
        "basis": whole.get("basis"),
        "first_steps": found["early"] and round(found["early"], 3),
        "decision": found["decision"],
        "starts": found["starts"],
        "took_s": found["took_s"],
    }


if __name__ == "__main__":
    sys.exit(main())
