"""`trainflash profile capture`: torch's profiler over a few steps of an unmodified program."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from trainflash import config
from trainflash.cli.elsewhere import Submittable
from trainflash.cli.options import command_argument, json_option, sandbox_or_new_option
from trainflash.cli.output import Output
from trainflash.report import figures


@click.command(cls=Submittable, short_help="Record a few steps of an unmodified PyTorch program with torch's profiler.")
@click.option("--wait", type=click.IntRange(min=0), default=5, show_default=True, help="Steps to let pass first.")
@click.option(
    "--warmup", type=click.IntRange(min=0), default=2, show_default=True, help="Then steps in which the profiler warms up; not kept."
)
@click.option("--active", type=click.IntRange(min=1), default=3, show_default=True, help="Then steps to record.")
@click.option("--shapes", is_flag=True, help="Record the shapes of the operators' inputs.")
@click.option("--memory", is_flag=True, help="Record allocations.")
@click.option("--stacks", is_flag=True, help="Record Python stacks and modules; slows the program down, so never compare such a run.")
@click.option("--to-the-end", is_flag=True, help="Let the program run to its end; it is stopped behind the window otherwise.")
@click.option("--in-place", is_flag=True, help="Run in the project itself instead of a sandbox; it stands in the result.")
@sandbox_or_new_option
@json_option
@command_argument
def capture(
    wait: int,
    warmup: int,
    active: int,
    shapes: bool,
    memory: bool,
    stacks: bool,
    to_the_end: bool,
    in_place: bool,
    sandbox: Path | None,
    as_json: bool,
    cmd: tuple[str, ...],
) -> None:
    """Run the unmodified program in a sandbox and record a window of its steps, one trace per rank.

    What it prints is a directory for `trainflash profile summarize --profile-dir`.

    \b
    trainflash profile capture -- python train.py
    trainflash profile capture --active 5 --shapes --stacks -- python train.py
    trainflash profile capture --wait 20 -- torchrun --nproc-per-node 2 train.py
    """
    from trainflash.workflow import capturing, inputs, session

    output = Output(as_json)
    project = Path.cwd()
    settings = config.load(session.project_of(project, sandbox))
    command = inputs.command(cmd, settings)
    window = capturing.Window(wait, warmup, active, shapes, memory, stacks)
    with output.progress() as progress:
        found, new = session.open_session(project, sandbox, on_progress=progress)
        if new:
            output.say(f"new sandbox: {found.sandbox.directory}")
        with found.locked():
            made = capturing.capture(
                found,
                command,
                window,
                in_place=in_place,
                online=settings.online,
                writable=settings.writable,
                to_the_end=to_the_end,
            )
        progress.finish()
    then = f"next: trainflash profile summarize --profile-dir {shlex.quote(str(made.directory))}"
    output.answer(capturing.answer(made), str(made.directory), f"{figures.count(len(made.traces), 'trace')}; {then}")
