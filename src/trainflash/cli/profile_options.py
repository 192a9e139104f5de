"""Options that several of the profile's commands share: where a trace comes from, how it is summarized, what counts as a regression."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from trainflash.cli.options import PathName

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]
MODES = ("exclusive_global", "exclusive_per_track", "inclusive")
FILE = PathName()


def _all(*options: Decorator) -> Decorator:
    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


wandb_options = _all(
    click.option("--entity", help="W&B entity, where a run is named by its bare id. Default: WANDB_ENTITY."),
    click.option("--project", help="W&B project, where a run is named by its bare id. Default: WANDB_PROJECT."),
    click.option("--download-root", type=FILE, help="Where downloads are kept. Default: a temporary directory."),
)

source_options = _all(
    click.option("--profile-dir", type=FILE, help="A directory with a trace, or one of each rank; an *.xplane.pb is preferred to JSON."),
    click.option(
        "--trace-file",
        type=FILE,
        multiple=True,
        help="JSON of Kineto, Chrome, Perfetto or rocprofv3, .gz too, a .pftrace, nsys' .sqlite, torch's memory snapshot; again for each "
        "rank, or a .tar.gz.",
    ),
    click.option("--xplane-file", type=FILE, multiple=True, help="An *.xplane.pb; again for each host."),
    click.option("--xplane-output-dir", type=FILE, help="Keep the tables that the optional package xprof makes of it here."),
    click.option("--xplane-count-trace-events", is_flag=True, help="Ask xprof how many events its trace viewer would show; slower."),
    click.option("--artifact", help="A W&B artifact: entity/project/name:v0."),
    click.option("--run-target", help="A W&B run: its id, entity/project/id, its URL, or a folder of an offline run."),
    wandb_options,
)

summary_options = _all(
    click.option(
        "--breakdown-mode", type=click.Choice(MODES), default=MODES[0], show_default=True, help="How concurrent events are counted."
    ),
    click.option("--warmup-steps", type=click.IntRange(min=0), help="Leave out so many first steps, instead of finding the warm-up."),
    click.option(
        "--hot-op-limit",
        type=click.IntRange(min=1),
        default=25,
        show_default=True,
        help="How many ops the summary lists by their own time.",
    ),
    click.option(
        "--readability-run", is_flag=True, help="Mark it as made for readable names (such as command buffers off): never to be compared."
    ),
)

limit_options = _all(
    click.option(
        "--max-step-median-regression-pct", type=float, default=5.0, show_default=True, help="Fail when the median step is slower by more."
    ),
    click.option(
        "--max-step-p90-regression-pct", type=float, default=10.0, show_default=True, help="Fail when the p90 step is slower by more."
    ),
    click.option(
        "--max-communication-share-regression-abs", type=float, default=0.05, show_default=True, help="Warn when its share grew by more."
    ),
    click.option(
        "--max-stall-share-regression-abs", type=float, default=0.05, show_default=True, help="Warn when the share of stalls grew by more."
    ),
)

compared_options = _all(
    click.option("--before", type=FILE, required=True, help="Summary of the baseline."),
    click.option("--after", type=FILE, required=True, help="Summary of the candidate."),
)

strict_option = click.option(
    "--strict-provenance",
    is_flag=True,
    help="Refuse one trace against itself, and workloads that share no identity or differ in ranks or devices.",
)
top_option = click.option("--top-k", type=click.IntRange(min=1), default=10, show_default=True, help="How many rows of each list.")
output_option = click.option("--output", type=FILE, help="Write it there: .json, .md or .html. Default: print it.")
