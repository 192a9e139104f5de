"""One call for each key in turn: the one call for all of them, where a class of the program has both and the source shows that one asks
the other, or that both ask the same."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from trainflash.errors import UsageError
from trainflash.knobs.edits.lists.answers import one_for_each
from trainflash.knobs.edits.statements import kept_comments
from trainflash.knobs.edits.which_loop import near
from trainflash.knobs.kinds import JoinedCalls
from trainflash.knobs.reading import callees
from trainflash.knobs.reading.expressions import given_to, literal, refuse, short
from trainflash.knobs.reading.python_source import (
    PythonFile,
    clauses,
    descendants,
    dotted,
    methods_of,
    placed_parameters,
    sole,
    string_value,
)
from trainflash.knobs.scene import Scene, Target
from trainflash.knobs.splices import Splice

LOOPS = (cst.ListComp, cst.GeneratorExp)
LISTS = ("list", "tuple")


def joined_calls(edit: JoinedCalls, scene: Scene) -> tuple[Target, ...]:
    """The comprehension near the line that asks for one key after another. Raises `UsageError` where no method asks for all."""
    file, place = scene.source("asks")
    reasons: list[UsageError] = []
    for where, node in near(scene.project, file, place.line, LOOPS):
        call = _asks_for_each(where, node)
        if call is None:
            continue
        try:
            many = _for_all(scene, where, call)
        except UsageError as bad:
            reasons.append(bad)
            continue
        at, keys = where.location(node), where.text(clauses(node)[0].iter)
        given = keys if _is_list(where, clauses(node)[0].iter) else f"list({keys})"
        text = f"{where.text(call.func.value)}.{many}({given})"  # type: ignore[attr-defined]
        splices = kept_comments(where, [Splice(where.path, *where.span(node), f"list({text})" if isinstance(node, cst.ListComp) else text)])
        what = f"`{short(where.text(call))}` for each of `{short(keys)}` at {at}"
        return (Target(at, None, lambda value: tuple(splices), what, many),)  # noqa: B023 - returned at once
    raise reasons[0] if reasons else refuse(f"{place}: no method is called for one key after another near this line")


def _is_list(file: PythonFile, keys: cst.BaseExpression) -> bool:
    """Whether the keys can be gone through more than once: a list, or a part of something."""
    if isinstance(keys, cst.Name):
        given = given_to(file.function_around(keys) or file.module, keys.value)
        return bool(given) and all(not isinstance(each, cst.Name) and _is_list(file, each) for each in given)
    name = callees.called_name(keys) if isinstance(keys, cst.Call) else ""
    return isinstance(keys, (cst.List, cst.Tuple, cst.ListComp, cst.Subscript)) or name in (*LISTS, "sorted", "tolist", "range")


def _asks_for_each(file: PythonFile, node: cst.CSTNode) -> cst.Call | None:
    """The call in `[x.one(key) for key in keys]`."""
    found, call = clauses(node), node.elt  # type: ignore[attr-defined]
    if len(found) != 1 or found[0].ifs or found[0].asynchronous is not None or not isinstance(call, cst.Call):
        return None
    alone = len(call.args) == 1 and call.args[0].keyword is None and not call.args[0].star
    key = dotted(call.args[0].value) if alone else None
    if not isinstance(call.func, cst.Attribute) or not isinstance(found[0].target, cst.Name) or found[0].target.value != key:
        return None
    if dotted(call.func) is None or (isinstance(node, cst.GeneratorExp) and not isinstance(file.parent(node), cst.Arg)):
        return None
    return None if any(each.value == key for each in descendants(call.func, cst.Name)) else call  # type: ignore[attr-defined]


def _for_all(scene: Scene, file: PythonFile, call: cst.Call) -> str:
    """The method that asks for all keys. Raises `UsageError` where the source shows none."""
    meant = list(callees.meant(scene.project, file, call))
    if len(meant) != 1 or meant[0][0].class_of(meant[0][1]) is None:
        raise refuse(f"{file.location(call)}: which method `{short(file.text(call))}` calls is not known")
    where, one = meant[0]
    owner = where.class_of(one)
    through = _first_of(where, one)
    if owner is None or through is None or not _public(one):
        raise refuse(f"{where.location(one)}: {one.name.value} does not ask for a list of its one key")
    methods = [each for each in methods_of(owner) if each is not one]
    asked = through.removeprefix("self.")
    found = [each.name.value for each in methods if _public(each) and each.name.value == asked]
    found = found or [each.name.value for each in methods if _public(each) and _of_all(where, each) == through]
    if len(found) == 1 and len(scene.project.functions(found[0])) > 1:
        raise refuse(f"{where.location(one)}: another class has a method {found[0]}, too")
    for each in methods:
        if each.name.value in (asked, *found):
            one_for_each(scene.project, where, each)
    if len(found) != 1:
        which = "no" if not found else "more than one"
        raise refuse(f"{where.location(one)}: {which} method of {owner.name.value} asks `{through}` for all keys")
    return found[0]


def _public(function: cst.FunctionDef) -> bool:
    return not function.name.value.startswith("_") and not function.decorators and function.asynchronous is None


def _returned(function: cst.FunctionDef) -> tuple[str, cst.BaseExpression] | None:
    """The only parameter beside `self`, and what the function returns, where it does nothing else."""
    params = function.params
    plain = placed_parameters(function)
    lines = [line for line in function.body.body if not _documents(line)] if isinstance(function.body, cst.IndentedBlock) else []
    only = sole(lines[0]) if len(lines) == 1 else None
    if len(plain) != 2 or params.kwonly_params or params.star_kwarg is not None or not isinstance(only, cst.Return) or only.value is None:
        return None
    return plain[1].name.value, only.value


def _documents(line: cst.CSTNode) -> bool:
    only = sole(line)
    return isinstance(only, cst.Expr) and string_value(only.value) is not None


def _first_of(file: PythonFile, function: cst.FunctionDef) -> str | None:
    """`f` of `return f([key])[0]`."""
    name, value = _returned(function) or ("", None)
    if not isinstance(value, cst.Subscript) or len(value.slice) != 1 or not isinstance(value.slice[0].slice, cst.Index):
        return None
    call = value.value
    if (
        literal(value.slice[0].slice.value) != 0
        or not isinstance(call, cst.Call)
        or len(call.args) != 1
        or call.args[0].keyword is not None
    ):
        return None
    listed = call.args[0].value
    keys = [each.value for each in listed.elements] if isinstance(listed, (cst.List, cst.Tuple)) else []
    return file.text(call.func) if len(keys) == 1 and dotted(keys[0]) == name else None


def _of_all(file: PythonFile, function: cst.FunctionDef) -> str | None:
    """`f` of `return f(keys)`, `return f(list(keys))` and the like."""
    name, value = _returned(function) or ("", None)
    if not isinstance(value, cst.Call) or len(value.args) != 1 or value.args[0].keyword is not None or value.args[0].star:
        return None
    return file.text(value.func) if any(dotted(each) == name for each in _unwrapped(value.args[0].value)) else None


def _unwrapped(node: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
    """`keys` itself, of `list(keys)`, `tuple(keys)` or `[*keys]`."""
    if isinstance(node, cst.Call) and dotted(node.func) in LISTS and len(node.args) == 1:
        yield node.args[0].value
    elif isinstance(node, (cst.List, cst.Tuple)) and len(node.elements) == 1 and isinstance(node.elements[0], cst.StarredElement):
        yield node.elements[0].value
    else:
        yield node
