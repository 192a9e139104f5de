"""Keep the results of a pure function whose arguments are dictionaries and lists: no keys themselves, but what they hold is one."""

from __future__ import annotations

import libcst as cst

from trainflash.knobs.edits import imports
from trainflash.knobs.edits.statements import above_in_module, decorating
from trainflash.knobs.reading.expressions import refuse
from trainflash.knobs.reading.python_source import PythonFile, descendants
from trainflash.knobs.splices import Splice
from trainflash.schema import RepeatedWork

NAME = "kept_by_contents"
LEAST_MS = 0.1  # own: to look through 64 parts of the arguments takes 0.02
MOST_RESULTS = 64  # own: so few that no bound is needed
HELPER = '''def kept_by_contents(make):
    """Keeps each result by what the arguments hold, for dictionaries and lists cannot be keys themselves."""
    kept = {}

    def contents(value):
        if isinstance(value, dict):
            return type(value), tuple((name, contents(each)) for name, each in value.items())
        if isinstance(value, (list, tuple)):
            return type(value), tuple(map(contents, value))
        return type(value), value

    @<functools.wraps>(make)
    def remembered(*args, **kwargs):
        key = contents(args), contents(kwargs)
        if key not in kept:
            kept[key] = make(*args, **kwargs)
        return kept[key]

    return remembered


'''


def kept_by_contents(file: PythonFile, function: cst.FunctionDef, work: RepeatedWork, entries: int) -> tuple[str, tuple[Splice, ...]]:
    """The decorator's name and the edits that define it and put it there. Raises `UsageError` where it would not pay, or has no place."""
    here = file.location(function)
    if work.mean_ms < LEAST_MS:
        raise refuse(f"{here}: its arguments cannot be keys of a cache, and to look through them takes as long as its work")
    if entries > MOST_RESULTS:
        raise refuse(f"{here}: its arguments cannot be keys of a cache, and {entries} results would have to be told apart")
    if function.decorators:
        raise refuse(f"{here}: its arguments cannot be keys of a cache, and what its decorators make of it is not known")
    if any(each.value == NAME for each in descendants(file.module, cst.Name)):  # type: ignore[attr-defined]
        raise refuse(f"{here}: the name {NAME} is used already")
    spelled, needed = imports.reach(file, "functools", "wraps")
    helper = HELPER.replace("<functools.wraps>", spelled)
    return NAME, (*needed, above_in_module(file, function, helper), decorating(file, function, NAME))
