"""`trainflash verify`: is it faster, and does it still train the same?"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import click

from trainflash import config
from trainflash.cli.elsewhere import Submittable, goes_on
from trainflash.cli.gate_shown import write
from trainflash.cli.options import Duration, PathName, allow_option, command_argument, json_option, sandbox_or_new_option
from trainflash.cli.output import Output, exit_of


@click.command(cls=Submittable, short_help="Is it faster, and does it still train the same?")
@click.option("--experiment", type=int, help="Judge this experiment against the state it was built on.")
@click.option(
    "--baseline",
    metavar="REF",
    help="What the candidate is compared with: any branch, tag or commit. Default: where a candidate's branch left the main branch (its "
    "parent, if it lies on that); for a patch the project as it is now.",
)
@click.option(
    "--candidate",
    metavar="REF|FILE.diff",
    help="What is judged: any branch, tag or commit (main, origin/feature, pull/12/head once fetched), or a patch file on the baseline. "
    "Default: the project as it is now, with what was accepted.",
)
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
@click.option(
    "--budget",
    type=Duration(),
    help="Time for the verdict, of which the check of the training takes half at most. Default: of the settings, 20m.",
)
@click.option(
    "--resume",
    is_flag=True,
    help="Go on with what an interrupted verify left, and refuse when machine, versions or settings are others now. Without it "
    "starts of the same comparison count on too, but others are set aside.",
)
@click.option(
    "--bundle",
    type=PathName(),
    metavar="FILE",
    help="Also write the verdict there as one file for other machines: change, command, environment, starts, records, a digest over all.",
)
@click.option(
    "--carried",
    type=PathName(),
    metavar="FILE",
    help="Judge the change of a bundle here, by the command after --, and say whether its verdict carries over. Figures of the two "
    "machines are never mixed. The change runs in the sandbox; a command that stands in the bundle is never run.",
)
@click.option("--summary", type=PathName(), metavar="FILE", help="Add the verdict as Markdown to this file, such as $GITHUB_STEP_SUMMARY.")
@sandbox_or_new_option
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
    bundle: Path | None,
    carried: Path | None,
    summary: Path | None,
    sandbox: Path | None,
    as_json: bool,
    cmd: tuple[str, ...],
) -> int:
    """Run baseline and candidate in turn, many times, and judge speed and fidelity; fails closed.

    Two states of the project are compared where it has no sandbox, too: one is made. Your tree and your branches stay as they are.
    Asked again about the same two programs, it goes on from the starts it has: a verdict is no lottery ticket.

    \b
    trainflash verify --experiment 2 -- python train.py
    trainflash verify --candidate origin/feature -- python train.py
    trainflash verify --baseline v1.0 --candidate faster.diff -- python train.py
    trainflash verify --candidate feature --bundle feature.zip -- python train.py
    trainflash verify --carried feature.zip -- python train.py

    Exit codes: 0 accepted, 4 rejected, 3 inconclusive, 5 it needs an agreement (--accept-change); with --carried 0 the verdict carries
    over, 4 it does not, 3 undecided.
    """
    from trainflash import report
    from trainflash.workflow import answers, inputs, session, states, verifications, verifying

    asked = states.asked(experiment, baseline, candidate, Path.cwd(), carried)
    output = Output(as_json)
    settings = config.load(session.project_of(Path.cwd(), sandbox))
    demands = inputs.demands(
        settings, budget_s=budget, allow=allow, exact=exact, tolerance=tolerance, resume=resume, metric=metric,
        restart=restart_command, convergence=seeds if convergence else 0,
    )  # fmt: skip
    demands = replace(demands, take_up=goes_on())
    command = inputs.command(cmd, settings) if cmd or experiment is None else None
    verifying.require_budget(demands)
    with output.progress() as progress:
        found = verifications.session_for(Path.cwd(), sandbox, asked, progress)
        with found.locked():
            verified, over = verifications.verify(found, asked, command, demands, output.say, bundle, summary)
        progress.finish()
    if summary is not None:
        write(summary, report.verified.markdown(verified, over))
    document = answers.verified(verified, over)
    output.answer(document, report.verified.terminal(verified, over))
    return exit_of(document["status"])
