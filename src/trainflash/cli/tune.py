"""`trainflash tune` and `trainflash demo`: the whole loop, ending with what awaits approval."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from trainflash import config
from trainflash.cli.elsewhere import Submittable
from trainflash.cli.options import NO_AUTHOR, AuthorOptions, Duration, PathName, json_option, search_options
from trainflash.cli.output import Output

DEMO_BUDGET_S = 270.0  # the loop must end well within six minutes on two busy cores


@click.command(cls=Submittable, short_help="The whole loop: find, try, prove; ends with what awaits approval.")
@click.argument("project", type=PathName(), default=".")
@search_options
def tune(project: Path, **asked: Any) -> None:
    """Find the bottleneck of PROJECT's training, try changes in a sandbox, and show what is proven faster.

    \b
    trainflash tune . -- python train.py
    trainflash tune . --budget 40m --allow order -- python train.py --config small.yaml
    trainflash tune . --author claude --author-dollars 3 -- python train.py
    """
    run_loop(project, "tune", **asked)


@click.command(short_help="The whole loop on a bundled slow program.")
@click.option("--dir", "directory", type=PathName(), help="Put the demo project into a new folder in here.")
@click.option("--budget", type=Duration(), default=DEMO_BUDGET_S, help="Time for the loop. Default: 270s.")
@json_option
def demo(directory: Path | None, budget: float, as_json: bool) -> None:
    """Run the whole loop on a bundled program: handwritten digits, slow for an ordinary reason.

    \b
    trainflash demo
    """
    from trainflash.workflow import demo as bundled

    project = bundled.prepare(directory)
    Output(as_json).say(f"demo project: {project}")
    run_loop(project, "demo", budget=budget, as_json=as_json, cmd=(sys.executable, "train.py"))


def run_loop(
    project: Path,
    name: str,
    *,
    budget: float | None,
    as_json: bool,
    cmd: tuple[str, ...],
    sandbox: Path | None = None,
    allow: str | None = None,
    exact: bool = False,
    author: AuthorOptions = NO_AUTHOR,
) -> None:
    """Open or make the sandbox, run the loop, write the report, print the result."""
    from trainflash import report
    from trainflash.workflow import answers, inputs, searching, session, showing

    output = Output(as_json)
    settings = config.load(session.project_of(project, sandbox))
    command = inputs.command(cmd, settings, project, sandbox)
    demands = inputs.demands(settings, budget_s=budget, allow=allow, exact=exact)
    searching.refuse_too_little(demands.budget_s)
    writer, limits = inputs.writer(*author)
    output.say(f"tuning `{inputs.shown(command)}` in a sandbox: at most {demands.budget_s / 60:.0f} min, several starts of the program")
    if writer is not None:
        output.say(f"then {writer.name} writes patches in a throw-away copy: {limits.said()}")
    with output.progress() as progress:
        found, new = session.open_session(project, sandbox, on_progress=progress)
        if new:
            output.say(f"new sandbox: {found.sandbox.directory}")
        with found.locked():
            came_to = searching.auto(found, command, demands, budget_s=demands.budget_s, writer=writer, limits=limits)
            shown = showing.view(found, spent_s=came_to.spent_s, stopped_because=came_to.stopped_because)
            showing.write_report(found, shown)
        progress.finish()
    output.answer(answers.outcome(came_to, found.accepted(), name, shown), report.tune_result(shown))
