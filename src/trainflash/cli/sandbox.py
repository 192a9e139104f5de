"""`trainflash sandbox`: a place where experiments can do no harm."""

from __future__ import annotations

from pathlib import Path

import click

from trainflash.cli.options import PathName, json_option, sandbox_option
from trainflash.cli.output import Output


@click.group("sandbox", short_help="Make, look at and remove sandboxes.")
def group() -> None:
    """Make, look at and remove sandboxes: git worktrees of your project as it is now, edits included.

    \b
    trainflash sandbox create .
    trainflash sandbox status
    trainflash sandbox discard
    """


@group.command("create")
@click.argument("project", type=PathName())
@click.option("--base", type=PathName(), help="Make the sandbox in this directory instead of the state folder.")
@json_option
def create(project: Path, base: Path | None, as_json: bool) -> None:
    """Make a sandbox of PROJECT: HEAD plus your staged, unstaged and untracked files.

    \b
    trainflash sandbox create .
    """
    from trainflash import report
    from trainflash.workflow import answers, session

    output = Output(as_json)
    made = session.create(project, base).sandbox
    output.answer(answers.sandbox(made), report.sandbox(made))


@group.command("status")
@sandbox_option
@json_option
def status(sandbox: Path | None, as_json: bool) -> None:
    """Say what is in the sandbox, which protection holds, and what changed in the project since.

    \b
    trainflash sandbox status
    """
    from trainflash import report
    from trainflash.workflow import answers, session

    output = Output(as_json)
    found = session.existing_session(Path.cwd(), sandbox)
    state = found.status()
    experiments = found.experiments()
    output.answer(
        answers.sandbox_status(found.sandbox, state, experiments),
        report.sandbox(found.sandbox, answers.status_lines(state, experiments)),
    )


@group.command("diff")
@sandbox_option
@json_option
def diff(sandbox: Path | None, as_json: bool) -> None:
    """Show what the sandbox's worktree changes, as a diff that `git apply` takes.

    \b
    trainflash sandbox diff > change.diff
    """
    from trainflash.workflow import session

    found = session.existing_session(Path.cwd(), sandbox)
    text = found.diff()
    if as_json:
        Output(True).answer({"schema": "sandbox_diff.v1", "status": "ok", "diff": text})
    else:
        click.echo(text.encode("utf-8", "surrogateescape"), nl=False)


@group.command("discard")
@click.option("--all", "everything", is_flag=True, help="Remove the tuning log and the reports too.")
@sandbox_option
@json_option
def discard(everything: bool, sandbox: Path | None, as_json: bool) -> None:
    """Remove the sandbox's checkouts and its traces in your .git; the log and the reports stay.

    \b
    trainflash sandbox discard
    trainflash sandbox discard --all
    """
    from trainflash.workflow import session

    found = session.existing_session(Path.cwd(), sandbox)
    with found.locked():
        final = found.undoable()
        found.discard(everything=everything)
    kept = None if everything else str(found.log_path)
    Output(as_json).answer(
        {"schema": "sandbox_discard.v1", "status": "ok", "sandbox": found.sandbox.directory, "kept": kept, "final": final},
        f"discarded {found.sandbox.directory}" + (f"; the log stays at {kept}" if kept else ""),
        *([f"what was written back ({', '.join(final)}) stays: undo it with git from now on"] if final else []),
    )
