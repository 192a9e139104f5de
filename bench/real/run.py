"""Runs `trainflash diagnose` over real programs and holds its answer against truths that other instruments gave.

`truths/` holds one file a program, written before the tool was run, by somebody who does not know the rules. Programs over PyPI's libraries
are in `programs/`; public ones are facts alone (repository, commit, command, sizes) and have to lie below --base, as their `folder` says,
with the interpreter that their `python` names. Half of the catalogue is set aside, by the first hex digit of the SHA-1 of its name (odd:
set aside). Raw results go to bench/results/real.json and are kept: a second call runs what is missing.

    python bench/real/run.py --base DIR [--half open|held|all] [--only NAME] [--fresh] [--runs 2] [--markdown FILE]
"""

import argparse
import shlex
import sys
from pathlib import Path

import yaml
from programs_of import HERE, catalogue, owners_copy
from score import Score, score, totals

sys.path.append(str(HERE.parent))

from kept_results import KeptResults
from owners_project import answer

RESULTS = HERE.parent / "results" / "real.json"
KEPT = ("findings", "sites", "phases", "abstained", "steps", "wall_s", "notes")


def diagnose(truth: dict, base: Path, trainflash: list[str], limit_s: float) -> dict:
    """The raw result of one program, with its call tree and all its sites, or the error."""
    try:
        with owners_copy(truth, base) as (folder, command, environment):
            document = answer([*trainflash, "diagnose", "--json", "--", *command], folder, environment, limit_s)
            if "error" in document:
                return document
            run = Path(document["sandbox"], "runs", document["run"])
            summary, tree = (yaml.safe_load((run / name).read_text(encoding="utf-8")) for name in ("summary.json", "call_tree.json"))
    except FileNotFoundError as error:
        return {"error": str(error)}
    return {**{key: document.get(key) for key in KEPT}, "all_sites": summary["sites"], "tree": tree["roots"], "trend": summary["trend"]}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--base", type=Path, required=True, help="where public programs and interpreters lie")
    parser.add_argument("--half", choices=["open", "held", "all"], default="open")
    parser.add_argument("--only", action="append", help="name of a program; may be repeated")
    parser.add_argument("--runs", type=int, default=1, help="times each program is diagnosed: do all name the same cause?")
    parser.add_argument("--fresh", action="store_true", help="run again what has a result already")
    parser.add_argument("--limit", type=float, default=400.0, help="seconds for one program")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--markdown", type=Path)
    parser.add_argument("--trainflash", help="the command to test; default: this interpreter's trainflash")
    args = parser.parse_args()
    trainflash = shlex.split(args.trainflash) if args.trainflash else [sys.executable, "-m", "trainflash"]
    store = KeptResults(args.results, lambda row: "findings" in row, fresh=args.fresh)
    chosen = catalogue(args.half, args.only)
    for truth in chosen:
        for number in range(args.runs):
            key = f"{truth['name']}/{number}"
            if not store.has(key):
                store.put(key, diagnose(truth, args.base.resolve(), trainflash, args.limit))
                print(score(truth, store.rows[key]).line(), file=sys.stderr, flush=True)
    rows = [score(truth, store.rows[f"{truth['name']}/0"]) for truth in chosen]
    firsts = [[Score.first_of(store.rows[f"{truth['name']}/{number}"]) for number in range(args.runs)] for truth in chosen]
    same = sum(len(set(each)) == 1 for each in firsts)
    lines = [row.line() for row in rows]
    sums = [*totals(rows), *([f"all {args.runs} runs name the same first cause: {same} of {len(firsts)}"] if args.runs > 1 else [])]
    print(*lines, *sums, sep="\n")
    if args.markdown:
        cells = ["| program | first finding | right | largest site shown | share, truth | phases off by |", "|---|---|---|---|---|---|"]
        args.markdown.write_text(
            "\n".join(["# Real programs", "", *(f"- {each}" for each in sums), "", *cells, *(row.cells() for row in rows), ""])
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
