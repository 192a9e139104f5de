"""`verify` from what was typed to the answer: the sandbox it needs, the two states, the comparison, and what is told beside the verdict."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from trainflash.schema import Command, Runs, Verdict, Verified, read_document
from trainflash.workflow import states, verifying
from trainflash.workflow.session import OnProgress, Session, existing_session, open_session, silent
from trainflash.workflow.states import Asked, Pair
from trainflash.workflow.verifying import Demands


def _nothing(line: str) -> None:
    """For callers that show no costs."""


def session_for(project: Path, sandbox: Path | None, asked: Asked, on_progress: OnProgress = silent) -> Session:
    """The sandbox to work in; a new one where two states are named and there is none.

    Raises `UsageError` where an experiment, or what was accepted, is asked about and there is no sandbox.
    """
    if not asked.by_name:
        return existing_session(project, sandbox, on_progress=on_progress)
    return open_session(project, sandbox, on_progress=on_progress, as_it_is=asked.of_now)[0]


def verify(session: Session, asked: Asked, command: Command | None, demands: Demands, say: Callable[[str], None] = _nothing) -> Verified:
    """Judge what is asked about. `command` None: an experiment's own. The sandbox must be locked. `say`: what it will cost, beforehand.

    Raises `UsageError` before anything runs for names that nobody knows, and a budget too small for one pair of starts.
    """
    verifying.require_budget(demands)
    try:
        pair = states.pair(session, asked, command)
        verifying.require_budget(demands, session, pair.commands[0])
        for line in filter(None, (pair.about.note, verifying.cost(demands, session))):
            say(line)
        return judged(session, asked, pair, command, demands)[0]
    finally:
        session.rest()


def judged(session: Session, asked: Asked, pair: Pair, command: Command | None, demands: Demands) -> tuple[Verified, Path]:
    """The verdict on a pair, and the folder with the files of its comparison."""
    if asked.experiment is not None:
        directory = session.experiment_dir(asked.experiment)
        found = verifying.verify_experiment(session, asked.experiment, demands, command).verdict
    elif not asked.by_name:
        directory, found = _together(session, pair, demands)
    else:
        directory = session.new_run("verify")
        candidate = None if asked.candidate is None else pair.commits[1]
        found = verifying.verify_commits(
            session, pair.commits[0], candidate, pair.commands[0], demands, directory=directory, edited=pair.edited
        )
    assert found is not None
    return Verified(found, pair.about, _machine(session, directory)), directory


def _together(session: Session, pair: Pair, demands: Demands) -> tuple[Path, Verdict]:
    accepted = session.accepted()
    alone = len(accepted) == 1  # its own verdict is that of the combination
    directory = session.experiment_dir(accepted[0].n) if alone else session.combination_path(pair.commands[0]).with_suffix("")
    return directory, verifying.verify_commits(session, None, None, pair.commands[0], demands)


def runs_of(session: Session, directory: Path) -> Path:
    """The folder with the starts of the comparison whose files are in `directory`; it may hold none."""
    try:
        return session.directory / "pairs" / (directory / verifying.PAIR).read_text(encoding="ascii")
    except FileNotFoundError:
        return session.directory / "pairs" / "none"


def _machine(session: Session, directory: Path) -> dict[str, str]:
    path = runs_of(session, directory) / "runs.json"
    return dict(read_document(Runs, path).machine) if path.is_file() else {}
