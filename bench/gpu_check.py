"""Everything that only a CUDA device can show, in one table: `make gpu-check`, under 8 minutes.

Runs the tests marked `gpu`, small real programs of `bench/gpu/` under the probe (each must lead to the finding that it is named after),
device times against synchronised timers, and the probe's cost. Each check stands alone: one that fails hides no other. Without a CUDA
device it says so and ends well. `--record` appends the table to `bench/RESULTS-gpu.md`; `--json` prints one JSON document.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PROBE = ROOT / "src" / "trainflash" / "probe"
PROGRAMS = ROOT / "bench" / "gpu"
RESULTS = ROOT / "bench" / "RESULTS-gpu.md"
BUDGET_S = 360.0  # no check begins later; the longest may take two minutes more
ONE_S = 120.0
RULES = (
    "launch_overhead", "sync_point", "h2d", "precision", "memory_format", "attention_kernel", "optimizer", "recompute", "memory_pressure",
    "compute",
)  # fmt: skip
DEVICE_ERROR = 0.1  # of the synchronised timer, or 0.2 ms: a synchronised phase begins on an idle device, an unsynchronised one does not
MOST_COST_US = 100.0  # a step under `diagnose`; a dozen boundaries at 5 µs, and the hooks that a CPU has too
MOST_TIMING_US = 20.0


@dataclass(frozen=True)
class Check:
    """One row: `ok` None means that it was not run."""

    name: str
    ok: bool | None
    found: str
    expected: str
    seconds: float


def main() -> int:
    """Run all checks; 0 when none failed, also without a device."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", dest="as_json")
    parser.add_argument("--record", action="store_true", help="append the table to bench/RESULTS-gpu.md")
    parser.add_argument("--only", help="checks whose name contains this")
    arguments = parser.parse_args()
    device = device_name()
    if device is None:
        sentence = "skipped: torch sees no CUDA device here, so nothing was checked"
        print(json.dumps({"device": None, "status": "skipped", "reason": sentence, "checks": []}) if arguments.as_json else sentence)
        return 0
    made = run_all(arguments.only)
    facts = {"device": device, "date": datetime.now(timezone.utc).strftime("%Y-%m-%d"), "commit": commit(), "torch": torch_version()}
    if arguments.as_json:
        print(json.dumps({**facts, "status": status(made), "checks": [asdict(check) for check in made]}))
    else:
        print(f"{facts['device']}, torch {facts['torch']}, commit {facts['commit']}\n{table(made)}")
    if arguments.record:
        with RESULTS.open("a", encoding="utf-8") as results:
            results.write(f"\n## {facts['date']}, {device}, commit {facts['commit']}, torch {facts['torch']}\n\n{table(made)}\n")
    return 1 if status(made) == "failed" else 0


def run_all(only: str | None) -> list[Check]:
    """Every check in turn, until the time is used up."""
    began, made = time.monotonic(), []
    for name, expected, check in checks():
        if only and only not in name:
            continue
        at = time.monotonic()
        if at - began > BUDGET_S:
            made.append(Check(name, None, "out of time", expected, 0.0))
            continue
        try:
            ok, found = check()
        except Exception as error:  # one check must not hide the others
            ok, found = False, f"{type(error).__name__}: {error}"[:300]
        made.append(Check(name, ok, found, expected, round(time.monotonic() - at, 1)))
        print(f"{'ok' if ok else 'FAILED'}  {name}: {found}", file=sys.stderr, flush=True)
    return made


def checks() -> Iterator[tuple[str, str, Callable[[], tuple[bool, str]]]]:
    """Name, what is expected, and the function that finds out."""
    yield "tests -m gpu", "all pass", gpu_tests
    for kind in RULES:
        yield f"finding {kind}", f"first finding {kind}, on the device's timeline", lambda kind=kind: finding(kind)
    yield "device times", f"within {DEVICE_ERROR:.0%} or 0.2 ms of synchronised timers", device_times
    yield "cost", f"diagnose ≤ {MOST_COST_US:g} µs, timing ≤ {MOST_TIMING_US:g} µs a step over the control", cost


def gpu_tests() -> tuple[bool, str]:
    """The suite's own: scenarios of the attribution rule, bit-identical losses, graph capture, torch.compile, AMP with a scaler."""
    done = run([sys.executable, "-m", "pytest", "-m", "gpu", "-q", "--no-header", "tests"], environment(), cwd=ROOT, seconds=240)
    lines = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))] + done.stdout.splitlines()[-1:]
    return done.returncode == 0, "; ".join(lines)[:400]


def finding(kind: str) -> tuple[bool, str]:
    """Diagnose the program that was made to have this bottleneck."""
    with tempfile.TemporaryDirectory() as folder:
        summary = summarized(Path(folder), PROGRAMS / f"{kind}.py")
        from trainflash.diagnosis import diagnose

        found = diagnose(summary)
        kinds = [one.kind for one in found.findings[:3]]
        lag = summary.device_time.lag_ms if summary.device_time else None
        told = f"{', '.join(kinds) or found.abstained or 'nothing'}; {summary.timeline}, step {summary.step_ms.mean_ms:.2f} ms"
        told += "" if lag is None else f", lag {lag:.2f} ms"
        wrong = {place: count for place, count in summary.swallowed.items() if count}
        told += f", swallowed {wrong}" if wrong else ""
        return kinds[:1] == [kind] and summary.timeline == "device" and not wrong, told


