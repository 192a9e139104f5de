"""How much of what an expert saves by hand does `optimize auto` save? On the planted programs; all the usual knobs at once beside it.

For each program, in a copy with a repository of its own:

  expert   the hand edit that the program carries (planted/sides.py), timed against the slow side
  auto     `optimize auto` under a budget, with consent to exactly those kinds of change that the expert's edit makes (to evaluate,
           save or log less often is a change of cadence, whether a check can see it or not)
  usual    all the usual knobs at once (usual_knobs.py), timed in the same way, whatever it does to the training

"Broken" is judged without our own checks: the program ends well, makes as many steps, and prints the loss that it printed before, to 1e-3
(not asked of a program whose expert changes the loss too). Every arm is kept in results/optimize.json when it is done, and an unfinished
search goes on in --work, so a second call runs only what is missing.

    python bench/optimize.py [--half open|kept|all] [--only NAME] [--budget 300] [--all-kinds] [--fresh] [--report] [--markdown FILE]
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE / "planted")]

import sides  # noqa: E402
import usual_knobs  # noqa: E402
from programs import LAST_LINE, Program, command_of, copy_of, environment, programs  # noqa: E402
from run import make_repository  # noqa: E402

from trainflash import bench, knobs, sandbox  # noqa: E402
from trainflash.errors import TrainFlashError  # noqa: E402
from trainflash.schema import CONSENTS, Command, Verdict  # noqa: E402
from trainflash.workflow import diagnosing, owners_run, searching, session, verifying  # noqa: E402
from trainflash.workflow.verifying import Demands  # noqa: E402

RESULTS = HERE / "results" / "optimize.json"
ARMS = ("expert", "auto", "usual")
SAME_LOSS = 1e-3
SELDOM = dict.fromkeys(("evaluation", "checkpoint", "logging", "host_code"), frozenset({"cadence"}))
GOOD, MEDIAN_WANTED, MEAN_WANTED = 1.05, 0.9, 0.7  # an expert's gain below the first is inside the noise and scores nothing


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--half", choices=["open", "kept", "all"], default="open")
    parser.add_argument("--only", action="append", help="name of a program; may be repeated")
    parser.add_argument("--arms", default=",".join(ARMS))
    parser.add_argument("--budget", type=float, default=300.0, help="seconds at most for each arm")
    parser.add_argument("--all-kinds", action="store_true", help="also programs whose cause neither a knob nor a pattern answers")
    parser.add_argument("--fresh", action="store_true", help="run again what has a result already")
    parser.add_argument("--report", action="store_true", help="only say what the results are")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--work", type=Path, default=Path(tempfile.gettempdir()) / "trainflash-optimize")
    parser.add_argument("--markdown", type=Path)
    given = parser.parse_args()
    os.environ.update(environment())
    os.environ["XDG_STATE_HOME"] = str(given.work / "state")
    chosen = [each for each in programs(given.half, given.only) if given.all_kinds or given.only or source(each) != "nobody"]
    results: dict[str, dict[str, Any]] = json.loads(given.results.read_text()) if given.results.exists() else {}
    if not given.report:
        for program in chosen:
            key = f"{program.half}/{program.name}"
            if given.fresh:
                results.pop(key, None)
                shutil.rmtree(given.work / program.half / program.name, ignore_errors=True)
            row = results.setdefault(key, {"kind": program.manifest["kind"], "healthy": bool(program.manifest["healthy"])})
            row["source"] = source(program)
            for arm in given.arms.split(","):
                if arm in row or (arm == "expert" and row["healthy"]):
                    continue
                row[arm] = run_arm(arm, program, row, given.work, given.budget)
                save(given.results, results)
                print(f"{key} {arm}: {told(row[arm])}", file=sys.stderr, flush=True)
            shutil.rmtree(given.work / program.half / program.name, ignore_errors=True)
    shown = {key: results[key] for each in chosen if (key := f"{each.half}/{each.name}") in results}
    lines = [*summary(shown), "", *table(shown)]
    print("\n".join(lines))
    if given.markdown:
        given.markdown.write_text("\n".join(["# `optimize auto` beside the expert's edit", "", *lines, ""]))
    return 0


def source(program: Program) -> str:
    """Who can mend the planted cause: `knobs`, else an `author` with a pattern, else `nobody`; healthy programs are asked too.

    Those for an author stay in the selection and count as nothing saved where none was given: what became a pattern is not left out.
    """
    kind = program.manifest["kind"]
    if program.manifest["healthy"] or any(kind in knob.answers for knob in knobs.catalogue()):
        return "knobs"
    return "author" if any(kind in pattern.answers for pattern in knobs.patterns.catalogue()) else "nobody"


def save(path: Path, results: dict) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(dict(sorted(results.items())), indent=1) + "\n")


def run_arm(arm: str, program: Program, row: dict, work: Path, budget_s: float) -> dict[str, Any]:
    """The result of one arm; an error of ours or of the program is a result too."""
    began = time.perf_counter()
    try:
        found = opened(program, work)
        arms: dict[str, Callable[[], dict[str, Any]]] = {
            "expert": lambda: expert(program, found, budget_s),
            "auto": lambda: auto(program, found, row, budget_s),
            "usual": lambda: usual(program, found, budget_s),
        }
        return {**arms[arm](), "took_s": round(time.perf_counter() - began, 1)}
    except TrainFlashError as bad:
        return {"error": bad.message, "took_s": round(time.perf_counter() - began, 1)}


def opened(program: Program, work: Path) -> session.Session:
    """The sandbox of the program's slow side, made on the first call."""
    base = work / program.half / program.name
    if not (base / program.name / ".git").is_dir():
        shutil.rmtree(base, ignore_errors=True)
        base.mkdir(parents=True)
        project(program, base, sides.SLOW)
    return session.open_session(base / program.name)[0]


