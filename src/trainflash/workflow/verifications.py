"""`verify` from what was typed to the answer: the sandbox it needs, the two states, the comparison, and what is told beside the verdict."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from trainflash.schema import Carried, Command, Runs, Verdict, Verified, read_document
from trainflash.workflow import states, verifying
from trainflash.workflow.bundles import archive, carrying, contents
from trainflash.workflow.profiling import check_place
from trainflash.workflow.session import OnProgress, Session, existing_session, open_session, silent
from trainflash.workflow.states import Asked, Pair
from trainflash.workflow.verifying import Demands

Say = Callable[[str], None]


def _nothing(line: str) -> None:
    """For callers that show no costs."""


def session_for(project: Path, sandbox: Path | None, asked: Asked, on_progress: OnProgress = silent) -> Session:
    """The sandbox to work in; a new one where two states are named and there is none.

    Raises `UsageError` where an experiment, or what was accepted, is asked about and there is no sandbox.
    """
    if not asked.by_name:
        return existing_session(project, sandbox, on_progress=on_progress)
    return open_session(project, sandbox, on_progress=on_progress, as_it_is=asked.of_now)[0]


def verify(
    session: Session,
    asked: Asked,
    command: Command | None,
    demands: Demands,
    say: Say = _nothing,
    bundle: Path | None = None,
    summary: Path | None = None,
) -> tuple[Verified, Carried | None]:
    """Judge what is asked about. `command` None: an experiment's own. The sandbox must be locked.

    `say`: what it will cost, beforehand. `bundle`: where the verdict goes as one file; `summary`: where the caller will tell it. The
    second answer is that of a bundle that is carried here. Raises `UsageError` before anything runs for names that nobody knows, places
    that cannot be written, a budget too small for one pair of starts, and a change that cannot be bundled.
    """
    verifying.require_budget(demands)
    for place in filter(None, (bundle, summary)):
        check_place(place)
    try:
        brought = contents.opened(asked.carried) if asked.carried is not None else None
        if brought is not None:
            assert command is not None
            carrying.refuse_undecided(brought)
            demands = carrying.as_there(demands, brought)
            pair = carrying.pair(session, brought, asked.baseline, command)
        else:
            pair = states.pair(session, asked, command)
        diff = contents.diff_of(session, pair) if bundle is not None else ""
        verifying.require_budget(demands, session, pair.commands[0])
        for line in filter(None, (pair.about.note, verifying.cost(demands, session))):
            say(line)
        verified, directory = _judged(session, asked, pair, command, demands)
        if bundle is not None:
            archive.write(bundle, contents.pack(session, pair, diff, verified, directory, _starts(session, directory), demands))
        return verified, carrying.carried(brought, verified, command) if brought is not None and command is not None else None
    finally:
        session.rest()


def _judged(session: Session, asked: Asked, pair: Pair, command: Command | None, demands: Demands) -> tuple[Verified, Path]:
    """The verdict on a pair, and the folder with the files of its comparison."""
    if asked.experiment is not None:
        directory = session.experiment_dir(asked.experiment)
        found = verifying.verify_experiment(session, asked.experiment, demands, command).verdict
    elif not asked.by_name:
        directory, found = _together(session, pair, demands)
    else:
        directory = session.new_run("verify")
        found, _ = verifying.compare(session, *pair.commits, *pair.commands, directory, demands, pair.edited)
    assert found is not None
    return Verified(found, pair.about, _machine(session, directory)), directory


def _together(session: Session, pair: Pair, demands: Demands) -> tuple[Path, Verdict]:
    accepted = session.accepted()
    alone = len(accepted) == 1  # its own verdict is that of the combination
    directory = session.experiment_dir(accepted[0].n) if alone else session.combination_path(pair.commands[0]).with_suffix("")
    return directory, verifying.verify_accepted(session, pair.commands[0], demands)


def _starts(session: Session, directory: Path) -> Path:
    """The folder with the starts of the comparison whose files are in `directory`; it may hold none."""
    return session.directory / "pairs" / (directory / verifying.PAIR).read_text(encoding="ascii")


def _machine(session: Session, directory: Path) -> dict[str, str]:
    path = _starts(session, directory) / "runs.json"
    return dict(read_document(Runs, path).machine) if path.is_file() else {}