def device_times() -> tuple[bool, str]:
    """Device work of forward, backward and update by events, against the same program with timers of its own."""
    program = PROGRAMS / "timers.py"
    timed = json.loads(run([sys.executable, str(program), "timed"], environment()).stdout.splitlines()[-1])
    with tempfile.TemporaryDirectory() as folder:
        summary = summarized(Path(folder), program)
    pairs = {name: (summary.phases[name].device_ms, ms) for name, ms in timed.items()}
    ok = all(found is not None and abs(found - ms) <= max(0.2, DEVICE_ERROR * ms) for found, ms in pairs.values())
    return ok, ", ".join(f"{name} {'none' if found is None else f'{found:.3f}'} / {ms:.3f} ms" for name, (found, ms) in pairs.items())


def cost() -> tuple[bool, str]:
    """Median CPU microseconds of a tiny step, in turns: bare, bare again, timing, diagnose."""
    added: dict[str, list[float]] = {"control": [], "timing": [], "diagnose": []}
    for _ in range(3):
        first = step_us(None)
        for name, capture in (("control", None), ("timing", "timing"), ("diagnose", "diagnose")):
            added[name].append(step_us(capture) - first)
    middle = {name: statistics.median(values) for name, values in added.items()}
    ok = middle["diagnose"] - middle["control"] <= MOST_COST_US and middle["timing"] - middle["control"] <= MOST_TIMING_US
    return ok, ", ".join(f"{name} {us:+.1f} µs" for name, us in middle.items())


def step_us(capture: str | None) -> float:
    """One fresh process."""
    with tempfile.TemporaryDirectory() as folder:
        done = run([sys.executable, str(PROGRAMS / "cost.py")], environment(Path(folder) if capture else None, capture or ""))
        if capture and not list(Path(folder).glob("events-*.bin")):
            raise RuntimeError("the probe did not enter the program")
        return float(done.stdout.splitlines()[-1])


def summarized(folder: Path, program: Path):
    """The program's run under the probe, as `trainflash diagnose` would summarise it."""
    from trainflash import telemetry, trace
    from trainflash.summary import steady_part, summarize

    with telemetry.recording(folder):
        run([sys.executable, str(program)], environment(folder, "diagnose"))
    recorded = trace.load(folder)
    part = steady_part(recorded.ranks[0])
    measured = telemetry.derive(telemetry.read(folder / telemetry.FILE), part.from_ns, part.to_ns)
    return summarize(recorded, run=program.stem, project=str(PROGRAMS), telemetry=measured)


def run(command: list[str], env: dict[str, str], cwd: Path = PROGRAMS, seconds: float = ONE_S) -> subprocess.CompletedProcess[str]:
    """The finished process; raises `RuntimeError` with the end of its errors when it failed (pytest's code is the caller's to judge)."""
    done = subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, timeout=seconds)
    if done.returncode and "pytest" not in command:
        raise RuntimeError(f"{Path(command[1]).name} ended with {done.returncode}: {done.stderr[-300:]}")
    return done


def environment(run_dir: Path | None = None, capture: str = "") -> dict[str, str]:
    """Ours without what a run above us set; with `run_dir`, the probe."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("TRAINFLASH_")}
    kept |= {"OMP_NUM_THREADS": "4"}
    if run_dir is not None:
        kept |= {"PYTHONPATH": str(PROBE), "TRAINFLASH_RUN": str(run_dir), "TRAINFLASH_OWN": str(PROGRAMS), "TRAINFLASH_CAPTURE": capture}
    return kept


def device_name() -> str | None:
    """Name of the first CUDA device; None without one, or without torch. Asked in a process of its own, which then leaves the device."""
    code = "import torch; print(torch.cuda.get_device_name(0) if torch.cuda.is_available() else '')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    return done.stdout.strip() or None


def torch_version() -> str:
    from importlib.metadata import version

    return version("torch")


def commit() -> str:
    """The checkout's commit; a plus: with changes on top."""
    said = [
        subprocess.run(["git", "-C", str(ROOT), *words], capture_output=True, text=True).stdout.strip()
        for words in (("rev-parse", "--short", "HEAD"), ("status", "--porcelain", "--untracked-files=no"))
    ]
    return f"{said[0] or 'unknown'}{'+' if said[1] else ''}"


def status(made: list[Check]) -> str:
    """failed, incomplete (out of time) or ok."""
    if any(check.ok is False for check in made):
        return "failed"
    return "incomplete" if any(check.ok is None for check in made) else "ok"


def table(made: list[Check]) -> str:
    """Markdown, which a terminal shows well enough."""
    rows = ["| check | result | found | expected | s |", "|---|---|---|---|---|"]
    words = {True: "ok", False: "FAILED", None: "not run"}
    for check in made:
        found = check.found.replace("|", "/").replace("\n", " ")
        rows.append(f"| {check.name} | {words[check.ok]} | {found} | {check.expected} | {check.seconds:g} |")
    return "\n".join(rows)


if __name__ == "__main__":
    sys.exit(main())
