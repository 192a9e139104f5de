"""Runs `trainflash verify` over changes to real programs: an expert's, and what a hurried engineer would send.

`changes/NAME/` holds them as patches: `expert.diff` keeps the training (`expert.keeps` in the truth: exact, rounding, or order), each
other one breaks or changes it (`hurried` in the truth says how). Of public programs, whose code is not here, they lie below --base/changes.
An expert's is judged without any consent but `order` where it says so, the others with every consent that there is: what is accepted then
is printed with the names that it was accepted under. Raw results stay in bench/results/real_verdicts.json; a second call goes on.

    python bench/real/verdicts.py --base DIR [--only NAME] [--budget 8m] [--fresh]
"""

import argparse
import shlex
import sys
from pathlib import Path

from programs_of import HERE, catalogue, owners_copy

sys.path.append(str(HERE.parent))

from kept_results import KeptResults
from owners_project import answer

RESULTS = HERE.parent / "results" / "real_verdicts.json"
ALL = "order,precision,cadence,schedule,batch,shape,coverage,evaluation"


def changes(truth: dict, base: Path) -> list[Path]:
    folders = (HERE / "changes", base / "changes")
    return sorted(path for folder in folders for path in (folder / truth["name"]).glob("*.diff"))


def judged(truth: dict, change: Path, base: Path, trainflash: list[str], budget: str, limit_s: float) -> dict:
    """The verdict on one change, or the error."""
    expert = change.stem == "expert"
    agreed = "order" if expert and truth["expert"].get("keeps") == "order" else "" if expert else ALL
    consent = ["--allow", agreed] if agreed else []
    try:
        with owners_copy(truth, base) as (folder, command, environment):
            asked = [*trainflash, "verify", "--json", "--candidate", str(change), "--budget", budget, *consent, "--", *command]
            found = answer(asked, folder, environment, limit_s, holds="verdict")
    except FileNotFoundError as error:
        return {"error": str(error)}
    return {key: found.get(key) for key in ("verdict", "speedup", "training", "needs", "reasons", "wall_s", "error", "whole_run")}


def line(truth: dict, change: str, found: dict) -> str:
    if found.get("error"):
        return f"{truth['name']:28} {change:10} error: {found['error']}"
    speed, expert = found["speedup"] or {}, truth["expert"] if isinstance(truth["expert"], dict) else {}
    factor = f"{speed['mean']:.2f} [{speed['ci_low']:.2f}, {speed['ci_high']:.2f}]" if speed.get("mean") else "no factor"
    true = f", by the stopwatch {expert['gain']}" if change == "expert" else ""
    return f"{truth['name']:28} {change:10} {found['verdict']:16} {factor}{true}; {found['wall_s']:.0f} s; {found['reasons'][-1][:160]}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--base", type=Path, required=True, help="where public programs, changes to them, and interpreters lie")
    parser.add_argument("--only", action="append", help="name of a program; may be repeated")
    parser.add_argument("--budget", default="8m")
    parser.add_argument("--limit", type=float, default=700.0, help="seconds for one change")
    parser.add_argument("--fresh", action="store_true", help="run again what has a result already")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--trainflash", help="the command to test; default: this interpreter's trainflash")
    args = parser.parse_args()
    trainflash = shlex.split(args.trainflash) if args.trainflash else [sys.executable, "-m", "trainflash"]
    store = KeptResults(args.results, lambda row: bool(row.get("verdict")), fresh=args.fresh)
    base = args.base.resolve()
    rows = [(truth, change) for truth in catalogue("all", args.only) for change in changes(truth, base)]
    for truth, change in rows:
        key = f"{truth['name']}/{change.stem}"
        if not store.has(key):
            store.put(key, judged(truth, change, base, trainflash, args.budget, args.limit))
            print(line(truth, change.stem, store.rows[key]), file=sys.stderr, flush=True)
    found = [(change.stem == "expert", store.rows[f"{truth['name']}/{change.stem}"].get("verdict")) for truth, change in rows]
    print(*(line(truth, change.stem, store.rows[f"{truth['name']}/{change.stem}"]) for truth, change in rows), sep="\n")
    experts, others = ([verdict for expert, verdict in found if expert is which] for which in (True, False))
    print(f"experts' changes accepted: {experts.count('accept')} of {len(experts)}")
    print(f"hurried changes accepted, under every consent: {others.count('accept')} of {len(others)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
