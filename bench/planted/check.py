"""Proves that each planted program is slow for the planted reason: it runs with and without its fix, in turn.

Each program prints "N steps in S s, loss L" at its end. The switch PLANTED_FIX=1 removes the planted cause (2: the second of two competing
causes), PLANTED_STEPS limits the steps. A program of one process that waits for nothing is timed by its own CPU time (other
load on the machine does not count), others by the clock. Results go to proof.json beside this file: the step times, the speed-up of the
best of each (other load on the machine only adds), the losses.

    python bench/planted/check.py [--half open|kept|all] [--only NAME] [--rounds 3] [--missing]
"""

import argparse
import atexit
import contextlib
import json
import os
import runpy
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from pathlib import Path

from programs import HERE, LAST_LINE, Program, command_of, copy_of, environment, programs

PROOF = HERE / "proof.json"
NEEDED = 1.3


def forkable(program: Program) -> bool:
    """Can the program run in a fork of this process, which has torch loaded? Launchers, shells and spawned workers can't;
    nor programs whose cost depends on what else is in memory."""
    command = program.manifest["command"]
    plain = command[0] == "python" and "torch.distributed.run" not in command and program.manifest.get("fork", True)
    return plain and not any('"spawn"' in path.read_text() for path in program.folder.rglob("*.py"))


def in_fork(program: Program, folder: Path, extra: dict[str, str], out: Path) -> int:
    """Runs the program in a fork; its output goes to `out`. Saves the imports, which dwarf the steps."""
    sys.stdout.flush()
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    code = 1
    try:
        atexit._clear()  # the parent's, such as removing the temporary folder
        os.setsid()
        signal.alarm(300)
        os.chdir(folder)
        os.environ.update(environment() | extra)
        with open(out, "w") as file:
            os.dup2(file.fileno(), 1)
            os.dup2(file.fileno(), 2)
        if program.manifest.get("clock", "cpu") == "cpu":
            time.time = time.perf_counter = time.process_time
        args = program.manifest["command"][1:]
        sys.path[0] = str(folder)
        sys.modules.pop("programs", None)  # ours; a program may have a module of that name
        if args[0] == "-m":
            sys.argv = args[1:]
            runpy.run_module(args[1], run_name="__main__", alter_sys=True)
        else:
            sys.argv = args
            runpy.run_path(args[0], run_name="__main__")
        code = 0
    except SystemExit as leaving:
        code = int(leaving.code or 0)
    except BaseException:
        traceback.print_exc()
    finally:
        with contextlib.suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
            atexit._run_exitfuncs()
        os._exit(code)


def one_run(program: Program, folder: Path, fix: str, steps: int | None) -> tuple[float, str]:
    """Milliseconds per step (of the whole run where the manifest says so), and the loss as printed."""
    extra = {"PLANTED_FIX": fix} | ({} if steps is None else {"PLANTED_STEPS": str(steps)})
    out = folder.parent / "out.txt"
    began = time.perf_counter()
    if forkable(program):
        code = in_fork(program, folder, extra, out)
    else:
        with open(out, "w") as file:
            code = subprocess.run(
                command_of(program), cwd=folder, env=os.environ | environment() | extra, stdout=file, stderr=file, timeout=300, check=False
            ).returncode
    whole = time.perf_counter() - began
    text = out.read_text(errors="replace")
    found = LAST_LINE.search(text)
    if code or not found:
        raise RuntimeError(f"{program.name} with PLANTED_FIX={fix}: exit {code}\n{text[-2000:]}")
    count, seconds, loss = int(found[1]), float(found[2]), found[3]
    if program.manifest.get("measure") == "whole":
        return whole * 1000, loss
    return seconds * 1000 / count, loss


def prove(program: Program, rounds: int) -> dict:
    """Interleaved runs of one program; `ok` says whether the plant dominates and the losses agree where they should."""
    fixes = ["0"] if program.manifest["healthy"] else ["0", "1", "2"] if "second" in program.manifest else ["0", "1"]
    steps = None if program.manifest.get("measure") == "whole" else program.manifest.get("proof_steps", 60)
    times: dict[str, list[float]] = {fix: [] for fix in fixes}
    losses: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as base:
        folder = copy_of(program, Path(base))
        for _ in range(rounds):
            for fix in fixes:
                ms, losses[fix] = one_run(program, folder, fix, steps)
                times[fix].append(ms)
    best = {fix: min(values) for fix, values in times.items()}
    clock = program.manifest.get("clock", "cpu") if forkable(program) and program.manifest.get("measure") != "whole" else "wall"
    rounded = {fix: [round(v, 2) for v in values] for fix, values in times.items()}
    row = {"steps": steps, "clock": clock, "ms": rounded, "loss": losses, "ok": True}
    if "1" in fixes:
        row["speedup"] = round(best["0"] / best["1"], 2)
        row["same_loss"] = abs(float(losses["0"]) - float(losses["1"])) <= 1e-3 * max(1.0, abs(float(losses["0"])))
        row["ok"] = row["speedup"] >= NEEDED and (row["same_loss"] or not program.manifest.get("same_loss", True))
    if "2" in fixes:
        row["speedup_second"] = round(best["0"] / best["2"], 2)
        row["ok"] = row["ok"] and row["speedup"] >= 1.2 * row["speedup_second"]
    return row


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--half", choices=["open", "kept", "all"], default="all")
    parser.add_argument("--only", action="append", help="name of a program; may be repeated")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--missing", action="store_true", help="skip programs that are proved already")
    args = parser.parse_args()
    proof = json.loads(PROOF.read_text()) if PROOF.exists() else {}
    failed = 0
    os.environ["OMP_NUM_THREADS"] = "1"
    import accelerate  # noqa: F401
    import transformers.trainer  # noqa: F401

    for program in programs(args.half, args.only):
        key = f"{program.half}/{program.name}"
        if args.missing and proof.get(key, {}).get("ok"):
            continue
        try:
            row = prove(program, args.rounds)
        except (RuntimeError, subprocess.TimeoutExpired) as error:
            row = {"ok": False, "error": str(error)[-1500:]}
        proof = json.loads(PROOF.read_text()) if PROOF.exists() else {}  # another half may be proved at the same time
        proof[key] = row
        failed += not row["ok"]
        print(key, "ok" if row["ok"] else "NOT PROVED", {k: v for k, v in row.items() if k != "ok"}, flush=True)
        PROOF.write_text(json.dumps(dict(sorted(proof.items())), indent=1) + "\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
