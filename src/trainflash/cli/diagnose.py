"""`trainflash diagnose`: where the time goes, and which bottleneck dominates."""

from __future__ import annotations

from pathlib import Path

import click

from trainflash import config
from trainflash.cli.options import Launching, command_argument, json_option, sandbox_option
from trainflash.cli.output import Output


@click.command(cls=Launching, short_help="Where does the time go, and which line is to blame?")
@click.option("--steps", type=click.IntRange(min=1), help="Stop the program after this many training steps.")
@click.option("--run", help="Diagnose an earlier run again from its events, without running the program.")
@click.option("--in-place", is_flag=True, help="Run in the project itself instead of a sandbox; it stands in the result.")
@sandbox_option
@json_option
@command_argument
def diagnose(steps: int | None, run: str | None, in_place: bool, sandbox: Path | None, as_json: bool, cmd: tuple[str, ...]) -> None:
    """Run the unmodified program under a probe and name its bottleneck, with evidence and source line.

    The program is stopped at a step boundary once enough was seen.

    \b
    trainflash diagnose -- python train.py --epochs 3
    trainflash diagnose --steps 200 -- torchrun --nproc-per-node 2 train.py
    """
    from trainflash import report
    from trainflash.workflow import answers, diagnosing, inputs, session

    output = Output(as_json)
    project = Path.cwd()
    settings = config.load(project)
    if run:
        found = session.existing_session(project, sandbox)
        diagnosis, _ = diagnosing.from_run(found, found.run_dir(run))
    else:
        command = inputs.command(cmd, settings)
        with output.progress() as progress:
            found, new = session.open_session(project, sandbox, on_progress=progress)
            if new:
                output.say(f"new sandbox: {found.sandbox.directory}")
            with found.locked():
                diagnosis, _ = diagnosing.diagnose(
                    found, command, steps=steps, in_place=in_place, online=settings.online, writable=settings.writable
                )
            progress.finish()
    protection = diagnosing.protection(found, diagnosis.run)
    output.answer(answers.diagnosis(diagnosis, found.sandbox.directory, protection), report.diagnosis(diagnosis))
