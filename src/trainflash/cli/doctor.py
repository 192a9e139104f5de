"""`trainflash doctor`: what works on this machine."""

from __future__ import annotations

from pathlib import Path

import click

from trainflash.cli.options import json_option
from trainflash.cli.output import Output
from trainflash.errors import EXIT_DONE, UsageError


@click.command(short_help="What works on this machine, and the mend for what does not.")
@json_option
def doctor(as_json: bool) -> int:
    """Try what trainflash needs on this machine: git, a protected sandbox, the training environment, clocks, stacks, devices.

    \b
    trainflash doctor

    Nothing of yours is changed. Exit code 2 if something is missing that nothing works without.
    """
    from trainflash import report
    from trainflash.workflow import answers
    from trainflash.workflow import doctor as examining

    output = Output(as_json)
    with output.progress() as progress:
        found = examining.examine(Path.cwd(), progress)
        progress.finish()
    output.answer(answers.health(found), report.health(found))
    return EXIT_DONE if found.works else UsageError.exit_code