def project(program: Program, base: Path, switch: str | None) -> Path:
    """One side of the program in a repository of its own."""
    folder = copy_of(program, base)
    sides.write(folder, switch)
    make_repository(folder)
    return folder


def change(program: Program, edit: Callable[[Path], object]) -> str:
    """What `edit` changes in the slow side, as a diff."""
    with tempfile.TemporaryDirectory() as base:
        folder = project(program, Path(base), sides.SLOW)
        edit(folder)
        return subprocess.run(["git", "diff"], cwd=folder, capture_output=True, text=True, check=True).stdout


def expert(program: Program, found: session.Session, budget_s: float) -> dict[str, Any]:
    def by_hand(folder: Path) -> None:
        with tempfile.TemporaryDirectory() as base:
            fixed = copy_of(program, Path(base))
            sides.write(fixed, sides.EXPERT)
            shutil.copytree(fixed, folder, dirs_exist_ok=True)

    with found.locked():
        return compared(program, found, change(program, by_hand), "expert", budget_s)


def usual(program: Program, found: session.Session, budget_s: float) -> dict[str, Any]:
    done: list[str] = []
    diff = change(program, lambda folder: done.extend(usual_knobs.apply(folder)))
    if not diff:
        return {"speedup": 1.0, "did": [], "broken": None, "note": "none of them applies"}
    with found.locked():
        return {"did": done, **compared(program, found, diff, "usual", budget_s)}


