"""How far the probe's phases are from timers placed by hand, in percentage points: `make bench-attribution`.

Each program of bench/attribution_programs carries its own timers (the truth) and runs once under the probe. Two figures a program, each
the largest error over all phases: of a typical step (the median step's share of each phase) and of the whole run, first steps included.
Steps in which the probe looked closer are in neither, as in every summary; nor are those before them, whose timers by hand end later.
Finished programs are kept in the result file and skipped; `--fresh` runs all of them again.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from kept_results import KeptResults

from trainflash.schema.runs import PHASES
from trainflash.trace import RankTrace, load

ROOT = Path(__file__).resolve().parents[1]
PROBE = ROOT / "src" / "trainflash" / "probe"
PROGRAMS = Path(__file__).parent / "attribution_programs"
OWN = (
    "plain", "workers", "iterable", "functional_loss", "written_loss", "loss_and_metrics", "metrics_between", "get_batch", "generator",
    "accumulation", "gan", "gan_five_to_one", "lbfgs", "manual", "own_optimizer", "functional", "actor_and_critic", "full_batch", "scaler",
    "compiled_module", "compiled_function", "teacher", "like_timm", "rollouts", "thread",
)  # fmt: skip
FRAMEWORKS = ("hugging_face", "accelerate", "fabric", "lightning", "lightning_validates")
TINY = ("tiny", "tiny_get_batch")
WARM = 10  # steps left out of the typical step
TARGETS = {"typical": 0.5, "whole": 1.5}
LIGHTNING_TARGETS = {"typical": 1.0, "whole": 3.5}


def truth(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """(nanoseconds of each phase in each step, wall of each step); an Eval holds all but Ckpt and Log inside it."""
    steps: list[np.ndarray] = []
    walls: list[int] = []
    current, stack = np.zeros(len(PHASES)), ["Other"]
    last = began = None
    for at, name, sign in json.loads(path.read_text()):
        if last is not None:
            holder = "Eval" if "Eval" in stack and stack[-1] not in ("Ckpt", "Log") else stack[-1]
            current[PHASES.index(holder)] += at - last
        if sign == 0:
            if began is not None:
                steps.append(current)
                walls.append(at - began)
            current, began = np.zeros(len(PHASES)), at
        elif sign > 0:
            stack.append(name)
        else:
            stack.pop()
        last = at
    return np.array(steps).T, np.array(walls)


def looked_closer(rank: RankTrace, steps: int) -> np.ndarray:
    """Which of the first `steps` steps are not compared."""
    slowed = np.array(rank.left_out, dtype=np.int64)
    return np.isin(np.arange(steps), [slowed, slowed - 1])


def typical(seen: np.ndarray, true: np.ndarray) -> np.ndarray:
    """Error of each phase in the median step, in points. Where both saw the same steps each is compared with itself."""
    first = min(WARM, seen.shape[1] // 4)
    seen, true = (100 * phase_ns[:, first:] / phase_ns[:, first:].sum(axis=0) for phase_ns in (seen, true))
    if seen.shape == true.shape:
        return np.median(seen - true, axis=1)
    return np.median(seen, axis=1) - np.median(true, axis=1)


def whole(seen: np.ndarray, true: np.ndarray) -> np.ndarray:
    """Error of each phase over the whole loop, in points. The first step is left out: what comes before its first event has no phase."""
    seen, true = (100 * phase_ns[:, 1:].sum(axis=1) / phase_ns[:, 1:].sum() for phase_ns in (seen, true))
    return seen - true


def compare(rank: RankTrace, marks: Path) -> dict:
    """The row of one program."""
    seen, wall = np.array([rank.phase_ns[name] for name in PHASES]), rank.wall_ns
    true, true_wall = truth(marks)
    load = os.getloadavg()[0]
    row: dict = {
        "load": load,
        "steps": int(wall.size),
        "true_steps": int(true_wall.size),
        "step_ms": round(float(np.median(true_wall)) / 1e6, 2),
    }
    seen, true = (phase_ns[:, ~looked_closer(rank, phase_ns.shape[1])] for phase_ns in (seen, true))
    for name, figure in (("typical", typical), ("whole", whole)):
        errors = figure(seen, true)
        worst = int(np.argmax(np.abs(errors)))
        row[name] = round(float(abs(errors[worst])), 2)
        row[f"{name}_phase"] = PHASES[worst]
        row[f"{name}_errors"] = {phase: round(float(error), 2) for phase, error in zip(PHASES, errors, strict=True) if abs(error) > 0.005}
    return row


def run(name: str, capture: str) -> dict:
    """Run one program under the probe; {"failed": …} where it cannot run here."""
    program = PROGRAMS / ("framework_loops.py" if name in FRAMEWORKS else "tiny_loops.py" if name in TINY else "own_loops.py")
    with tempfile.TemporaryDirectory() as folder:
        run_dir, marks = Path(folder, "run"), Path(folder, "marks.json")
        run_dir.mkdir()
        path = os.pathsep.join(filter(None, [str(PROBE), os.environ.get("PYTHONPATH")]))
        environment = {
            **os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": path, "TRAINFLASH_RUN": str(run_dir), "TRAINFLASH_OWN": str(PROGRAMS),
            "TRAINFLASH_CAPTURE": capture,
        }  # fmt: skip
        done = subprocess.run([sys.executable, program, name, marks], cwd=folder, env=environment, capture_output=True, text=True)
        if done.returncode:
            return {"failed": (done.stderr.strip().splitlines() or ["?"])[-1]}
        rank = load(run_dir).ranks[0]
        return {**compare(rank, marks), "swallowed": rank.swallowed}


def line(name: str, row: dict) -> str:
    if "failed" in row:
        return f"{name:22} {row['failed'][:100]}"
    target = LIGHTNING_TARGETS if name.startswith("lightning") else TARGETS
    missed = [figure for figure in target if row[figure] > target[figure]] + ["steps"] * (row["steps"] != row["true_steps"])
    note = "tiny steps" if name in TINY else f"misses {', '.join(missed)}" if missed else ""
    steps = f"{row['steps']}/{row['true_steps']}"
    figures = f"{row['typical']:6.2f} {row['typical_phase']:5} {row['whole']:6.2f} {row['whole_phase']:5}"
    return f"{name:22} {steps:>9} {row['step_ms']:8.2f}  {figures}  {note}".rstrip()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", nargs="*", help="only these")
    parser.add_argument("--capture", default="diagnose", choices=("diagnose", "timing"))
    parser.add_argument("--out", type=Path, default=Path("attribution.json"), help="result file (default: %(default)s)")
    parser.add_argument("--fresh", action="store_true", help="run finished programs again")
    arguments = parser.parse_args()
    known = KeptResults(arguments.out, lambda row: bool(row) and "failed" not in row, fresh=arguments.fresh)
    print(f"{'program':22} {'steps':>9} {'step ms':>8}  {'typical step':12} {'whole run':12}   (points; seen/true steps)")
    for name in arguments.programs or (*OWN, *FRAMEWORKS, *TINY):
        key = f"{name}/{arguments.capture}"
        if not known.has(key):
            known.put(key, run(name, arguments.capture))
        print(line(name, known.rows[key]), flush=True)


if __name__ == "__main__":
    main()
