"""Whether it is known which of the compiled parts of a program is compiled anew."""

from __future__ import annotations

import libcst as cst

from trainflash.knobs.project import Project
from trainflash.knobs.reading import callees
from trainflash.knobs.reading.expressions import refuse, short
from trainflash.knobs.reading.python_source import PythonFile

COMPILE = "torch.compile"


def compiles_alone(project: Project, call: cst.CSTNode) -> None:
    """Raises `UsageError` where something else is compiled, too, which may be what is compiled again: a module's method, a decorator."""
    for file in project.parsed("compile"):
        bare = [each.decorator for function in file.functions for each in function.decorators]
        other = [node for node in bare if node is not call and file.full_name(node) == COMPILE]
        other += [each for each in file.calls if each is not call and callees.method_name(each) == "compile" and not _of_module(file, each)]
        for node in other:
            raise refuse(f"{file.location(node)}: `{short(file.text(node))}` compiles, too, and which of them is compiled anew is not told")


def _of_module(file: PythonFile, call: cst.Call) -> bool:
    return file.import_of(call.func) is not None
