"""Commands that can run as a Slurm job: `--on slurm`, or `on = "slurm"` in the settings. In the job the same command runs here."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import click

from trainflash import config
from trainflash.cli.options import Duration, Launching

_META, _PARTS = "trainflash.again", "trainflash.parts"
Told = Callable[[Mapping[str, Any]], bool]
_OPTIONS = (
    click.Option(
        ["--on"], type=click.Choice(["here", "slurm", config.AGAIN]), metavar="[here|slurm]",
        help="Where to run: here, or as a Slurm job that runs this same command on its allocation; we wait, and Ctrl-C cancels it.",
    ),
    click.Option(["--slurm-partition"], metavar="NAME", help="Partition of the job."),
    click.Option(["--slurm-constraint"], metavar="FEATURES", help="Features that its nodes must have, such as a100."),
    click.Option(["--slurm-time"], type=Duration(), help="Time limit of the job. Default: twice the budget and 30m, at least 1h."),
    click.Option(["--slurm-wait"], type=Duration(), help="Give up when the job did not start by then. Default: 1h."),
    click.Option(
        ["--slurm-option"], multiple=True, metavar="KEY[=VALUE]", help="Any other option of sbatch, such as nodes=2, gres=gpu:4, exclusive."
    ),
)  # fmt: skip
_NAMES = tuple(str(option.name) for option in _OPTIONS)


class Submittable(Launching):
    """A command that starts the owner's program, here or in a job. `starts` says whether it does with these options; by default always.

    `whole` says whether all of the command is one job; where it is not, the command submits its parts (see `cluster`).
    """

    def __init__(self, *args: Any, starts: Told = lambda params: True, whole: Told = lambda params: True, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._starts, self._whole = starts, whole
        self.params = [*self.params[:-1], *_OPTIONS, *self.params[-1:]]

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        split = args.index("--") if "--" in args else len(args)
        ctx.meta["trainflash.typed"] = (tuple(args[:split]), tuple(args[split:]))
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        given = {name: ctx.params.pop(name) for name in _NAMES}
        ctx.meta[_META] = given["on"] == config.AGAIN
        starts = self._starts(ctx.params)
        if given["on"] == "slurm" and not starts:
            raise click.UsageError("--on slurm is for commands that start your program; this one reads what is there", ctx)
        settings = None
        if starts and given["on"] in {None, "slurm"}:
            settings = _settings(ctx)
            if given["on"] == "slurm" or settings.on == "slurm":
                options = _options(ctx, given)
                if self._whole(ctx.params):
                    return _submitted(ctx, settings.slurm, options)
                ctx.meta[_PARTS] = (settings.slurm, options)
                return super().invoke(ctx)
        loose = [option.opts[0] for option in _OPTIONS[1:] if given[str(option.name)]]
        if loose and given["on"] is None:
            raise click.UsageError(f"{loose[0]} goes with --on slurm", ctx)
        return super().invoke(ctx)


def goes_on() -> bool:
    """Whether this is a job's next attempt, which takes up what the one before it had finished."""
    return bool(click.get_current_context().meta.get(_META))


def cluster() -> tuple[Mapping[str, Any], Mapping[str, Any]] | None:
    """Settings and options of the jobs that this command is to submit; None: its parts run here."""
    return click.get_current_context().meta.get(_PARTS)


def _settings(ctx: click.Context) -> config.Settings:
    from trainflash.workflow import session

    sandbox = ctx.params.get("sandbox")
    return config.load(session.project_of(ctx.params.get("project") or Path.cwd(), sandbox))


def _options(ctx: click.Context, given: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "partition": given["slurm_partition"],
        "constraint": given["slurm_constraint"],
        "time_s": given["slurm_time"],
        "wait_s": given["slurm_wait"],
        "options": given["slurm_option"],
        "budget_s": ctx.params.get("budget"),
    }


def _submitted(ctx: click.Context, settings: Mapping[str, Any], options: Mapping[str, Any]) -> int:
    from trainflash.workflow import submitting

    words, owners = ctx.meta["trainflash.typed"]
    typed = submitting.Typed((*_path(ctx), *words), owners, *config.IN_A_JOB)
    came = submitting.submit_and_wait(
        typed,
        settings,
        options,
        cwd=Path.cwd(),
        sandbox=ctx.params.get("sandbox"),
        environment=environment(),
        relay=relay,
        say=say,
    )
    sys.stdout.write(came.answer)
    sys.stdout.flush()
    return came.code


def environment() -> dict[str, str]:
    """What a job must know of our terminal."""
    return {"COLUMNS": str(shutil.get_terminal_size().columns)}


def relay(text: str) -> None:
    """Show what a job wrote on stderr, as it is."""
    click.echo(text, err=True, nl=False)


def say(line: str) -> None:
    """One line about a job."""
    click.echo(line, err=True)


def _path(ctx: click.Context) -> tuple[str, ...]:
    """The names of the command and of the groups it lies in, without that of the program."""
    names: list[str] = []
    at: click.Context | None = ctx
    while at is not None and at.parent is not None:
        names.insert(0, str(at.info_name))
        at = at.parent
    return tuple(names)
