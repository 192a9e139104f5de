"""One sandbox as the verbs use it: where its files lie, what was tried, and the lock that keeps two commands apart."""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from pathlib import Path

from trainflash import launch, tuning_log, view, writeback
from trainflash import sandbox as sandboxes
from trainflash.errors import UsageError
from trainflash.schema import (
    Command,
    Diagnosis,
    Experiment,
    LogEntry,
    Plan,
    RunRecord,
    Sandbox,
    Side,
    Summary,
    Verdict,
    read_document,
    write_document,
)
from trainflash.workflow import vault

OnProgress = Callable[[str, int, int], None]  # what is done now, how much of it is done, of how much (0: unknown)


def silent(label: str, done: int, total: int) -> None:
    """The progress callback of callers that show none."""


def now_utc() -> str:
    """The current time as `2026-01-31T12:00:00Z`."""
    return datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


@dataclass(frozen=True)
class Session:
    """A sandbox with its artefacts. Everything is read from and written to files at once: any command may be killed."""

    sandbox: Sandbox
    on_progress: OnProgress = silent

    @property
    def directory(self) -> Path:
        return Path(self.sandbox.directory)

    @property
    def log_path(self) -> Path:
        return self.directory / "tuning_log.yaml"

    @property
    def plan_path(self) -> Path:
        return self.directory / "plan.yaml"

    @property
    def search_path(self) -> Path:
        return self.directory / "search.json"

    @property
    def report_path(self) -> Path:
        return self.directory / "report.html"

    def experiment_dir(self, n: int) -> Path:
        return self.directory / "experiments" / str(n)

    def new_run(self, kind: str) -> Path:
        """A fresh, empty directory `runs/<kind>-<number>`."""
        runs = self.directory / "runs"
        runs.mkdir(parents=True, exist_ok=True)
        number = 1 + max((int(path.name.rsplit("-", 1)[1]) for path in runs.glob(f"{kind}-[0-9]*")), default=0)
        while True:
            path = runs / f"{kind}-{number:03d}"
            try:
                path.mkdir()
                return path
            except FileExistsError:
                number += 1

    def run_dir(self, run: str) -> Path:
        """The directory of the run named `run`. Raises `UsageError` when there is none."""
        path = self.directory / "runs" / run
        if path.parent != self.directory / "runs" or not path.is_dir():
            known = ", ".join(sorted(p.name for p in (self.directory / "runs").glob("*"))) or "none yet"
            raise UsageError(f"no run {run!r} in this sandbox", f"runs: {known}")
        return path

    def experiments(self) -> tuple[Experiment, ...]:
        """All experiments, in the order in which they were made."""
        paths = (self.directory / "experiments").glob("*/experiment.json")
        return tuple(sorted(map(self._read, paths), key=lambda experiment: experiment.n))

    def experiment(self, n: int) -> Experiment:
        path = self.experiment_dir(n) / "experiment.json"
        if not path.is_file():
            known = ", ".join(str(experiment.n) for experiment in self.experiments()) or "none yet"
            raise UsageError(f"no experiment {n} in this sandbox", f"experiments: {known}")
        return self._read(path)

    def _read(self, path: Path) -> Experiment:
        """An experiment with its command as it was typed: secrets lie apart (see `vault`)."""
        experiment = read_document(Experiment, path)
        return replace(experiment, command=vault.unseal(self.directory, experiment.command))

    def accepted(self) -> tuple[Experiment, ...]:
        """The chain of accepted experiments from the owner's state on, each built on the one before it."""
        by_parent = {
            experiment.parent_commit: experiment for experiment in reversed(self.experiments()) if experiment.decision == "accepted"
        }
        chain: list[Experiment] = []
        commit = self.sandbox.base_ref
        while commit in by_parent:
            chain.append(by_parent.pop(commit))
            commit = chain[-1].commit
        return tuple(chain)

    def tip(self) -> str:
        """The commit that holds all accepted experiments; the owner's state when there is none."""
        accepted = self.accepted()
        return accepted[-1].commit if accepted else self.sandbox.base_ref

    def rest(self) -> None:
        """Leave the checkouts as they should lie between commands: `worktree/` the accepted state, `baseline/` the owner's."""
        self.take("candidate", self.tip())
        self.take("baseline", self.sandbox.base_ref)

    def take(self, side: Side, commit: str) -> None:
        """Make a checkout hold `commit`; edits in `worktree/` that no experiment holds are set aside as a patch, never lost."""
        if side == "candidate" and self.dirty():
            number = 1 + len(list(self.directory.glob("set-aside-*.diff")))
            aside = self.directory / f"set-aside-{number}.diff"
            aside.write_bytes(sandboxes.diff(self.sandbox, sandboxes.head(self.sandbox)).encode("utf-8", "surrogateescape"))
            self.on_progress(f"edits of worktree/ that are in no experiment were set aside: {aside}", 0, 0)
        sandboxes.checkout(self.sandbox, side, commit)

    def as_run_by(self, command: Command) -> Session:
        """This session with the protection that runs of `command` have: what a daemon starts (srun) enters no view."""
        box = self.sandbox
        if box.protection == "manifest" or not launch.daemons.of(box, "candidate", command):
            return self
        return replace(self, sandbox=replace(box, protection="manifest"))

    def original_changes(self) -> frozenset[str]:
        """What changed in the original since `create`, where a run could have done it: never under the mount view."""
        return frozenset() if self.sandbox.protection == "mount" else frozenset(sandboxes.original_changes(self.sandbox))

    def dirty(self) -> tuple[str, ...]:
        """Paths in `worktree/` with edits that no experiment holds; unlike `status`, it does not look at the original."""
        return sandboxes.dirty(self.sandbox)

    def status(self) -> sandboxes.Status:
        return sandboxes.status(self.sandbox)

    def diff(self) -> str:
        """What `worktree/` changes, as a diff that `git apply` takes."""
        return sandboxes.diff(self.sandbox)

    def undoable(self) -> list[str]:
        """Files of write-backs that `writeback --undo` could still take back; after `discard` it cannot."""
        return sorted({name for given in writeback.approvals(self.sandbox) if not given.undone for name in given.files})

    def discard(self, *, everything: bool) -> None:
        """Remove the checkouts and our traces in the owner's `.git`; log and reports only if `everything`."""
        sandboxes.discard(self.sandbox, everything=everything)

    def save(self, experiment: Experiment) -> Experiment:
        sealed = replace(experiment, command=vault.seal(self.directory, experiment.command))
        write_document(self.experiment_dir(experiment.n) / "experiment.json", sealed)
        return experiment

    def combination(self, command: Command | None = None) -> Verdict | None:
        """The verdict on all accepted experiments together against the owner's state, by `command` (None: that of the last experiment).

        None when that was not measured.
        """
        accepted = self.accepted()
        if not accepted:
            return None
        command = command or accepted[-1].command
        if len(accepted) == 1 and command.argv == accepted[0].command.argv:
            return accepted[0].verdict
        path = self.combination_path(command)
        return read_document(Verdict, path) if path.is_file() else None

    def approvable(self) -> tuple[Experiment, ...]:
        """What was verified against the owner's own state: all accepted experiments together, else the first of them alone."""
        together = self.combination()
        return self.accepted() if together is not None and together.verdict == "accept" else self.accepted()[:1]

    def combination_path(self, command: Command) -> Path:
        """Where the verdict on the accepted state under `command` lies."""
        digest = hashlib.sha256(json.dumps(command.argv).encode()).hexdigest()
        return self.directory / "combinations" / f"{self.tip()[:12]}-{digest[:8]}.json"

    def diagnoses(self) -> tuple[tuple[Diagnosis, Summary], ...]:
        """All finished diagnoses with their summaries, oldest first."""
        found = []
        for path in sorted((self.directory / "runs").glob("diagnose-*/findings.json")):
            found.append((read_document(Diagnosis, path), read_document(Summary, path.with_name("summary.json"))))
        return tuple(found)

    def diagnosis(self, run: str) -> tuple[Diagnosis, Summary] | None:
        """The diagnosis of one run with its summary; None where it was not finished."""
        path = self.directory / "runs" / run / "findings.json"
        if not run or not path.is_file():
            return None
        return read_document(Diagnosis, path), read_document(Summary, path.with_name("summary.json"))

    def last_command(self) -> Command | None:
        """The training command that the newest experiment was made with, else the newest diagnosis; None where there is neither.

        A diagnosis keeps its command without secrets: then the mark stands in their place.
        """
        experiments = self.experiments()
        if experiments:
            return experiments[-1].command
        records = sorted((self.directory / "runs").glob("diagnose-*/run.json"))
        return read_document(RunRecord, records[-1]).command if records else None

    def plan(self) -> Plan | None:
        return read_document(Plan, self.plan_path) if self.plan_path.is_file() else None

    def log(self, entry: LogEntry) -> None:
        tuning_log.append(self.log_path, replace(entry, at_utc=entry.at_utc or now_utc()))

    def note(self, text: str, experiment: int | None = None) -> None:
        """An entry in words, by the owner or an assistant. Raises `UsageError` for no words, or an experiment that there is not."""
        if not text.strip():
            raise UsageError("the note is empty", 'write what you saw, such as `trainflash log note "two cores only"`')
        knob = self.experiment(experiment).knob if experiment is not None else ""
        self.log(LogEntry(kind="note", at_utc=now_utc(), what=text, experiment=experiment, knob=knob, by="owner or assistant"))

    def log_entries(self) -> tuple[LogEntry, ...]:
        """All entries, accepted experiments with the phases after them too."""
        return tuning_log.with_after(tuning_log.read(self.log_path).entries)

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Keeps other commands out of this sandbox; the kernel frees the lock when we die. Raises `UsageError` when taken."""
        with (self.directory / "lock").open("a") as file:
            if not sandboxes.hold(file.fileno()):
                raise UsageError(
                    f"another trainflash command is working in {self.directory}", "wait for it, or name another sandbox with --sandbox"
                )
            view.sweep(self.sandbox)
            for path in writeback.recover(self.sandbox):
                self.on_progress(f"a write-back was cut off and is rolled back, but {path} was edited since and is left as it is", 0, 0)
            yield


def open_session(
    project: Path, sandbox: Path | None = None, *, on_progress: OnProgress = silent, as_it_is: bool = True
) -> tuple[Session, bool]:
    """The session to work in: the sandbox named, else the newest of `project`, else a new one (then the flag is True).

    Without `as_it_is` it does not matter that the project was edited since, and is not said.
    """
    found = _find(project, sandbox)
    if found is None:
        return create(project, on_progress=on_progress), True
    if as_it_is and sandbox is None and (changed := sandboxes.drifted(found)):
        renew = "for the present one: `trainflash sandbox discard`, then this command again"
        on_progress(f"the sandbox holds the project as it was before {some_of(changed)} changed; {renew}", 0, 0)
    return Session(found, on_progress), False


def some_of(paths: Sequence[str]) -> str:
    """The first three, and how many more there are."""
    return ", ".join(paths[:3]) + (f" and {len(paths) - 3} more" if len(paths) > 3 else "")


def _find(project: Path, sandbox: Path | None) -> Sandbox | None:
    return sandboxes.load(sandbox) if sandbox is not None else sandboxes.newest(project)


def last_command(project: Path, sandbox: Path | None = None) -> Command | None:
    """The training command that the sandbox named, else the newest of `project`, was last asked about; None where there is none."""
    found = _find(project, sandbox)
    return Session(found).last_command() if found is not None else None


def project_of(project: Path, sandbox: Path | None) -> Path:
    """The project whose settings hold: that of the sandbox named, else the one at hand."""
    return Path(sandboxes.load(sandbox).project) if sandbox is not None else project


def existing_session(project: Path, sandbox: Path | None = None, *, on_progress: OnProgress = silent) -> Session:
    """Like `open_session`, but raises `UsageError` where there is no sandbox yet."""
    found = _find(project, sandbox)
    if found is None:
        above = next((folder for folder in project.absolute().parents if sandboxes.newest(folder) is not None), None)
        mend = f"make one with `trainflash sandbox create {project}`" if above is None else f"run the command in {above}, which has one"
        raise UsageError(f"{project} has no sandbox yet", mend)
    return Session(found, on_progress)


def create(project: Path, base: Path | None = None, *, on_progress: OnProgress = silent) -> Session:
    """A new sandbox of `project`, with its first log entry."""
    on_progress("making a sandbox", 0, 0)
    sandbox = sandboxes.create(project, base, protect=view.protection)
    session = Session(sandbox, on_progress)
    session.log(
        LogEntry(
            kind="sandbox",
            at_utc=now_utc(),
            what=f"sandbox of {sandbox.project}",
            why=f"protection: {sandbox.protection}",
            reasons=sandbox.warnings,
        )
    )
    return session
