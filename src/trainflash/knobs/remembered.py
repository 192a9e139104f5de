"""Answers about a program that are looked up when they are asked for again: its files do not change while a plan is made."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Concatenate, ParamSpec, TypeVar

from trainflash.knobs.project import Project

Asked = ParamSpec("Asked")
Answer = TypeVar("Answer")


def remembered(function: Callable[Concatenate[Project, Asked], Answer]) -> Callable[Concatenate[Project, Asked], Answer]:
    """`function(project, …)`, which finds the same for equal arguments; an error is no answer, and is found again."""

    @functools.wraps(function)
    def ask(project: Project, *args: Asked.args, **options: Asked.kwargs) -> Answer:
        key = (function, args, tuple(sorted(options.items())) if options else ())
        try:
            return project.answers[key]  # type: ignore[return-value]
        except KeyError:
            found = project.answers[key] = function(project, *args, **options)
            return found

    return ask


def listed(function: Callable[Concatenate[Project, Asked], Iterable[Answer]]) -> Callable[Concatenate[Project, Asked], tuple[Answer, ...]]:
    """The same for what yields its answers one by one: all of them, found the first time."""

    @functools.wraps(function)
    def gone_through(project: Project, *args: Asked.args, **options: Asked.kwargs) -> tuple[Answer, ...]:
        return tuple(function(project, *args, **options))

    return remembered(gone_through)
