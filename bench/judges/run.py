"""Which judge lets which broken speed-up pass, and which honest one it turns away: ours beside what other tools and people do.

Each change of the catalogue (`bench/fidelity`, and the kinds in `cases/` that harnesses were seen to let pass) is run once beside its base
under the recorder of `bench/fidelity/record.py`, which shares nothing with TrainFlash. What the other judges get is what they would have
seen: the loss of each update. Ours is the check that `trainflash verify` makes, without any consent. Raw curves and verdicts are kept in
bench/results/judges.json; a second call runs only what is missing.

    python bench/judges/run.py [--half kept|open|all] [--only NAME] [--judges PYTHON] [--fresh]

`--judges`: an interpreter that has profine, loadtune and codeflash (its own environment: `pip install profine==0.5.1 loadtune==0.3.0
codeflash==0.20.6` beside torch); without it they are left out.
"""

import argparse
import json
import math
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
FIDELITY = HERE.parent / "fidelity"
sys.path[:0] = [str(HERE.parent), str(FIDELITY)]

import run as catalogue  # noqa: E402  (bench/fidelity/run.py)
from kept_results import KeptResults  # noqa: E402

RESULTS = HERE.parent / "results" / "judges.json"
MOST_NAMES = 6
LIMIT_S = 120.0  # of one run; the base programs take a few seconds
OURS, FIVE, ONE = "trainflash", "one run, final loss within 5 %", "one run, every loss within 1e-2"


def cases(half, only):
    """The catalogue's cases that are broken or honest, and those of this folder."""
    found = [case for name in (("open", "kept") if half == "all" else (half,)) for case in catalogue.cases(name, only)]
    own = [
        json.loads(path.read_text()) | {"folder": path.parent, "half": "judges"} for path in sorted((HERE / "cases").glob("*/case.json"))
    ]
    chosen = [*found, *(case for case in own if not only or case["name"] in only)]
    return [case for case in chosen if case["label"] != "consent"]


def curve(program, change, work):
    """(the loss of each update, how the run ended) of a base program with a change (None: as it is)."""
    facts = json.loads((program / "program.json").read_text())
    shutil.rmtree(work, ignore_errors=True)
    shutil.copytree(program, work / "project", ignore=shutil.ignore_patterns("__pycache__", *facts["outputs"]))
    if change is not None:
        subprocess.run(["patch", "-s", "-p1", "-i", str(change)], cwd=work / "project", check=True)
    seed = [] if facts["seeded"] else ["--seed", "1"]
    words = [sys.executable, str(FIDELITY / "record.py"), "--out", str(work), *seed, "--", *facts["command"][1:]]
    try:
        code = subprocess.run(words, cwd=work / "project", capture_output=True, timeout=LIMIT_S).returncode
        ended = "done" if code == 0 else f"exit code {code}"
    except subprocess.TimeoutExpired:
        return [], "timed out"
    events = json.loads((work / "record.json").read_text())["events"]
    return losses(events), ended


def losses(events):
    """The mean of what was differentiated before each update of the first optimizer; a NaN is the word "nan", as JSON has none."""
    found, since = [], []
    for event in events:
        if event["kind"] == "backward":
            since.append(event["value"])
        elif event["kind"] == "step" and event["optimizer"] == 0 and since:
            found.append(sum(since) / len(since))
            since = []
    return [value if math.isfinite(value) else "nan" for value in found]


def people(old, new):
    """What a person who compares one run of each would let pass."""
    a, b = ([math.nan if value == "nan" else value for value in side] for side in (old, new))
    both = list(zip(a, b, strict=False))
    final = bool(both) and abs(a[-1] - b[-1]) <= 0.05 * abs(a[-1])
    return {FIVE: final, ONE: bool(both) and max(abs(x - y) for x, y in both) <= 1e-2 and not any(math.isnan(y) for y in b)}


def others(python, rows):
    """The comparators of other tools on all pairs of curves, by judge; none without an interpreter that has them."""
    if python is None:
        return {}
    pairs = json.dumps([[row["old"], row["new"]] for row in rows])
    done = subprocess.run([python, str(HERE / "foreign.py")], input=pairs, capture_output=True, text=True, check=True)
    print(done.stderr, end="", file=sys.stderr)
    return json.loads(done.stdout)


def table(chosen, rows, verdicts):
    """One line a judge: broken changes it lets pass, honest ones it turns away, and which."""
    lines = ["| judge | broken changes that pass | honest changes turned away |", "|---|---|---|"]
    for judge, passed in verdicts.items():
        cells = []
        for label, wrong in (("broken", True), ("honest", False)):
            of_label = [(case["name"], ok) for case, ok in zip(chosen, passed, strict=True) if case["label"] == label]
            names = [name for name, ok in of_label if ok == wrong]
            cells.append(f"{len(names)} of {len(of_label)}{': ' + ', '.join(names) if 0 < len(names) <= MOST_NAMES else ''}")
        lines.append(f"| {judge} | {' | '.join(cells)} |")
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--half", choices=["open", "kept", "all"], default="kept")
    parser.add_argument("--only", action="append", help="name of a case; may be repeated")
    parser.add_argument("--judges", help="an interpreter that has the other tools")
    parser.add_argument("--fresh", action="store_true", help="run again what has a result already")
    args = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = "1"
    chosen = cases(args.half, args.only)
    store = KeptResults(RESULTS, lambda row: "verdict" in row and "new" in row, fresh=args.fresh)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as temporary:
        bases, known = {}, {}
        for case in sorted(chosen, key=lambda case: case["base"]):
            key = f"{case['half']}/{case['name']}"
            if store.has(key):
                continue
            program = FIDELITY / "programs" / case["base"]
            if case["base"] not in known:
                known[case["base"]] = curve(program, None, Path(temporary, "curve"))[0]
                bases[case["base"]] = catalogue.Base(case["base"], Path(temporary), patience_s=LIMIT_S)
            new, ended = curve(program, case["folder"] / "change.diff", Path(temporary, "curve"))
            verdict = bases[case["base"]].judge(case)
            store.put(
                key, {"old": known[case["base"]], "new": new, "ended": ended, "verdict": verdict.get("verdict", "error"), "ours": verdict}
            )
            print(f"{key}: {case['label']}: {verdict.get('verdict', verdict.get('error'))}", file=sys.stderr, flush=True)
    rows = [store.rows[f"{case['half']}/{case['name']}"] for case in chosen]
    verdicts = {OURS: [row["verdict"] in ("same", "close") for row in rows]}
    by_people = [people(row["old"], row["new"]) for row in rows]
    verdicts |= {judge: [each[judge] for each in by_people] for judge in (ONE, FIVE)} | others(args.judges, rows)
    print(*table(chosen, rows, verdicts), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
