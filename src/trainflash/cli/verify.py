"""`trainflash verify`: is it faster, and does it still train the same?"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import click

from trainflash import config
from trainflash.cli.elsewhere import Submittable, goes_on
from trainflash.cli.options import Duration, allow_option, command_argument, json_option, sandbox_option
from trainflash.cli.output import Output
from trainflash.errors import EXIT_DONE, Inconclusive, Rejected, UsageError


@click.command(cls=Submittable, short_help="Is it faster, and does it still train the same?")
@click.option("--experiment", type=int, help="Judge this experiment against the state it was built on.")
@click.option("--baseline", help="Judge this commit of the sandbox …")
@click.option("--candidate", help="… against this one. Default without any of the three: all accepted changes together.")
@click.option(
    "--metric",
    help="The project's own metric, which then decides instead of the loss: a regular expression with one group (on the output), "
    "$.path or FILE.json:$.path (JSON or JSON lines), or MODULE:FUNCTION (gets a run's output folder, returns a number).",
)
@click.option(
    "--tolerance",
    type=float,
    help="Largest mean |loss delta|, or |delta| of --metric, that counts as the same; better is a change like worse. Default: 1e-3.",
)
@click.option("--convergence", is_flag=True, help="Also train both versions whole under several seeds and compare where they end.")
@click.option("--seeds", type=int, default=5, show_default=True, help="How many seeds --convergence trains under.")
@click.option("--restart-command", help="The command that goes on from a checkpoint, such as 'python train.py --resume last.pt'.")
@allow_option
@click.option("--budget", type=Duration(), help="Time for the verdict, the check of the training included. Default: of the settings, 20m.")
@click.option(
    "--resume",
    is_flag=True,
    help="Go on with what an interrupted verify left, and refuse when machine, versions or settings are others now. Without it "
    "starts of the same comparison count on too, but others are set aside.",
)
@sandbox_option
@json_option
@command_argument
def verify(
    experiment: int | None,
    baseline: str | None,
    candidate: str | None,
    metric: str | None,
    tolerance: float | None,
    convergence: bool,
    seeds: int,
    restart_command: str | None,
    allow: str | None,
    exact: bool,
    budget: float | None,
    resume: bool,
    sandbox: Path | None,
    as_json: bool,
    cmd: tuple[str, ...],
) -> int:
    """Run baseline and candidate in turn, many times, and judge speed and fidelity; fails closed.

    Asked again about the same two programs, it goes on from the starts it has: a verdict is no lottery ticket.

    \b
    trainflash verify --experiment 2 -- python train.py
    """
    from trainflash import report
    from trainflash.workflow import answers, inputs, session, verifying

    if experiment is not None and (baseline or candidate):
        raise UsageError("--experiment and --baseline/--candidate exclude each other", "name an experiment, or two commits")
    output = Output(as_json)
    settings = config.load(session.project_of(Path.cwd(), sandbox))
    demands = inputs.demands(
        settings, budget_s=budget, allow=allow, exact=exact, tolerance=tolerance, resume=resume, metric=metric,
        restart=restart_command, convergence=seeds if convergence else 0,
    )  # fmt: skip
    demands = replace(demands, take_up=goes_on())
    found = session.existing_session(Path.cwd(), sandbox)
    output.say(verifying.cost(demands, found))
    with output.progress() as progress:
        found = replace(found, on_progress=progress)
        with found.locked():
            if experiment is not None:
                judged = verifying.verify_experiment(found, experiment, demands, inputs.command(cmd, settings) if cmd else None).verdict
            else:
                command = inputs.command(cmd, settings)
                judged = verifying.verify_commits(found, baseline, candidate, command, demands)
        progress.finish()
    output.answer(answers.verdict(judged), report.verdict(judged))
    return {"accept": EXIT_DONE, "reject": Rejected.exit_code}.get(judged.verdict, Inconclusive.exit_code)
