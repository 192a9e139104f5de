"""Options that several commands of `trainflash gate` share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import click

from trainflash.cli.options import Duration, PathName
from trainflash.gate.tolerances import ToleranceConfig

FILE = PathName()
BASELINES = Path("bench/baselines")
Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


def together(*options: Decorator) -> Decorator:
    """Several options as one decorator, in the order in which `--help` shows them."""

    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            function = option(function)
        return function

    return add


_DEFAULTS = ", ".join(f"{each.name} {each.default:g}" for each in fields(ToleranceConfig))
tolerance_option = click.option(
    "--tolerance",
    "words",
    multiple=True,
    metavar="NAME=VALUE",
    help=f"Over the settings' [gate] and the defaults, which are: {_DEFAULTS}; per cent, points (abs), loss a step (slope).",
)
baselines_option = click.option("--baselines", "folder", type=FILE, default=BASELINES, show_default=True, help="Folder of the baselines.")
shown_options = together(
    click.option("--summary", type=FILE, help="Add the result as Markdown to this file, such as $GITHUB_STEP_SUMMARY."),
    click.option("--annotations", is_flag=True, help="Print GitHub annotations: at the line that got slower."),
)
permitted_option = click.option(
    "--allow-missing-baseline", "permitted", is_flag=True, help="A machine without a baseline passes, with a warning and a notice."
)
paired_options = together(
    click.option("--against", metavar="REF", help="Run that commit and this state in turn, here and now, instead of a stored baseline."),
    click.option("--budget", type=Duration(), help="Time for the paired starts, such as 10m. Default: that of the settings, 20m."),
    click.option("--max-repeats", type=click.IntRange(min=1), help="At most so many runs (stored: 8) or paired starts (16)."),
)
quality_options = together(
    click.option("--metric", "metrics", multiple=True, help="A metric of your own evaluation, as for gate eval --metric."),
    click.option("--better", type=click.Choice(["lower", "higher"]), default="lower", show_default=True, help="Which way it is better."),
    click.option("--eval-command", help="The command that shows the metric. Default: the training command."),
)
measured_options = together(
    click.option("--metrics", "metrics_file", type=FILE, help="metrics.json of this state."),
    click.option("--eval", "eval_file", type=FILE, help="eval.json of this state."),
)
out_option = click.option("--out-dir", type=FILE, default=Path("perf-gate"), show_default=True, help="Where all files go.")
