"""Whether what is read is only shown or written down for people, and training, weights and evaluation go without it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import libcst as cst

from trainflash.knobs.effects import given, outside, writers
from trainflash.knobs.project import Project
from trainflash.knobs.reading import callees, callers
from trainflash.knobs.reading.python_source import PythonFile, descendants, dotted

NUMBERS = {"abs", "dict", "float", "format", "int", "item", "len", "list", "max", "mean", "min", "round", "str", "sum", "tuple"}
ARRAYS = {
    "array",
    "asarray",
    "cumsum",
    "convolve",
    "median",
    "percentile",
    "quantile",
    "sorted",
    "std",
    "tensor",
    "DataFrame",
    "enumerate",
    "zip",
}
COLLECTS = {"append", "dumps", "set_description", "set_postfix", "set_postfix_str", "write"}
LOOKS = {"average", "compute", "copy", "count", "get", "items", "keys", "report", "result", "summary", "tolist", "value", "values"}
ROWS = ("log", "metric", "record", "row", "stat")  # in the names of what is shown
WEIGHTS = {"state_dict", "parameters", "named_parameters", "buffers", "modules"}
KEEPS = {"torch.save", "pickle.dump", "joblib.dump", "numpy.save", "numpy.savez", "numpy.savez_compressed"}
DEEPEST = 4  # own: a value that goes through more names is taken as read by the training


@dataclass(frozen=True)
class Shown:
    """`mine` says what belongs to what is done less often; `updates` whether a call trains.

    `strict`: what is saved in the form of weights or next to them counts as read, and so does a method that nobody knows.
    """

    project: Project
    mine: Callable[[PythonFile, cst.CSTNode], bool]
    updates: Callable[[PythonFile, cst.Call], bool]
    strict: bool

    def only(self, file: PythonFile, node: cst.BaseExpression, depth: int = 0) -> bool:
        """Whether what is read at `node` is only shown or saved."""
        below: cst.CSTNode = node
        for up in file.ancestors(node):
            if isinstance(up, cst.FormattedStringExpression):
                return True
            if isinstance(up, cst.Call) and below is up.func:
                if self.updates(file, up) or not self._looks(file, up):
                    return False  # the gradient of what was read, or more than a look
            elif isinstance(up, cst.Call):
                name = callees.called_name(up)
                if name in writers.REPORTS | COLLECTS or name.startswith(writers.SHOWS):
                    return not self.strict or not self._keeps(file, up, below)
                if name not in NUMBERS | (ARRAYS if self.strict else set()):
                    return False
            if isinstance(up, (cst.Assign, cst.AugAssign)):
                return depth < DEEPEST and self._passed_on(file, up, depth)
            if isinstance(up, cst.Return) and self.strict:
                return depth < DEEPEST and self._returned(file, up, depth)
            if isinstance(up, cst.For) and self.strict and up.iter is below:
                return depth < DEEPEST and self._named(file, up, given.unpacked(up.target), depth)
            if isinstance(up, (cst.BaseSmallStatement, cst.BaseCompoundStatement)):
                return isinstance(up, cst.Expr)
            below = up
        return False

    def _looks(self, file: PythonFile, call: cst.Call) -> bool:
        """Whether a method of what was read only looks at it, collects or shows."""
        name = callees.method_name(call)
        if not self.strict:
            return True
        known = NUMBERS | ARRAYS | COLLECTS | LOOKS | writers.REPORTS | outside.KEPT
        return name in known or name.startswith(writers.SHOWS) or name in WEIGHTS  # weights: whoever takes them is asked

    def _keeps(self, file: PythonFile, call: cst.Call, arg: cst.CSTNode) -> bool:
        """Whether a call saves weights, or something beside them or in their form: another program may train on it."""
        full, name = file.full_name(call.func) or "", callees.called_name(call)
        if name.startswith(("save", "dump")) and any(each.attr.value in WEIGHTS for each in descendants(call, cst.Attribute)):  # type: ignore[attr-defined]
            return True
        if full in KEEPS or name in ("save", "save_file", "save_checkpoint", "save_pretrained"):
            values = [each for each in descendants(arg, (cst.Name, cst.Attribute)) if dotted(each) is not None]
            return not values or not self._numbers(file, values[0])  # type: ignore[arg-type]
        return False

    def _numbers(self, file: PythonFile, node: cst.BaseExpression) -> bool:
        """Whether a list holds numbers alone, by what is appended to it."""
        name = dotted(node)
        added = [call for call in file.calls if callees.method_name(call) == "append" and dotted(call.func.value) == name]  # type: ignore[attr-defined]
        return bool(added) and all(_number(arg.value) for call in added for arg in call.args)

    def _passed_on(self, file: PythonFile, assign: cst.Assign | cst.AugAssign, depth: int) -> bool:
        targets = [each.target for each in assign.targets] if isinstance(assign, cst.Assign) else [assign.target]
        if all(_of_row(target) for target in targets):
            return True
        if not all(isinstance(target, cst.Name) for target in targets):
            return False
        return self._named(file, assign, {target.value for target in targets}, depth)  # type: ignore[attr-defined]

    def _named(self, file: PythonFile, node: cst.CSTNode, names: set[str], depth: int) -> bool:
        around = file.function_around(node) or file.module
        reads = [each for each in descendants(around, cst.Name) if each.value in names and not given.stored(file, each)]  # type: ignore[attr-defined]
        return all(self.mine(file, each) or self.only(file, each, depth + 1) for each in reads)  # type: ignore[arg-type]

    def _returned(self, file: PythonFile, back: cst.Return, depth: int) -> bool:
        """Whether all who call the function only show what it gives."""
        function = file.function_around(back)
        sites = callers.results(self.project, file, function) if function is not None else []
        return bool(sites) and all(self.only(where, site, depth + 1) for where, site in sites)


def _number(value: cst.BaseExpression) -> bool:
    if isinstance(value, cst.Tuple):
        return all(_number(each.value) for each in value.elements)
    return isinstance(value, (cst.Integer, cst.Float)) or (
        isinstance(value, cst.Call) and callees.called_name(value) in NUMBERS - {"dict", "list"}
    )


def _of_row(target: cst.BaseExpression) -> bool:
    """Whether `target` is an entry of what is logged: `logs["loss"]`, `row[name]`."""
    return isinstance(target, cst.Subscript) and isinstance(target.value, cst.Name) and any(word in target.value.value for word in ROWS)
