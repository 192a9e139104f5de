"""A loop whose turns call a function of the same file: the file as it would be with the function's statements in the loop itself."""

from __future__ import annotations

import textwrap

import libcst as cst

from trainflash.knobs.edits.statements import top
from trainflash.knobs.project import Project
from trainflash.knobs.reading import callees
from trainflash.knobs.reading.expressions import is_name, refuse
from trainflash.knobs.reading.python_source import (
    ASSIGNS,
    PythonFile,
    decorator_names,
    descendants,
    dotted,
    is_docstring,
    parse,
    placed_parameters,
    sole,
    targets_of,
)
from trainflash.knobs.splices import Splice, edited

_LITERALS = (cst.Integer, cst.Float, cst.SimpleString, cst.Name)


def inlined(project: Project, file: PythonFile, loop: cst.For) -> tuple[PythonFile, cst.For]:
    """The file with the one call of its own function written out, and its loop. Raises `UsageError` where that would change a meaning."""
    called = [(call, function) for call in descendants(loop.body, cst.Call) if (function := _function(project, file, call)) is not None]  # type: ignore[arg-type]
    if len(called) != 1:
        raise refuse(f"{file.location(loop)}: no single function of this file does the work of a turn")
    call, function = called[0]
    statement = file.statement(call)
    small = sole(statement)
    if not isinstance(small, cst.Expr) or small.value is not call or not isinstance(function.body, cst.IndentedBlock):
        raise refuse(f"{file.location(call)}: what `{file.text(call)}` returns is used")  # type: ignore[arg-type]
    bound = _bound(file, call, function)  # type: ignore[arg-type]
    _names_are_free(file, loop, call, function, bound)  # type: ignore[arg-type]
    assert statement is not None
    indent = file.indent(statement)
    rows = [f"{name} = {text}" for name, text in bound.items() if name != text]
    body = textwrap.dedent(_body(file, function)).rstrip().replace("\n", f"{file.newline}{indent}")
    text = f"{file.newline}{indent}".join([*rows, body])
    after = parse(file.path, edited(file.raw, [Splice(file.path, *file.span(small), text)]))
    start = file.span(loop)[0]
    return after, next(node for node in after.nodes if isinstance(node, cst.For) and after.span(node)[0] == start)


def _function(project: Project, file: PythonFile, call: cst.Call) -> cst.FunctionDef | None:
    """The plain function, or method of the same object, of this file that `call` means."""
    found = list(callees.meant(project, file, call))
    if len(found) != 1 or found[0][0] is not file:
        return None
    function = found[0][1]
    method = file.class_of(function) is not None
    mine = isinstance(call.func, cst.Attribute) and dotted(call.func.value) == "self" and function.params.params[:1] != ()
    plain = set(decorator_names(file, function)) <= {"staticmethod"} and function.asynchronous is None
    return function if plain and (mine or not method) else None


def _bound(file: PythonFile, call: cst.Call, function: cst.FunctionDef) -> dict[str, str]:
    """Source of what each parameter is given; of several that a star spreads out, under `a, b`."""
    here = file.location(call)
    names = placed_parameters(function)
    if file.class_of(function) is not None and "staticmethod" not in decorator_names(file, function):
        names = names[1:]
    others = [*names, *function.params.kwonly_params]
    spreads = [arg for arg in call.args if arg.star]
    takes_any = isinstance(function.params.star_arg, cst.Param) or function.params.star_kwarg is not None
    if len(spreads) > 1 or any(arg.star == "**" for arg in spreads) or takes_any:
        raise refuse(f"{here}: the arguments of `{file.text(call)}` are not all written out")
    found: dict[str, str] = {}
    left = [param.name.value for param in names]
    plain = [arg for arg in call.args if arg.keyword is None]
    for arg in plain:
        taken = left[: len(left) - len(plain) + 1 if arg.star else 1]  # with a star, no parameter keeps its default
        found[", ".join(taken)] = file.outer_text(arg.value)
        left, plain = left[len(taken) :], plain[1:]
    found |= {arg.keyword.value: file.outer_text(arg.value) for arg in call.args if arg.keyword is not None}
    told = {name for names_of_one in found for name in names_of_one.split(", ")}
    for param in others:
        if param.name.value not in told:
            if not isinstance(param.default, _LITERALS):
                raise refuse(f"{here}: what `{param.name.value}` is given is not written out")
            found[param.name.value] = file.text(param.default)
            told.add(param.name.value)
    if told != {param.name.value for param in others}:
        raise refuse(f"{here}: `{file.text(call)}` is given other arguments than its function takes")
    return found


def _names_are_free(file: PythonFile, loop: cst.For, call: cst.Call, function: cst.FunctionDef, bound: dict[str, str]) -> None:
    """Raises `UsageError` where a name of `function` means something else around the loop, or its body does not run to its end."""
    if any(True for _ in descendants(function.body, (cst.Return, cst.Yield, cst.Await, cst.FunctionDef, cst.Lambda, cst.Global))):
        raise refuse(f"{file.location(function)}: {function.name.value} does not simply run to its end")
    around = file.function_around(loop) or file.module
    parts = (around.params, around.body) if isinstance(around, cst.FunctionDef) else (around,)
    outside = {node.value for part in parts for node in descendants(part, cst.Name) if is_name(file, node)}  # type: ignore[attr-defined,arg-type]
    stored = {
        node.value
        for assign in descendants(function.body, (*ASSIGNS, cst.For, cst.AsName, cst.NamedExpr))
        for target in targets_of(assign)
        for node in descendants(target, cst.Name)
        if is_name(file, node) and not _inside_place(file, node)  # type: ignore[arg-type]
    }
    for name in sorted(stored | {name for names in bound for name in names.split(", ")}):
        if name in outside and bound.get(name) != name:
            raise refuse(f"{file.location(call)}: the name {name} of {function.name.value} means something else in the loop")
        if name in stored and bound.get(name) == name and len([text for text in bound.values() if text == name]) != 1:
            raise refuse(f"{file.location(call)}: {function.name.value} sets {name} again")


def _inside_place(file: PythonFile, node: cst.CSTNode) -> bool:
    """Whether a name is only where something is stored: `state` of `state["m"] = …`."""
    return isinstance(file.parent(node), (cst.Attribute, cst.Subscript, cst.Index))


def _body(file: PythonFile, function: cst.FunctionDef) -> str:
    """The statements of `function`, its docstring left out, with their own indentation."""
    lines = list(function.body.body)
    if is_docstring(lines[0]):
        lines = lines[1:]
    if not lines:
        raise refuse(f"{file.location(function)}: {function.name.value} does nothing")
    start = file.raw.rfind(b"\n", 0, top(file, lines[0])) + 1
    return file.raw[start : file.span(lines[-1])[1]].decode("utf-8").replace("\r\n", "\n")
