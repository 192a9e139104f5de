"""`trainflash optimize`: one knob per experiment, each a reviewable diff in the sandbox."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from trainflash import config
from trainflash.cli import elsewhere
from trainflash.cli.elsewhere import Submittable, goes_on
from trainflash.cli.options import (
    Duration,
    Launching,
    PathName,
    allow_option,
    command_argument,
    json_option,
    sandbox_or_new_option,
    search_options,
)
from trainflash.cli.output import Output, exit_of
from trainflash.errors import UsageError


@click.group("optimize", short_help="Plan changes and try them, one at a time.")
def group() -> None:
    """Plan and try changes, one at a time; only what is proven faster and trains the same is kept.

    Without `-- CMD` the command is that of the last experiment or diagnosis in the sandbox.

    \b
    trainflash optimize plan -- python train.py
    trainflash optimize try dataloader_workers=2 -- python train.py
    trainflash optimize auto --budget 20m -- python train.py
    """


@group.command("plan", cls=Launching)
@sandbox_or_new_option
@json_option
@command_argument
def plan(sandbox: Path | None, as_json: bool, cmd: tuple[str, ...]) -> None:
    """Write plan.yaml from the newest diagnosis, or a first one: candidates in the order to try them, briefs where no knob fits.

    \b
    trainflash optimize plan -- python train.py
    """
    from trainflash import report
    from trainflash.workflow import answers, diagnosing, inputs, optimizing, session

    output = Output(as_json)
    settings = config.load(session.project_of(Path.cwd(), sandbox))
    command = inputs.command(cmd, settings, Path.cwd(), sandbox)
    with output.progress() as progress:
        found, _ = session.open_session(Path.cwd(), sandbox, on_progress=progress)
        with found.locked():
            known = diagnosing.latest(found, command) or diagnosing.diagnose(found, command)
            made, _ = optimizing.plan(found, *known, command)
        progress.finish()
    output.answer(answers.plan(made), report.plan(made))


@group.command("brief", cls=Launching, short_help="Print the task for whoever writes a patch.")
@click.option("--finding", metavar="KIND", help="Of this finding. Default: of the largest cost that no knob is likely to settle.")
@click.option("--at", metavar="FILE:LINE", help="Of this place of your source.")
@allow_option
@sandbox_or_new_option
@json_option
@command_argument
def brief(
    finding: str | None, at: str | None, allow: str | None, exact: bool, sandbox: Path | None, as_json: bool, cmd: tuple[str, ...]
) -> None:
    """Print the task for whoever writes a patch: the cost with its evidence, the code with its call path, shapes, what must stay the same,
    patterns that fit, what was tried, and how an answer is judged. It is what `--author` hands to an assistant.

    \b
    trainflash optimize brief -- python train.py
    trainflash optimize brief --at model.py:41 --json -- python train.py
    """
    from trainflash import report
    from trainflash.workflow import answers, briefing, diagnosing, inputs, session

    output = Output(as_json)
    settings = config.load(session.project_of(Path.cwd(), sandbox))
    command = inputs.command(cmd, settings, Path.cwd(), sandbox)
    allowed = inputs.demands(settings, allow=allow, exact=exact).allowed
    with output.progress() as progress:
        found, _ = session.open_session(Path.cwd(), sandbox, on_progress=progress)
        with found.locked():
            if diagnosing.latest(found, command) is None:
                diagnosing.diagnose(found, command)
            made = briefing.asked(found, command, kind=finding, at=inputs.place(at) if at else None, allowed=allowed)
        progress.finish()
    output.answer(answers.brief(made), report.brief(made))


@group.command("try", cls=Submittable, whole=lambda params: not params["also"])
@click.argument("knob", required=False, metavar="[KNOB[=VALUE]]")
@click.option(
    "--also",
    multiple=True,
    metavar="KNOB[=VALUE]",
    help="One more knob, judged by itself on the same state; with --on slurm all at once, as an array of jobs. The best is kept.",
)
@click.option("--at", metavar="FILE:LINE", help="Apply the knob at this place of your source.")
@click.option("--patch", type=PathName(), help="Try this unified diff instead of a knob.")
@click.option("--why", default="", help="Why the patch should help; goes into the tuning log.")
@click.option("--finding", metavar="KIND", help="The finding that the patch answers, as its brief names it.")
@click.option("--budget", type=Duration(), help="Time for this experiment, such as 10m; at least half of it is for the timing.")
@allow_option
@sandbox_or_new_option
@json_option
@command_argument
def try_(
    knob: str | None,
    also: tuple[str, ...],
    at: str | None,
    patch: Path | None,
    why: str,
    finding: str | None,
    budget: float | None,
    allow: str | None,
    exact: bool,
    sandbox: Path | None,
    as_json: bool,
    cmd: tuple[str, ...],
) -> int:
    """Make one experiment: commit the change in the sandbox, check that it trains the same, then measure it.

    Where the project has no sandbox, one is made; for a knob, a command that was not diagnosed in it yet is. What changes the training in
    a way that you can agree to is measured too, and asked for. Exit codes: 0 accepted, 4 rejected, 3 inconclusive, 5 it needs an agreement.

    \b
    trainflash optimize try dataloader_workers=2 --at train.py:88 -- python train.py
    trainflash optimize try pin_memory --also dataloader_workers=4 --also optimizer_fused --on slurm -- python train.py
    trainflash optimize try --patch /tmp/faster.diff --finding host_code --why "one pass over the rows" -- python train.py
    """
    from trainflash import report
    from trainflash.workflow import answers, inputs, optimizing, session, verifying

    if knob and patch:
        raise UsageError("give a knob or a patch, not both", "see `trainflash optimize try --help`")
    if not knob and not patch:
        raise UsageError("what to try is missing", "name a knob from `trainflash optimize plan`, or --patch FILE")
    if (finding or why) and not patch:
        raise UsageError("--why and --finding say what a patch is for", "give --patch too, or leave them out: a knob knows its own")
    if at and patch:
        raise UsageError("--at goes with a knob: a patch says itself where it applies", "leave --at out")
    if any("=" in word and not word.partition("=")[2] for word in (knob or "", *also)):
        raise UsageError("the value behind = is missing", "write KNOB=VALUE, or KNOB alone for the value that the plan would try first")
    if also and (not knob or at):
        raise UsageError("--also goes with a knob, without --at", "try a patch, or a place, by itself")
    written = optimizing.from_patch(patch, why, finding) if patch else None
    output = Output(as_json)
    settings = config.load(session.project_of(Path.cwd(), sandbox))
    command = inputs.command(cmd, settings, Path.cwd(), sandbox)
    demands = replace(inputs.demands(settings, budget_s=budget, allow=allow, exact=exact), take_up=goes_on())
    verifying.require_budget(demands)
    if also:
        return _several(output, sandbox, (str(knob), *also), command, demands)
    with output.progress() as progress:
        found, _ = session.open_session(Path.cwd(), sandbox, on_progress=progress)
        with found.locked():
            name, _, value = str(knob).partition("=")
            candidate = written or optimizing.propose(found, name, value or None, inputs.place(at) if at else None, command)
            begun = optimizing.begin(found, candidate, command, demands)
            output.say(verifying.cost(demands, found))
            experiment = optimizing.measure(found, begun.n, demands)
        progress.finish()
    document = answers.attempt(experiment)
    output.answer(document, report.experiments([experiment]), report.verdict(experiment.verdict, experiment.agree_command))
    return exit_of(document["status"])


def _several(output: Output, sandbox: Path | None, names: tuple[str, ...], command: Any, demands: Any) -> int:
    """A round of experiments, each typed again in a sandbox and, with --on slurm, in a job of its own."""
    from trainflash import report
    from trainflash.workflow import answers, inputs, rounds, session, submitting, verifying

    def typed(tried: rounds.Tried) -> submitting.Typed:
        words = ["optimize", "try", tried.knob, "--sandbox", str(tried.directory), "--budget", f"{demands.budget_s}s"]
        words += inputs.as_typed(demands)
        return submitting.Typed(tuple(words), ("--", *command.argv), *config.IN_A_JOB)

    parts = submitting.Parts(typed, Path.cwd(), elsewhere.environment(), elsewhere.relay, elsewhere.say)
    cluster = elsewhere.cluster()
    with output.progress() as progress:
        found, _ = session.open_session(Path.cwd(), sandbox, on_progress=progress)
        output.say(verifying.cost(demands, found))
        with found.locked():
            run = parts.here if cluster is None else parts.as_array(found.directory / "jobs", *cluster)
            experiments = rounds.at_once(found, names, command, demands, run)
        progress.finish()
    document = answers.attempts(experiments)
    output.answer(document, report.experiments(list(experiments)))
    return exit_of(document["status"])


@group.command("auto", cls=Submittable)
@search_options
def auto(**asked: Any) -> None:
    """Diagnose, plan, try one knob at a time, diagnose again, until the program is healthy or the budget is spent.

    A search that was interrupted goes on where it stood when the same command is given again. What changes the training is tried only
    if it is allowed by name. With --author an assistant then writes patches for what is left, in a throw-away copy without .git; each is
    judged like any other change, and its reason for a refusal goes back to the assistant once.

    \b
    trainflash optimize auto --budget 20m -- python train.py
    trainflash optimize auto --budget 1h --allow order,cadence -- python train.py
    trainflash optimize auto --author codex --author-minutes 10 -- python train.py
    """
    from trainflash.cli.tune import run_loop

    run_loop(Path.cwd(), "optimize_auto", **asked)