def compared(program: Program, found: session.Session, diff: str, name: str, budget_s: float) -> dict[str, Any]:
    """Whether the changed program still does what it did, what our own check says of it, and its speed-up whatever that is."""
    command = Command(tuple(command_of(program)))
    known = diagnosing.latest(found, command) or diagnosing.diagnose(found, command)
    base, place = found.sandbox.base_ref, found.directory / "bench" / name
    found.rest()
    found.take("candidate", base)
    commit = sandbox.commit_diff(found.sandbox, diff, name)
    row = broken(program, Path(found.sandbox.baseline), Path(found.sandbox.worktree))
    if str(row["broken"]).startswith("exit"):
        found.rest()
        return {"speedup": None, **row}
    demands = Demands(budget_s=budget_s, allowed=frozenset(CONSENTS))
    judged, _ = verifying.compare(found, base, commit, command, command, place, demands)
    row |= {"fidelity": judged.fidelity.verdict, "changed": list(judged.fidelity.changed)} if judged.fidelity else {}
    row |= {"speedup": judged.speedup.mean if judged.speedup else None, "ci": interval(judged), "note": outcome(judged)}
    if judged.speedup is None and str(row["note"]).startswith("fidelity"):
        found.take("baseline", base)
        found.take("candidate", commit)
        question = bench.Question(first_epoch=owners_run.know(known, budget_s).first_epoch)
        _, speed = bench.compare(found.sandbox, command, command, place / "timing", budget_s=budget_s, question=question)
        row |= {"speedup": speed.speedup.mean if speed.speedup else None, "ci": interval(speed), "note": f"{row['note']}; {speed.reason}"}
    found.rest()
    return row


def auto(program: Program, found: session.Session, row: dict, budget_s: float) -> dict[str, Any]:
    command = Command(tuple(command_of(program)))
    allowed = (frozenset(row.get("expert", {}).get("changed", ())) | SELDOM.get(row["kind"], frozenset())) & frozenset(CONSENTS)
    found = replace(found, on_progress=said)
    with found.locked():
        came_to = searching.auto(found, command, Demands(budget_s=budget_s, allowed=allowed), budget_s=budget_s)
        accepted = found.accepted()
        change = sandbox.diff(found.sandbox, found.sandbox.base_ref, found.tip())
    plan = found.plan()
    refused = plan.refused if plan else ()
    best = came_to.combined if came_to.combined and came_to.combined.verdict == "accept" else None
    checked = broken(program, Path(found.sandbox.baseline), Path(found.sandbox.worktree)) if accepted else {"broken": None}
    return {
        "speedup": best.speedup.mean if best and best.speedup else 1.0,
        "ci": interval(best) if best else None,
        "accepted": [f"{one.knob}={one.value}" for one in accepted],
        "tried": [f"{one.knob}={one.value}: {one.decision}: {outcome(one.verdict)}" for one in came_to.experiments],
        "allowed": sorted(allowed),
        "findings": [finding.kind for finding in came_to.before.findings],
        "refused": [f"{each.knob}: {each.reason}" for each in refused],
        "spent_s": came_to.spent_s,
        "ending": came_to.ending,
        "stopped_because": came_to.stopped_because,
        "diff": change,
        **checked,
    }


def said(label: str, done: int, total: int) -> None:
    if label.startswith("experiment"):
        print(f"    {label}", file=sys.stderr, flush=True)


def outcome(judged: Verdict | None) -> str:
    return judged.reasons[0] if judged and judged.reasons else ""


def interval(judged: Any) -> list[float] | None:
    return [round(judged.speedup.ci_low, 3), round(judged.speedup.ci_high, 3)] if judged.speedup else None


def broken(program: Program, before: Path, after: Path) -> dict[str, Any]:
    """What the program prints at its end before and after; `broken` says what is wrong (None: nothing)."""
    steps = {"PLANTED_STEPS": str(program.manifest.get("proof_steps") or 60)} if program.manifest.get("measure") != "whole" else {}
    said = []
    for folder in (before, after):
        with tempfile.TemporaryDirectory() as base:
            copy = Path(shutil.copytree(folder, Path(base, "p"), ignore=shutil.ignore_patterns(".git")))
            try:
                done = subprocess.run(
                    command_of(program), cwd=copy, env={**os.environ, **steps}, capture_output=True, text=True, timeout=600, check=False
                )
            except subprocess.TimeoutExpired:
                return {"broken": "exit: it did not end within 600 s"}
        match = LAST_LINE.search(done.stdout + done.stderr)
        if done.returncode or not match:
            return {"broken": f"exit {done.returncode}: {(done.stderr.strip().splitlines() or ['no last line'])[-1]}"}
        said.append((int(match[1]), float(match[3])))
    (ours, loss), (theirs, new) = said
    why = None
    if ours != theirs:
        why = f"{theirs} steps instead of {ours}"
    elif program.manifest.get("same_loss", True) and not abs(new - loss) <= SAME_LOSS * max(1.0, abs(loss)):
        why = f"loss {new:.6g} instead of {loss:.6g}"
    return {"broken": why}


