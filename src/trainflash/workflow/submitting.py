"""Commands run elsewhere: asked for with `--on slurm`, done by jobs that type them again on their allocations."""

from __future__ import annotations

import contextlib
import shutil
import signal
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trainflash import sandbox as sandboxes
from trainflash.errors import Inconclusive, TrainFlashError
from trainflash.launch import slurm
from trainflash.launch.slurm.job import ANSWER, TypedCommand
from trainflash.workflow import rounds

Say = Callable[[str], None]
_JUDGED = {0, 3, 4}  # exit codes of an experiment that came to a verdict


@dataclass(frozen=True)
class Typed:
    """Our own words and, behind `--`, the owner's; `first` and `again` say to a job that it is where the command shall run."""

    words: tuple[str, ...]
    owners: tuple[str, ...]
    first: tuple[str, ...]
    again: tuple[str, ...]

    def in_folder(self, folder: Path, cwd: Path, environment: Mapping[str, str]) -> TypedCommand:
        return TypedCommand(self.words, self.owners, str(cwd), str(folder), self.first, self.again, dict(environment))


@dataclass(frozen=True)
class Came:
    """What a job's command ended with: its exit code, and what it printed on stdout."""

    code: int
    answer: str


def submit_and_wait(
    typed: Typed,
    settings: Mapping[str, Any],
    given: Mapping[str, Any],
    *,
    cwd: Path,
    sandbox: Path | None,
    environment: Mapping[str, str],
    relay: Say,
    say: Say,
) -> Came:
    """Submit the command, wait for it, and give back what it came to. `given`: the options over the settings' `[slurm]`.

    The job is cancelled on every way out but its own end. Raises `UsageError` where Slurm, submitit or the package on a node is missing,
    or Slurm refuses; `Inconclusive` where the job did not start in time, or was ended from outside.
    """
    wanted = slurm.wanted(settings, **given)
    slurm.require_slurm()
    place = sandbox.absolute() / "jobs" if sandbox is not None else sandboxes.state_folder() / "jobs"
    with _folder(place) as folder:
        _ask_a_node(wanted, [cwd, folder], say)
        (job_id,) = slurm.submit([typed.in_folder(folder, cwd, environment)], wanted, folder, f"trainflash {typed.words[0]}").job_ids
        say(f"job {job_id} is submitted; Ctrl-C cancels it")
        with _cancelled_unless_over([job_id]) as over:
            code = slurm.watch(job_id, folder, wanted, relay, say)
            over.add(job_id)
        return Came(code, (folder / ANSWER).read_text(encoding="utf-8", errors="replace"))


@dataclass(frozen=True)
class Parts:
    """The experiments of a round as commands of their own: `typed` says what is typed for each."""

    typed: Callable[[rounds.Tried], Typed]
    cwd: Path
    environment: Mapping[str, str]
    relay: Say
    say: Say

    def here(self, tried: Sequence[rounds.Tried]) -> list[str]:
        """One after the other on this machine."""
        faults = []
        for each in tried:
            self.say(f"{each.knob}: in a sandbox of its own")
            with _folder(each.directory / "jobs") as folder:
                faults.append(_fault(self._command(each, folder)()))
        return faults

    def as_array(self, place: Path, settings: Mapping[str, Any], given: Mapping[str, Any]) -> rounds.Run:
        """All at once, as an array of jobs."""
        wanted = slurm.wanted(settings, **given)
        slurm.require_slurm()

        def run(tried: Sequence[rounds.Tried]) -> list[str]:
            with _folder(place) as folder:
                _ask_a_node(wanted, [self.cwd, folder], self.say)
                commands = []
                for n, each in enumerate(tried):
                    (folder / str(n)).mkdir()
                    commands.append(self._command(each, folder / str(n)))
                jobs = slurm.submit(commands, wanted, folder, "trainflash optimize")
                self.say(f"jobs {jobs.job_ids[0]} to {jobs.job_ids[-1]} are submitted; Ctrl-C cancels them")
                with _cancelled_unless_over(jobs.job_ids) as over:
                    faults = []
                    for job_id, own, each in zip(jobs.job_ids, jobs.folders, tried, strict=True):
                        self.say(f"{each.knob}: job {job_id}")
                        faults.append(self._watched(job_id, own, wanted, over))
                    return faults

        return run

    def _watched(self, job_id: str, folder: Path, wanted: slurm.Wanted, over: set[str]) -> str:
        """One job that fails leaves the others their verdicts."""
        try:
            fault = _fault(slurm.watch(job_id, folder, wanted, self.relay, self.say))
            over.add(job_id)
        except TrainFlashError as bad:
            slurm.cancel(job_id)
            return bad.message
        return fault

    def _command(self, each: rounds.Tried, folder: Path) -> TypedCommand:
        return self.typed(each).in_folder(folder, self.cwd, self.environment)


def _fault(code: int) -> str:
    return "" if code in _JUDGED else f"it ended with exit code {code}"


def _ask_a_node(wanted: slurm.Wanted, folders: list[Path], say: Say) -> None:
    node = slurm.ask_a_node(wanted, folders)
    say(f"node {node} has trainflash and sees the project" if node else "no node was free to be asked whether it has trainflash")


@contextlib.contextmanager
def _folder(place: Path) -> Iterator[Path]:
    """A private folder in `place`. It goes with the command, but for what a job said that ended without a result."""
    folder = place / uuid.uuid4().hex[:12]
    folder.mkdir(parents=True, mode=0o700)
    try:
        yield folder
    except Inconclusive:
        for path in folder.rglob("*.pkl"):  # the command as it was typed may hold secrets
            path.unlink(missing_ok=True)
        raise
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def _cancelled_unless_over(job_ids: Sequence[str]) -> Iterator[set[str]]:
    """Cancels, on every way out, the jobs that were not put into the set. SIGTERM is a way out as Ctrl-C is; a lost terminal is none."""
    over: set[str] = set()
    before = signal.signal(signal.SIGTERM, _interrupted)
    try:
        yield over
    finally:
        signal.signal(signal.SIGTERM, before)
        for job_id in job_ids:
            if job_id not in over:
                slurm.cancel(job_id)


def _interrupted(*_: object) -> None:
    raise KeyboardInterrupt
