"""Options that a function of the project makes and a call takes in by `**`: another one goes where its neighbours are."""

from __future__ import annotations

import libcst as cst

from trainflash.knobs.project import Project
from trainflash.knobs.reading import uses
from trainflash.knobs.reading.python_source import PythonFile, descendants, dotted, string_value
from trainflash.knobs.splices import Splice

CHOOSES = "num_workers"  # without it the other options of workers are refused by the loader


def place(project: Project, call: cst.Call) -> tuple[PythonFile, cst.Dict] | None:
    """The one dictionary with a number of workers that a function called for this call alone returns; None without one."""
    for made in (arg.value for arg in call.args if arg.star == "**"):
        name = (dotted(made.func) or "").split(".")[-1] if isinstance(made, cst.Call) else ""
        files = project.parsed(f"def {name}") if name else ()
        functions = [(file, function) for file in files for function in file.functions if function.name.value == name]
        if len(functions) != 1 or len(uses.callers(project, *functions[0])) != 1:
            continue
        file, function = functions[0]
        returned = [each.value for each in descendants(function, cst.Return) if isinstance(each.value, cst.Dict)]
        holding = [each for each in returned if any(_key(element) == CHOOSES for element in each.elements)]
        if len(holding) == 1:
            return file, holding[0]
    return None


def _key(element: cst.BaseDictElement) -> str | None:
    return string_value(element.key) if isinstance(element, cst.DictElement) else None


def entry(file: PythonFile, display: cst.Dict, name: str, value: str) -> Splice:
    """`name` as the last entry, written as the one before it is."""
    last = display.elements[-1]
    end = file.span(last)[1]
    quote = next((file.text(element.key)[-1] for element in display.elements if isinstance(element, cst.DictElement)), '"')
    line = file.lines_of(last)[0]
    own_line = line > file.lines_of(display)[0] and (len(display.elements) == 1 or file.lines_of(display.elements[-2])[1] < line)
    before = f",{file.newline}{file.indent(last)}" if own_line else ", "
    return Splice(file.path, end, end, f"{before}{quote}{name}{quote}: {value}")