def saved(arm: dict | None) -> float | None:
    """Share of the time that an arm saves; a slower or undecided one saves nothing."""
    if not arm or arm.get("speedup") is None:
        return None if not arm or "error" not in arm else 0.0
    return max(0.0, 1 - 1 / arm["speedup"])


def ratio(row: dict, arm: str) -> float | None:
    """What an arm saves, of what the expert saves; a broken program saves nothing. None: nothing to compare with."""
    expert, own = saved(row.get("expert")), saved(row.get(arm))
    if expert is None or own is None or row["expert"].get("speedup", 0.0) < GOOD:
        return None
    return 0.0 if row[arm].get("broken") else min(own / expert, 1.5)


def told(arm: dict) -> str:
    if "error" in arm:
        return f"error: {arm['error']}"
    gain = "not measured" if arm.get("speedup") is None else f"{arm['speedup']:.2f}x"
    spoilt = f"BROKEN {arm['broken']}" if arm.get("broken") else ""
    parts = (gain, spoilt, ", ".join(arm.get("accepted", ())), arm.get("stopped_because", ""), f"{arm['took_s']} s")
    return "; ".join(part for part in parts if part)


def summary(results: dict[str, dict]) -> list[str]:
    rows = [row for row in results.values() if not row["healthy"]]
    healthy = [row for row in results.values() if row["healthy"] and "auto" in row]
    lines = []
    for arm in ("auto", "usual"):
        ratios = [each for row in rows if (each := ratio(row, arm)) is not None]
        ran = [row[arm] for row in results.values() if arm in row]
        if ratios:
            whole = (
                f"{statistics.median(ratios):.0%} of the time saved by the expert in the median, {statistics.mean(ratios):.0%} on average"
            )
            spoilt = f"broken {sum(bool(each.get('broken')) for each in ran)} of {len(ran)}"
            took = f"median {statistics.median(each['took_s'] for each in ran):.0f} s a program"
            lines.append(f"- {arm}: {whole}, over {len(ratios)} programs; {spoilt}; {took}")
    accepted = [key for key, row in results.items() if row["healthy"] and row.get("auto", {}).get("accepted")]
    lines.append(f"- healthy programs: {len(healthy)}, something accepted in {len(accepted)} {' '.join(accepted)}".rstrip())
    wanted = f"{MEDIAN_WANTED:.0%} in the median, {MEAN_WANTED:.0%} on average"
    lines.append(f"- wanted of auto: {wanted}, none broken, nothing accepted in healthy ones")
    return lines


def table(results: dict[str, dict]) -> list[str]:
    head = ("program", "cause", "source", "expert", "auto", "of it", "accepted, or why not", "program time", "usual knobs", "of it")
    lines = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    for key, row in results.items():
        own = row.get("auto", {})
        came_to = ", ".join(own.get("accepted", ())) or own.get("stopped_because") or own.get("error", "")
        spent = f"{own['spent_s']:.0f} s" if "spent_s" in own else ""
        cells = [key, row["kind"], row.get("source", ""), gained(row.get("expert")), gained(own), share(ratio(row, "auto")), came_to, spent]
        cells += [gained(row.get("usual")), share(ratio(row, "usual"))]
        lines.append("| " + " | ".join(str(cell).replace("|", "\\|") for cell in cells) + " |")
    return lines


def gained(arm: dict | None) -> str:
    if not arm:
        return ""
    if "error" in arm:
        return "error"
    return ("–" if arm.get("speedup") is None else f"{arm['speedup']:.2f}×") + (f", broken: {arm['broken']}" if arm.get("broken") else "")


def share(value: float | None) -> str:
    return "" if value is None else f"{value:.0%}"


if __name__ == "__main__":
    sys.exit(main())
