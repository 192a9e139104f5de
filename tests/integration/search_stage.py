"""A search on a stage: the sandbox, its commits, the log and the plan are real; what is diagnosed and measured is given.

The program is a file of settings. `PAYS` says which value of which setting makes it faster, `COSTS` which finding stands as long as a
setting has its slow value.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from knob_scenes import diagnosis, finding, summary

from trainflash import sandbox, tuning_log
from trainflash.errors import ProgramFailed
from trainflash.schema import (
    Candidate,
    Ceiling,
    Check,
    Command,
    Fidelity,
    Location,
    RunRecord,
    Runs,
    Speedup,
    SpeedVerdict,
    Start,
    write_document,
)
from trainflash.workflow import diagnosing, moving, optimizing, session, verifying

COMMAND = Command(("python", "train.py"))
SETTINGS = ("cache", "workers", "fused", "order", "crash", "noisy", "unstable")
FINDINGS = {
    "cache": "repeated_work", "workers": "input_cpu", "fused": "optimizer", "order": "worker_startup", "crash": "collate",
    "noisy": "logging", "unstable": "checkpoint",
}  # fmt: skip
CEILINGS = {"cache": 3.0, "workers": 2.0, "fused": 1.3, "order": 1.5, "crash": 1.4, "noisy": 1.2, "unstable": 1.2}
VALUES = {name: ("1", "2", "4", "8", "16") if name == "workers" else ("1",) for name in SETTINGS}
RISKS = {"order": "order", "fused": "close"}
PAYS = {("cache", "1"), ("workers", "1"), ("workers", "2"), ("order", "1")}
SAME = Fidelity("same", (), 0.0, 0.0, 1e-3, 40, (), (), (Check("loss", True, "equal"),))
CRASHED = replace(SAME, verdict="changed", changed=("failed",), updates=0, checks=(), reasons=("exit code 137: out of memory",))


def read(folder: str | Path) -> dict[str, str]:
    return dict(line.split(" = ") for line in Path(folder, "train.py").read_text().splitlines() if " = " in line)


def project(folder: Path, names: tuple[str, ...] = SETTINGS) -> Path:
    folder.mkdir(parents=True)
    (folder / "train.py").write_text("".join(f"{name} = 0\n\n\n\n" for name in names))
    for words in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "first"]):
        subprocess.run(["git", "-c", "user.name=o", "-c", "user.email=o@localhost", *words], cwd=folder, check=True)
    return folder


def candidate(folder: Path, name: str, value: str) -> Candidate:
    """Set `name` to `value`, as a diff against what lies in `folder`."""
    lines = (folder / "train.py").read_text().splitlines()
    at = next(n for n, line in enumerate(lines) if line.startswith(f"{name} = "))
    first, last = max(0, at - 3), min(len(lines), at + 4)
    body = "".join(f"-{line}\n+{name} = {value}\n" if n == at else f" {line}\n" for n, line in enumerate(lines[first:last], first))
    diff = f"--- a/train.py\n+++ b/train.py\n@@ -{first + 1},{last - first} +{first + 1},{last - first} @@\n{body}"
    place = Location("train.py", at + 1, name)
    return Candidate(name, value, FINDINGS[name], place, RISKS.get(name, "same"), diff, f"{name} = {value}")


class Stage:
    """Given answers in place of runs. `measured` lists what was timed, `tick` is called at every moment that leaves a trace on disk."""

    def __init__(self, patch: pytest.MonkeyPatch, journal: Path, tick: Callable[[], None] = lambda: None) -> None:
        self.journal, self.pays, self.healthy, self.failing = journal, set(PAYS), False, False
        self.rounds: set[str] = set()  # settings whose change rounds otherwise
        self.reorders: set[str] = set()  # … and those that turn out to change the order, which no plan says
        for owner, name in ((session, "write_document"), (optimizing, "write_document"), (verifying, "write_document")):
            patch.setattr(owner, name, _ticking(getattr(owner, name), tick))
        patch.setattr(tuning_log, "append", _ticking(tuning_log.append, tick))
        patch.setattr(sandbox, "commit_diff", _ticking(sandbox.commit_diff, tick))
        patch.setattr("trainflash.workflow.searching.write_document", _ticking(write_document, tick))
        patch.setattr(diagnosing, "diagnose", self.diagnose)
        patch.setattr(diagnosing, "with_ceilings", self.with_ceilings)
        patch.setattr(optimizing.knobs, "plan", self.plan)
        patch.setattr(verifying.fidelity, "check", self.check)
        patch.setattr(verifying.bench, "compare", self.compare)

    @property
    def measured(self) -> list[str]:
        return self.journal.read_text().splitlines() if self.journal.exists() else []

    def diagnose(self, found: session.Session, command: Command, **_: object):
        run = found.new_run("diagnose")
        moving.remember(found, run)
        write_document(run / "run.json", RunRecord(run.name, "diagnose", command, "candidate", "manifest", "finished", 0, 1.0, "now"))
        now = read(found.sandbox.worktree)
        findings = [
            replace(finding(FINDINGS[name], Location("train.py", 1), [name]), ceiling=Ceiling(CEILINGS[name], "bound"))
            for name in SETTINGS
            if name in now and (now[name] == "0" or name == "workers")
        ]
        first = [finding("compute")] if self.healthy else []
        made = replace(diagnosis(*first, *findings), run=run.name)
        facts = replace(summary(), run=run.name)
        write_document(run / "summary.json", facts)
        write_document(run / "findings.json", made)
        return made, facts

    def with_ceilings(self, found: session.Session, command: Command, run: str, **_: object):
        """The same ceilings, now measured."""
        known, facts = found.diagnosis(run)
        findings = [replace(each, ceiling=replace(each.ceiling, how="measured")) if each.ceiling else each for each in known.findings]
        made = replace(known, findings=tuple(findings))
        write_document(found.run_dir(run) / "findings.json", made)
        return made, facts

    def plan(self, known, facts, folder: Path, command: Command, **_: object):
        now = read(folder)
        kinds = {each.kind for each in known.findings}
        offered = [
            candidate(folder, name, value)
            for name in SETTINGS
            if name in now and FINDINGS[name] in kinds
            for value in VALUES[name]
            if value != now[name]
        ]
        return tuple(offered), (), ()

    def check(self, box, baseline, changed, place, **_: object) -> Fidelity:
        name, _ = self._change(box)
        place.mkdir(parents=True, exist_ok=True)  # its runs
        if name in self.rounds:
            return replace(SAME, verdict="close", changed=("numerics",))
        if name in self.reorders:
            return replace(SAME, verdict="changed", changed=("order",), reasons=("order: other samples first",))
        return CRASHED if name == "crash" else replace(SAME, verdict="changed", changed=("order",)) if name == "order" else SAME

    def compare(self, box, baseline, changed, place, **options: object):
        name, value = self._change(box)
        if self.failing:
            raise ProgramFailed("the baseline failed with exit code 1: python train.py")
        with self.journal.open("a") as file:
            file.write(f"{name}={value}\n")
        starts = tuple(Start(n, "resident", 0.3, 0.3, "net", steps=240, spent_s=1.0, baseline_step_ms=4.0 + n) for n in range(1, 5))
        if name == "noisy":
            return Runs(COMMAND, starts, 5), SpeedVerdict("inconclusive", Speedup(1.02, 0.9, 1.2, 4), "noise")
        if name == "together" or (name, value) in self.pays:
            return Runs(COMMAND, starts, 5), SpeedVerdict("accept", Speedup(1.3, 1.2, 1.4, 4), "faster")
        return Runs(COMMAND, starts, 5), SpeedVerdict("reject", Speedup(1.0, 0.99, 1.01, 4), "not faster by 4 % or more")

    def _change(self, box) -> tuple[str, str]:
        before, after = read(box.baseline), read(box.worktree)
        [*changed] = [name for name in after if before[name] != after[name]]
        return (changed[0], after[changed[0]]) if len(changed) == 1 else ("together", "")


def _ticking(function: Callable, tick: Callable[[], None]) -> Callable:
    def ticked(*arguments, **options):
        tick()
        result = function(*arguments, **options)
        tick()
        return result

    return ticked


def die_after(moments: int) -> Callable[[], None]:
    """Ends this process with SIGKILL at the given moment."""
    seen = [0]

    def tick() -> None:
        seen[0] += 1
        if seen[0] > moments:
            os.kill(os.getpid(), signal.SIGKILL)

    return tick


def lines_added(diff: str) -> list[str]:
    return re.findall(r"^\+(\w+ = \w+)$", diff, re.MULTILINE)
