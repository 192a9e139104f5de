"""`trainflash log`, `report` and `explain`: what was tried, shown again, and what a finding, knob or pattern means."""

from __future__ import annotations

from pathlib import Path

import click

from trainflash.cli.options import json_option, sandbox_option
from trainflash.cli.output import Output


@click.group("log", invoke_without_command=True, short_help="What was tried, and what came of it.")
@sandbox_option
@json_option
@click.pass_context
def log(context: click.Context, sandbox: Path | None, as_json: bool) -> None:
    """Show the tuning log: every experiment with before, after and verdict, and a chart of the speed-ups.

    \b
    trainflash log
    trainflash log --json
    trainflash log note --experiment 3 "two cores only: a third worker has nowhere to run"
    """
    if context.invoked_subcommand:
        context.obj = sandbox
        return
    from trainflash import report
    from trainflash.workflow import answers, session

    found = session.existing_session(Path.cwd(), sandbox)
    entries = found.log_entries()
    Output(as_json).answer(answers.log(entries, str(found.log_path)), report.log(entries))


@log.command("note")
@click.argument("text")
@click.option("--experiment", "number", type=int, metavar="N", help="The experiment that the note is about.")
@sandbox_option
@json_option
@click.pass_context
def note(context: click.Context, text: str, number: int | None, sandbox: Path | None, as_json: bool) -> None:
    """Add a note to the tuning log.

    \b
    trainflash log note "workers did not help: the machine has two cores"
    trainflash log note --experiment 3 "slower because each worker reads the archive again"
    """
    from trainflash.workflow import session

    found = session.existing_session(Path.cwd(), sandbox or context.obj)
    found.note(text, number)
    Output(as_json).answer({"schema": "log_note.v1", "status": "ok", "path": str(found.log_path)}, f"noted in {found.log_path}")


@click.command(short_help="Write report.html again, without running anything.")
@sandbox_option
@json_option
def report(sandbox: Path | None, as_json: bool) -> None:
    """Write report.html again from what is in the sandbox, without running anything.

    \b
    trainflash report
    """
    from trainflash import report as reports
    from trainflash.workflow import session, showing

    found = session.existing_session(Path.cwd(), sandbox)
    shown = showing.view(found)
    showing.write_report(found, shown)
    Output(as_json).answer(
        {"schema": "report.v1", "status": "ok", "report": str(found.report_path), "log": str(found.log_path)},
        reports.tune_result(shown),
    )


@click.command(short_help="What a finding, a knob or a pattern means.")
@click.argument("name", metavar="[FINDING_KNOB_OR_PATTERN]", required=False)
@json_option
def explain(name: str | None, as_json: bool) -> None:
    """Explain a finding (symptom, cause, evidence, fixes), a knob (what it does, what it may change, how to undo it) or a pattern (a
    rewrite for a patch, before and after).

    Without a name: all of them, one line each.

    \b
    trainflash explain
    trainflash explain input_cpu
    trainflash explain memoize_function
    trainflash explain rows_at_once
    """
    from trainflash import report as reports
    from trainflash.workflow import explaining

    document = explaining.answer(explaining.explain(name)) if name else explaining.everything()
    Output(as_json).answer(document, reports.explanation(document))
