"""Small programs and runs for the tests of the knobs: real files, real git, summaries with only the facts that a test needs."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass, replace
from pathlib import Path

from trainflash import knobs
from trainflash.schema import (
    Activity,
    Candidate,
    Command,
    Diagnosis,
    Finding,
    LoaderFacts,
    Location,
    RepeatedWork,
    Setting,
    Spread,
    Summary,
    Threads,
)

GB = 1_000_000_000


def loader(role="train", location=None, **changes) -> LoaderFacts:
    facts = LoaderFacts(
        id=1, role=role, location=location, num_workers=0, batch_size=32, persistent_workers=False, pin_memory=False, prefetch_factor=None,
        shuffles=role == "train", own_generator=False, iterable=False, dataset="Digits", dataset_location=None, dataset_len=1000,
        sample_bytes=4000, epochs=3, start_ms=None, first_batch_ms=None, getitem_ms=None, collate_ms=None, fetch_cpu_share=0.9,
    )  # fmt: skip
    return replace(facts, **changes)


def repeated(location, qualname, **changes) -> RepeatedWork:
    work = RepeatedWork(
        location=location, qualname=qualname, role="main", calls=100, repeats=90, mean_ms=2.0, share=0.4, hashable=True,
        is_method="." in qualname, result_bytes=4000, distinct=10,
    )  # fmt: skip
    return replace(work, **changes)


def summary(**changes) -> Summary:
    made = Summary(
        run="diagnose-001", project="p", steps=100, warmup_steps=5, epochs=3, wall_s=10.0, startup_s=1.0, steady_s=9.0, timeline="host",
        device="cpu", coverage=0.95, phases={}, step_ms=Spread(100, 90.0, 90.0, 95.0, None, 99.0), ranks=1, processes=1,
        threads=Threads(cpus=4.0, torch_threads=4, interop_threads=2, omp_num_threads=None, cpu_seconds=9.0, wall_seconds=9.0,
                        runqueue_share=0.0, set_at=None),
        versions={"torch": "2.13.0"},
    )  # fmt: skip
    return replace(made, **changes)


def finding(kind, location=None, knobs=()) -> Finding:
    return Finding(
        kind=kind, phase="Data", bound_by="input", share=0.5, severity="high", summary=f"{kind} here", evidence=(), location=location,
        ceiling=None, knobs=tuple(knobs),
    )  # fmt: skip


def diagnosis(*findings) -> Diagnosis:
    return Diagnosis(
        run="diagnose-001", steps=100, wall_s=10.0, timeline="host", coverage=0.95, phases={}, findings=tuple(findings), abstained=None
    )


def activity(phase, location, **changes) -> Activity:
    return replace(Activity(phase=phase, count=10, every_steps=10.0, mean_ms=50.0, location=location), **changes)


def setting(name, location) -> Setting:
    return Setting(name=name, value="True", location=location)


@dataclass
class Program:
    """A project in a git repository of its own, and the command that trains."""

    root: Path
    command: Command

    def line(self, file: str, text: str, nth: int = 0) -> Location:
        """The place of the nth line of `file` that contains `text`."""
        rows = (self.root / file).read_text(encoding="utf-8").splitlines()
        return Location(file, [number for number, row in enumerate(rows, 1) if text in row][nth])

    def propose(self, knob: str, run: Summary, *, value=None, at=None, findings=(), memory=8 * GB) -> Candidate:
        return knobs.propose(
            knobs.get(knob), value, at, diagnosis=diagnosis(*findings), summary=run, checkout=self.root, command=self.command,
            memory_bytes=memory,
        )  # fmt: skip

    def plan(self, run: Summary, *findings, memory=8 * GB, whole_steps=None):
        return knobs.plan(diagnosis(*findings), run, self.root, self.command, memory_bytes=memory, whole_steps=whole_steps)

    def apply(self, candidate: Candidate) -> dict[str, str]:
        """Apply the diff with git; the lines that were added, by file."""
        git(self.root, "apply", "--check", "-", text=candidate.diff)
        git(self.root, "apply", "-", text=candidate.diff)
        for path in self.root.rglob("*.py"):
            compile(path.read_bytes(), str(path), "exec")
        shown = git(self.root, "diff", "--numstat")
        return {row.split("\t")[2]: row for row in shown.splitlines()}

    def read(self, file: str) -> str:
        return (self.root / file).read_bytes().decode("utf-8")


def git(root: Path, *arguments: str, text: str = "") -> str:
    done = subprocess.run(
        ["git", "-c", "core.autocrlf=false", "-c", "user.name=t", "-c", "user.email=t@t", *arguments],
        cwd=root, input=text.encode("utf-8", "surrogateescape"), capture_output=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode("utf-8", "surrogateescape")


def program(root: Path, command: str = "python train.py", **files: str | bytes) -> Program:
    """A project with `files` (`train_py` is train.py, `__` is a folder)."""
    for name, content in files.items():
        stem, _, suffix = name.replace("__", "/").rpartition("_")
        path = root / f"{stem}.{suffix}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))
    git(root, "init", "-q")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "base")
    return Program(root, Command(tuple(command.split())))


def added(candidate: Candidate) -> list[str]:
    """The lines that the diff adds, without the sign."""
    return [row[1:] for row in candidate.diff.split("\n") if row.startswith("+") and not row.startswith("+++")]


def removed(candidate: Candidate) -> list[str]:
    """The lines that the diff takes away, without the sign."""
    return [row[1:] for row in candidate.diff.split("\n") if row.startswith("-") and not row.startswith("---")]
