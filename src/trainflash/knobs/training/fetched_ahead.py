"""Samplers that are asked further ahead of training, and draw on the way from what training draws from, too."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from trainflash.knobs.effects import harmless, purity
from trainflash.knobs.project import Project
from trainflash.knobs.reading.expressions import refuse, short
from trainflash.knobs.reading.python_source import LOOPS, PythonFile, descendants, keyword, own_method
from trainflash.knobs.training import data_sets

GLOBAL = ("random", "numpy.random", "torch")


def drawn_at_once(project: Project) -> None:
    """Raises `UsageError` where a sampler draws from a stream of all while it is asked: training may draw from it in between."""
    for file, owner in data_sets.classes(project, samplers=True):
        if own_method(owner, "__iter__") is None:
            continue
        if any(each is owner for _, each in data_sets.classes(project)):
            continue  # a data set: workers draw from streams of their own
        for where, method in data_sets.sampled(project, file, owner):
            for call in _draws_on_the_way(where, method):
                told = f"`{short(where.text(call))}` draws while the sampler is asked"
                raise refuse(f"{where.location(call)}: {told}, and training may draw from the same stream in between")


def _draws_on_the_way(file: PythonFile, method: cst.FunctionDef) -> Iterator[cst.Call]:
    """Draws from a stream of all in a loop that hands numbers out, or in a method that such a loop may call."""
    for call in descendants(method.body, cst.Call):
        full = file.full_name(call.func) or ""  # type: ignore[attr-defined]
        module, _, name = full.rpartition(".")
        if module not in GLOBAL or full in purity.SEEDED or name not in harmless.DRAWS or keyword(call, "generator") is not None:  # type: ignore[arg-type]
            continue
        loops = [up for up in file.ancestors(call) if isinstance(up, LOOPS) and file.inside(call, up.body)]
        asked = any(True for loop in loops for _ in descendants(loop.body, cst.Yield))
        if asked or method.name.value != "__iter__":
            yield call  # type: ignore[misc]
