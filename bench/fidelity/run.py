"""Runs the fidelity check over the catalogue of broken, honest and consent cases, and scores its verdicts.

Nothing is timed. Each base program gets a sandbox of its own in the work folder, and its recorded runs serve all of its cases, as they
do in `trainflash`. Raw verdicts go to bench/results/fidelity.json and are kept: a second call runs only what is missing or failed
(--fresh: all). Scores are computed from the raw verdicts each time. A consent case is judged twice, the second time with the owner's
consent.

    python bench/fidelity/run.py [--half open|kept] [--only NAME] [--jobs 1] [--fresh] [--work FOLDER]
"""

import argparse
import json
import os
import shutil
import sys
import tempfile
import time
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from score import consent_name, score

from trainflash import fidelity, sandbox
from trainflash.errors import TrainFlashError
from trainflash.schema import Command, to_plain

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE.parent))

from kept_results import KeptResults  # noqa: E402

RESULTS = HERE.parent / "results" / "fidelity.json"


def cases(half: str, only: list[str] | None) -> list[dict]:
    """All cases of a half, by base program."""
    found = [json.loads(path.read_text()) | {"folder": path.parent, "half": half} for path in sorted((HERE / half).glob("*/case.json"))]
    return [case for case in found if not only or case["name"] in only]


class Base:
    """One base program in a sandbox, whose baseline runs serve all of its cases. A candidate may hang for `patience_s` seconds."""

    def __init__(self, name: str, work: Path, patience_s: float = 600.0) -> None:
        self.patience_s = patience_s
        self.facts = json.loads((HERE / "programs" / name / "program.json").read_text())
        self.place = work / name
        shutil.rmtree(self.place, ignore_errors=True)
        shutil.copytree(
            HERE / "programs" / name, self.place / "project", ignore=shutil.ignore_patterns("__pycache__", *self.facts["outputs"])
        )
        self.sandbox = sandbox.create(self.place / "project", self.place / "sandbox")

    def judge(self, case: dict) -> dict:
        """The raw verdict on one case, or the error."""
        began = time.perf_counter()
        try:
            sandbox.checkout(self.sandbox, "candidate", self.sandbox.base_ref)
            sandbox.commit_diff(self.sandbox, (case["folder"] / "change.diff").read_text(), case["name"])
            found = self._check(case, frozenset())
            result = to_plain(found)
            if case["label"] == "consent":
                agreed = self._check(case, frozenset({consent_name(case), "numerics"}), resume=True)
                result["agreed"] = to_plain(agreed)
        except TrainFlashError as problem:
            result = {"error": f"{type(problem).__name__}: {problem.message}"}
        return result | {"wall_s": round(time.perf_counter() - began, 1)}

    def _check(self, case: dict, allowed: frozenset[str], resume: bool = False):
        python = sys.executable
        commands = [Command((python, *words[1:])) for words in (self.facts["command"], self.facts["resume"])]
        return fidelity.check(
            self.sandbox,
            commands[0],
            commands[0],
            self.place / "cases" / case["name"],
            allowed=allowed,
            restart=commands[1],
            resume=resume,
            baseline_record=self.place / "baseline-runs",
            bounds=fidelity.Bounds(
                whole_s=3600.0, most_s=3600.0, least_patience_s=self.patience_s
            ),  # whole programs, on however busy a machine
        )


def totals(rows: list[tuple[dict, object]]) -> list[str]:
    """One line for each label: how many are right."""
    lines = []
    words = {"broken": "refused with a right signal", "honest": "passed", "consent": "asked for by its name"}
    for label, what in words.items():
        part = [(case, found) for case, found in rows if case["label"] == label]
        if part:
            wrong = [case["name"] for case, found in part if not found.right]
            lines.append(f"{label}: {what} {len(part) - len(wrong)} of {len(part)}{' (not: ' + ', '.join(wrong) + ')' if wrong else ''}")
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--half", choices=["open", "kept"], default="open")
    parser.add_argument("--only", action="append", help="name of a case; may be repeated")
    parser.add_argument("--jobs", type=int, default=1, help="base programs at a time")
    parser.add_argument("--fresh", action="store_true", help="run again what has a verdict already")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--work", type=Path, help="folder for sandboxes and records, kept; default: a temporary one")
    args = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = "1"
    chosen = cases(args.half, args.only)
    store = KeptResults(args.results, lambda row: "verdict" in row, fresh=args.fresh)
    by_base: dict[str, list[dict]] = defaultdict(list)
    for case in chosen:
        if not store.has(f"{args.half}/{case['name']}"):
            by_base[case["base"]].append(case)

    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as temporary:
        work = args.work or Path(temporary)

        def judge(name: str) -> None:
            base = Base(name, work)
            for case in by_base[name]:
                store.put(f"{args.half}/{case['name']}", base.judge(case))
                row = score(case, store.rows[f"{args.half}/{case['name']}"])
                print(f"{case['name']}: {case['label']}: {'right' if row.right else 'WRONG'}: {row.note}", file=sys.stderr, flush=True)

        with ThreadPoolExecutor(args.jobs) as pool:
            list(pool.map(judge, sorted(by_base)))
    rows = [(case, score(case, store.rows[f"{args.half}/{case['name']}"])) for case in chosen]
    for case, row in rows:
        print(f"{'right' if row.right else 'WRONG'}  {case['label']:8} {case['name']:34} {row.note}")
    print(*totals(rows), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
