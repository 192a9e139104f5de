"""Options that a function of the project makes and a call takes in by `**`: another one goes where its neighbours are."""

from __future__ import annotations

import libcst as cst

from trainflash.knobs.project import Project
from trainflash.knobs.reading import callers
from trainflash.knobs.reading.python_source import PythonFile, descendants, dotted
from trainflash.knobs.splices import Splice

CHOOSES = "num_workers"  # without it the other options of workers are refused by the loader


def place(project: Project, call: cst.Call) -> tuple[PythonFile, cst.Dict] | None:
    """The one dictionary with a number of workers that a function called for this call alone returns; None without one."""
    for made in (arg.value for arg in call.args if arg.star == "**"):
        name = (dotted(made.func) or "").split(".")[-1] if isinstance(made, cst.Call) else ""
        functions = project.functions(name)
        if len(functions) != 1:
            continue
        file, function = functions[0]
        if [call for _, call in callers.sites(project, file, function)] != [made]:
            continue
        returned = [each.value for each in descendants(function, cst.Return)]
        nested = [each for each in descendants(function.body, (cst.FunctionDef, cst.Lambda))]
        holding = [each for each in returned if isinstance(each, cst.Dict) and _chooser(file, each) is not None]
        if len(holding) == 1 and not nested and all(isinstance(each, cst.Dict) for each in returned):
            return file, holding[0]
    return None


def _chooser(file: PythonFile, display: cst.Dict) -> str | None:
    """How the number of workers is spelled as a key, in plain quotes."""
    keys = [file.text(element.key) for element in display.elements if isinstance(element, cst.DictElement)]
    return next((key for key in keys if key in (f"'{CHOOSES}'", f'"{CHOOSES}"')), None)


def entry(file: PythonFile, display: cst.Dict, name: str, value: str) -> Splice:
    """`name` as the last entry, written as the one before it is."""
    last = display.elements[-1]
    end = file.span(last)[1]
    quote = (_chooser(file, display) or '"')[0]
    line = file.lines_of(last)[0]
    own_line = line > file.lines_of(display)[0] and (len(display.elements) == 1 or file.lines_of(display.elements[-2])[1] < line)
    before = f",{file.newline}{file.indent(last)}" if own_line else ", "
    return Splice(file.path, end, end, f"{before}{quote}{name}{quote}: {value}")
