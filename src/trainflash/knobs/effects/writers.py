"""Functions of libraries that write into what they are handed."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import libcst as cst

from trainflash.knobs.project import Project
from trainflash.knobs.reading import callees
from trainflash.knobs.reading.python_source import PythonFile, dotted, keyword, sole

REPORTS = {
    "print",
    "save",
    "dump",
    "savetxt",
    "savefig",
    "to_csv",
    "write_text",
    "write_bytes",
    "makedirs",
    "mkdir",
    "info",
    "warning",
    "error",
}
SHOWS = ("add_", "assert", "check", "debug", "display", "hist", "imshow", "log", "plot", "print", "save", "scatter", "show", "synchronize")
SETS = ("close", "disable", "empty", "enable", "init", "manual_seed", "register", "seed", "set_", "use_")  # change the library itself
SHOWING = ("logging", "matplotlib", "mlflow", "pandas", "rich", "seaborn", "tqdm", "wandb")
INTO_FIRST = {"copyto", "put", "place", "putmask", "fill_diagonal", "put_along_axis", "shuffle", "setattr", "delattr", "pack_into", "Draw"}
HEAPS = ("heapq.", "bisect.insort")
COLLECTIVES = "torch.distributed."
# Of NumPy: how many operands stand in front of the argument that takes the result.
OPERANDS = dict.fromkeys(("abs", "absolute", "ceil", "cos", "exp", "floor", "log", "negative", "rint", "sign", "sin", "sqrt", "square"), 1)
OPERANDS |= dict.fromkeys(("add", "divide", "dot", "matmul", "maximum", "minimum", "mod", "multiply", "power", "subtract"), 2)


def writes_into(project: Project, file: PythonFile, call: cst.Call, handed: list[int]) -> bool:
    """Whether a library's function writes into one of the arguments whose numbers are `handed`."""
    full, tail = file.full_name(call.func) or "", callees.called_name(call)
    first = 0 in handed or any(call.args[number].keyword is not None for number in handed)
    if tail == "shuffle" or full in ("setattr", "delattr"):
        return first
    if not callees.of_library(project, file, call):
        return False
    if tail in INTO_FIRST or full.startswith(HEAPS) or (tail == "at" and full.startswith("numpy.")):
        return first
    if full.startswith(COLLECTIVES):
        return True
    if tail.endswith("_") and not tail.endswith("__"):
        return True
    if full.startswith("numpy.") and tail in OPERANDS and max(handed) >= OPERANDS[tail]:
        return True
    if any(_true(arg) for arg in call.args) or (tail == "nan_to_num" and keyword(call, "copy") is not None):
        return True
    return for_effect(file, call) and not tail.startswith(SETS) and full.split(".")[0] not in sys.stdlib_module_names


def for_effect(file: PythonFile, call: cst.Call) -> bool:
    """Whether nothing takes the call's result, and it is none that only shows or saves: it is called for what it changes."""
    name = callees.called_name(call)
    shown = name in REPORTS or name.startswith(SHOWS) or (file.full_name(call.func) or "").startswith(SHOWING)
    return isinstance(file.parent(call), cst.Expr) and not shown


def stands_in_call(file: PythonFile, node: cst.CSTNode, names: Sequence[str]) -> bool:
    """Whether the statement of `node` is nothing but a call by one of `names`."""
    small = sole(file.statement(node))
    call = small.value if isinstance(small, cst.Expr) else None
    return isinstance(call, cst.Call) and callees.called_name(call) in names


def _true(arg: cst.Arg) -> bool:
    name = arg.keyword.value if arg.keyword is not None else ""
    return (name == "inplace" or name.startswith("overwrite")) and dotted(arg.value) == "True"
