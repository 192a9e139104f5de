"""Keep the results of a pure function whose arguments are dictionaries, lists and arrays: no keys themselves, but what they hold is one."""

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
OF_ARRAYS_MS = 0.3  # own: blake2b reads 300 kB in that time
MOST_RESULTS = 64  # own: so few that no bound is needed; arrays, of which only a digest is kept, may be as many as memory takes results
HELPER = '''def kept_by_contents(make):
    """Keeps each result by what the arguments hold, for dictionaries, lists and arrays cannot be keys themselves."""
    kept = {}

    def contents(value):
        if isinstance(value, dict):
            return type(value), tuple((name, contents(each)) for name, each in value.items())
        if isinstance(value, (list, tuple)):
            return type(value), tuple(map(contents, value))
<arrays>        return type(value), value

    @<functools.wraps>(make)
    def remembered(*args, **kwargs):
        key = contents(args), contents(kwargs)
        if key not in kept:
            kept[key] = make(*args, **kwargs)
        return kept[key]

    return remembered


'''


ARRAYS = """        if type(value) is <numpy.ndarray>:
            return value.dtype.str, value.shape, <hashlib.blake2b>(value.tobytes()).digest()
"""


def kept_by_contents(file: PythonFile, function: cst.FunctionDef, work: RepeatedWork, entries: int) -> tuple[str, tuple[Splice, ...]]:
    """The decorator's name and the edits that define it and put it there. Raises `UsageError` where it would not pay, or has no place."""
    here = file.location(function)
    if work.mean_ms < LEAST_MS:
        raise refuse(f"{here}: its arguments cannot be keys of a cache, and to look through them takes as long as its work")
    arrays = _knows_numpy(file) and work.mean_ms >= OF_ARRAYS_MS
    if entries > MOST_RESULTS and not arrays:
        raise refuse(f"{here}: its arguments cannot be keys of a cache, and {entries} results would have to be told apart")
    if function.decorators:
        raise refuse(f"{here}: its arguments cannot be keys of a cache, and what its decorators make of it is not known")
    if any(each.value == NAME for each in descendants(file.module, cst.Name)):  # type: ignore[attr-defined]
        raise refuse(f"{here}: the name {NAME} is used already")
    helper, needed = HELPER.replace("<arrays>", ARRAYS if arrays else ""), []
    for module, name in (("functools", "wraps"), *((("numpy", "ndarray"), ("hashlib", "blake2b")) if arrays else ())):
        spelled, more = imports.reach(file, module, name)
        helper = helper.replace(f"<{module}.{name}>", spelled)
        needed += more
    return NAME, (*needed, above_in_module(file, function, helper), decorating(file, function, NAME))


def _knows_numpy(file: PythonFile) -> bool:
    return any(name.split(".")[0] == "numpy" for name in file.imported.values())
