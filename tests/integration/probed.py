"""Runs a program of tests/data/programs under the probe, as the launcher would, and reads what it left."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from trainflash.schema import Summary
from trainflash.summary import summarize
from trainflash.trace import RankTrace, Trace, load

ROOT = Path(__file__).resolve().parents[2]
PROBE = ROOT / "src" / "trainflash" / "probe"
PROGRAMS = ROOT / "tests" / "data" / "programs"
ABORTED = "terminate called without an active exception"  # of gloo's threads, at the end of a rank on a busy machine
STARTS = 3


@dataclass(frozen=True)
class Run:
    run_dir: Path
    returncode: int
    output: str

    @property
    def trace(self) -> Trace:
        return load(self.run_dir)

    @property
    def rank(self) -> RankTrace:
        return self.trace.ranks[0]


def environment(**extra: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("TRAINFLASH_", "COV_"))}
    return {**kept, "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1", **extra}


def plain(program: str, *arguments: str) -> str:
    """Output of the program without the probe; of another start where torch's own threads aborted one."""
    command = [sys.executable, PROGRAMS / program, *arguments]
    for _ in range(STARTS):
        done = subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=120)
        if done.returncode == 0 or ABORTED not in done.stderr:
            break
    assert done.returncode == 0, done.stderr
    return done.stdout


def probed(run_dir: Path, program: str, *arguments: str, capture: str = "timing", launcher: tuple[str, ...] = (), **extra: str) -> Run:
    """The program under the probe."""
    run_dir.mkdir(parents=True, exist_ok=True)
    ours = {"RUN": str(run_dir), "OWN": str(PROGRAMS), "CAPTURE": capture, "SAMPLE_HZ": "200"}
    path = os.pathsep.join(filter(None, [str(PROBE), os.environ.get("PYTHONPATH")]))
    env = environment(PYTHONPATH=path, **({f"TRAINFLASH_{name}": value for name, value in ours.items()} | extra))
    command = [sys.executable, *launcher, PROGRAMS / program, *arguments]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=120)
    return Run(run_dir, done.returncode, done.stdout + done.stderr)


def line_of(program: str, text: str) -> int:
    """Where `text` first stands in a program."""
    lines = (PROGRAMS / program).read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if text in line)


def seen(tmp_path: Path, program: str, *arguments: str, **how) -> tuple[Summary, Run]:
    """What a diagnosis reads from the program under the probe, which swallowed nothing."""
    run = probed(tmp_path / "run", program, *arguments, capture="diagnose", **how)
    assert run.returncode == 0, run.output
    found = summarize(run.trace, run="run", project=str(PROGRAMS))
    assert found.swallowed == {}
    return found, run


def diagnosed(tmp_path: Path, program: Path) -> Summary:
    """What a diagnosis sees of the program, whose output is as without it, and of which the probe swallowed no error of its own."""
    run = probed(tmp_path / "run", program, capture="diagnose", TRAINFLASH_OWN=str(tmp_path))
    assert run.returncode == 0 and run.output == plain(program), run.output
    found = summarize(run.trace, run="run", project=str(tmp_path))
    assert found.swallowed == {}
    return found


def steady_ms(rank: RankTrace, first: int = 5) -> dict[str, float]:
    """Mean milliseconds a step of each phase, without the first steps. All phases add up to the wall time of every step, always."""
    assert (sum(rank.phase_ns.values()) == rank.wall_ns).all()
    return {name: float(values[first:].mean()) / 1e6 for name, values in rank.phase_ns.items()}


def median_ms(rank: RankTrace, first: int = 24) -> dict[str, float]:
    """Median milliseconds a step of each phase, after the traced steps."""
    return {name: float(sorted(values[first:])[len(values[first:]) // 2]) / 1e6 for name, values in rank.phase_ns.items()}
