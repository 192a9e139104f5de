"""Options and arguments that several commands share."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from trainflash import config


class PathName(click.Path):
    """A path on the command line. "" is none: it comes of a variable that is not set, and would mean the current folder."""

    def __init__(self) -> None:
        super().__init__(path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value == "":
            self.fail("the path is empty; name it, or '.' for the current folder", param, ctx)
        return super().convert(value, param, ctx)


class Launching(click.Command):
    """A command of ours that runs one of the owner's: what follows the first `--` is his, and no argument of ours can take a word of it."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ours = args.index("--") if "--" in args else len(args)
        rest = super().parse_args(ctx, args[:ours])
        ctx.params["cmd"] = (*ctx.params["cmd"], *args[ours + 1 :])
        return rest


def command_argument(function: Callable[..., Any]) -> Callable[..., Any]:
    return click.argument("cmd", nargs=-1, type=click.UNPROCESSED, metavar="-- CMD…")(function)


def allow_option(function: Callable[..., Any]) -> Callable[..., Any]:
    exact = click.option(
        "--exact",
        is_flag=True,
        help="Refuse what is not equal to the last bit. Without it, rounding within the program's own noise counts as the same.",
    )
    return click.option(
        "--allow",
        "--accept-change",
        "allow",
        metavar="NAMES",
        help="Changes that you agree to by name, comma-separated; what needs one that you did not give is measured, and asked for: "
        "order, precision, cadence, schedule, batch, shape, coverage, evaluation, unseen (changed lines that never ran).",
    )(exact(function))


AuthorOptions = tuple[str | None, float | None, float | None, int | None]  # command, minutes, dollars, attempts
NO_AUTHOR: AuthorOptions = (None, None, None, None)


def author_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Who writes patches and within which limits; the command gets them as one argument `author`."""

    @functools.wraps(function)
    def packed(*words: Any, author: Any, author_minutes: Any, author_dollars: Any, author_attempts: Any, **others: Any) -> Any:
        return function(*words, author=(author, author_minutes, author_dollars, author_attempts), **others)

    positive = click.FloatRange(min=0, min_open=True)
    minutes = click.option("--author-minutes", type=positive, help="For one of its attempts. Default: 20.")
    dollars = click.option("--author-dollars", type=positive, help="In all, as far as it tells its cost. Default: 5.")
    attempts = click.option("--author-attempts", type=click.IntRange(min=1), help="In all, second ones counted too. Default: 6.")
    return click.option(
        "--author",
        metavar="CMD",
        help="An assistant that writes patches where neither a setting nor a transform does it: claude, codex, gemini, copilot, cursor, "
        "aider, opencode, mini or acp:NAME, with flags of your own behind the name; manual or manual:FOLDER; or any command line that "
        "edits the folder it is started in ({brief}, {dir}, {files}, {dollars} and {minutes} are filled in).",
    )(minutes(dollars(attempts(packed))))


def json_option(function: Callable[..., Any]) -> Callable[..., Any]:
    return click.option("--json", "as_json", is_flag=True, help="Print one JSON document on stdout, everything else on stderr.")(function)


def sandbox_option(function: Callable[..., Any]) -> Callable[..., Any]:
    return _sandbox("the project's newest")(function)


def sandbox_or_new_option(function: Callable[..., Any]) -> Callable[..., Any]:
    return _sandbox("the project's newest, else a new one")(function)


def sandbox_as_it_is_option(function: Callable[..., Any]) -> Callable[..., Any]:
    return _sandbox("one that holds the project as it is now")(function)


def search_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """What a search is asked, as `tune.run_loop` takes it."""
    budget = click.option("--budget", type=Duration(), help="Time for everything but an author's writing, such as 20m.")
    for option in (command_argument, json_option, sandbox_or_new_option, author_options, allow_option, budget):
        function = option(function)
    return function


def _sandbox(default: str) -> Callable[..., Any]:
    return click.option("--sandbox", type=PathName(), help=f"Work in this sandbox. Default: {default}.")


class Duration(click.ParamType):
    """`90s`, `20m`, `1.5h` or plain seconds."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        try:
            return config.parse_duration(value)
        except ValueError:
            self.fail(f"{value!r} is no duration; write 90s, 20m or 1.5h", param, ctx)
