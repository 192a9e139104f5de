"""A list that is asked again and again whether it holds something: a set, where the source shows every use of the list.

Where all that the program does with the list can be done with a set, the list becomes one. Where it also needs the order, a set is kept
beside it. Of lists in a list, of which one is picked and searched, the sets are made beside the list, where nothing changes it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst

from trainflash.errors import UsageError
from trainflash.knobs.edits.which_loop import near
from trainflash.knobs.effects import changes
from trainflash.knobs.kinds import SearchedList
from trainflash.knobs.project import Project
from trainflash.knobs.reading.expressions import UNKNOWN, literal, refuse, short
from trainflash.knobs.reading.formats import Formats
from trainflash.knobs.reading.python_source import PythonFile, dotted, sole, string_value
from trainflash.knobs.scene import Scene, Target
from trainflash.knobs.splices import Splice

LISTS = ("list", "sorted")  # calls that give a list
LISTING = ("tolist", "split", "splitlines", "readlines")  # methods that do
UNHASHABLE = (cst.List, cst.Dict, cst.Set, cst.ListComp, cst.DictComp, cst.SetComp)
READS = ("len", "sorted", "enumerate", "list", "tuple", "set", "frozenset", "sum", "min", "max", "zip", "print", "str", "range")
READS_OF = ("torch", "numpy", "random")  # modules whose functions keep no list that they are given; `shuffle` is no part of them
CHANGED_BY = {"append": "add", "extend": "update", "clear": "clear"}  # what a list does, and the set's word for it


@dataclass(frozen=True)
class _Use:
    """One place that names the list, and what it does there."""

    file: PythonFile
    node: cst.BaseExpression
    does: str  # made, asked, picked (and asked), added, counted, read or unknown


def searched_list(edit: SearchedList, scene: Scene) -> tuple[Target, ...]:
    """The list that a comparison near the line searches. Raises `UsageError` where a set would not do."""
    file, place = scene.source("searches the list")
    reasons: list[UsageError] = []
    for where, node in near(scene.project, file, place.line, (cst.Comparison,)):
        searched = _searched(node)  # type: ignore[arg-type]
        if searched is None:
            continue
        try:
            splices, how = _as_set(scene, where, node.left, searched)  # type: ignore[attr-defined]
        except UsageError as bad:
            reasons.append(bad)
            continue
        here = where.location(node)
        shown = f"`{short(where.text(node))}` at {here}"
        return (Target(here, None, lambda value: tuple(splices), shown, how),)  # noqa: B023 - returned at once
    raise reasons[0] if reasons else refuse(f"{place}: no list is searched near this line")


def _searched(node: cst.Comparison) -> cst.Name | cst.Attribute | None:
    """The variable of `x in variable` or `x in variable[i]`."""
    if len(node.comparisons) != 1 or not isinstance(node.comparisons[0].operator, (cst.In, cst.NotIn)):
        return None
    found = node.comparisons[0].comparator
    found = found.value if isinstance(found, cst.Subscript) else found
    return found if isinstance(found, (cst.Name, cst.Attribute)) and dotted(found) is not None else None


def _as_set(scene: Scene, file: PythonFile, item: cst.BaseExpression, searched: cst.Name | cst.Attribute) -> tuple[list[Splice], str]:
    """The edit, and half a line that says what it makes."""
    name = file.text(searched)
    uses = list(_uses(scene.project, file, searched))
    made = [use for use in uses if use.does == "made"]
    unknown = next((use for use in uses if use.does == "unknown"), None)
    if unknown is not None:
        raise refuse(f"{unknown.file.location(unknown.node)}: whether `{_line(unknown)}` needs `{name}` to be a list is not known")
    if not made:
        raise refuse(f"{file.location(searched)}: where `{name}` is made is not known")
    picked = any(use.does == "picked" for use in uses)
    for use in made:
        _made_of_plain(scene, use, name, picked)
    if Formats(scene.project).of(file, item) == "tensor":
        raise refuse(f"{file.location(item)}: `{file.text(item)}` is a tensor, which a set finds only where it is the same one")
    if picked:
        for use in uses:
            at = changes.result_changed(scene.project, [(use.file, use.node)]) if use.does == "read" else None
            if at is not None:
                raise refuse(f"{use.file.location(use.node)}: a list that `{name}` holds is changed at {at}")
        return _beside(scene.project, uses, made, name, "_sets"), f"sets beside {name}"
    if any(use.does == "read" for use in uses) or (any(use.does == "counted" for use in uses) and not _unique(uses)):
        return _beside(scene.project, uses, made, name, "_set"), f"a set beside {name}"
    return [splice for use in uses for splice in _changed(use)], f"{name} as a set"


def _uses(project: Project, file: PythonFile, searched: cst.Name | cst.Attribute) -> Iterator[_Use]:
    """Every place of the program that may name the same list. Raises `UsageError` where some cannot be told."""
    if isinstance(searched, cst.Attribute):
        word = searched.attr.value
        for where, node in project.each((word,), lambda _, each: _names(each, word)):
            if not isinstance(node, cst.Attribute):
                raise refuse(f"{where.location(node)}: `{word}` may be named here, too")
            yield _Use(where, node, _does(where, node))
        return
    scope = file.scope(searched)
    bound = list(scope[searched.value]) if scope is not None else []
    if not bound or not all(hasattr(each, "references") and getattr(each, "node", None) is not None for each in bound):
        raise refuse(f"{file.location(searched)}: where `{searched.value}` is made is not known")
    if any(isinstance(each.node, cst.Param) or isinstance(file.parent(each.node), cst.Param) for each in bound):
        raise refuse(f"{file.location(searched)}: `{searched.value}` is a parameter, and may be anything that holds things")
    if bound[0].scope is file.scope(file.module):
        for where in project.parsed(searched.value):
            if where is not file and any(_names(node, searched.value) or _is(node, searched.value) for node in where.nodes):
                raise refuse(f"{file.location(searched)}: `{searched.value}` may be used in {where.path}, too")
    for each in bound:
        yield _Use(file, each.node, _does(file, each.node))
    for node in {id(access.node): access.node for each in bound for access in each.references}.values():
        yield _Use(file, node, _does(file, node))


def _names(node: cst.CSTNode, word: str) -> bool:
    """Whether `node` is an attribute of that name, a name for one, or a declaration in a class."""
    if isinstance(node, cst.Attribute):
        return node.attr.value == word
    if isinstance(node, cst.ClassDef):
        lines = [small for line in node.body.body if isinstance(line, cst.SimpleStatementLine) for small in line.body]
        targets = [each.target for line in lines if isinstance(line, cst.Assign) for each in line.targets]
        return word in [dotted(each) for each in (*targets, *(line.target for line in lines if isinstance(line, cst.AnnAssign)))]
    return isinstance(node, cst.SimpleString) and string_value(node) == word


def _is(node: cst.CSTNode, word: str) -> bool:
    return isinstance(node, cst.Name) and node.value == word


def _does(file: PythonFile, node: cst.CSTNode) -> str:
    """What the program does with the list where `node` names it."""
    up = file.parent(node)
    around = file.parent(up) if up is not None else None
    if isinstance(up, cst.AssignTarget) or (isinstance(up, cst.AnnAssign) and up.target is node):
        return "made"
    if isinstance(up, cst.ComparisonTarget):
        return "asked" if isinstance(up.operator, (cst.In, cst.NotIn)) else "unknown"
    if (isinstance(up, (cst.If, cst.While, cst.IfExp)) and up.test is node) or (
        isinstance(up, cst.UnaryOperation) and isinstance(up.operator, cst.Not)
    ):
        return "asked"
    if isinstance(up, cst.Attribute) and up.value is node:
        alone = isinstance(around, cst.Call) and around.func is up and isinstance(file.parent(around), cst.Expr)
        return "added" if alone and up.attr.value in CHANGED_BY else "read" if up.attr.value in ("index", "count", "copy") else "unknown"
    if isinstance(up, (cst.For, cst.CompFor)) and up.iter is node:
        return "read"
    if isinstance(up, cst.Subscript) and up.value is node:
        if isinstance(around, cst.ComparisonTarget) and isinstance(around.operator, (cst.In, cst.NotIn)):
            return "picked"
        changes = isinstance(around, cst.Attribute) and around.value is up and around.attr.value not in ("index", "count", "copy")
        return "unknown" if changes or isinstance(around, (cst.AssignTarget, cst.AugAssign, cst.Del)) else "read"
    call = around if isinstance(up, cst.Arg) else None
    if isinstance(call, cst.Call) and not up.star:  # type: ignore[union-attr]
        full = file.full_name(call.func) or ""
        if full == "len":
            return "counted"
        keeps = full.split(".")[0] in READS_OF and full.split(".")[-1] != "shuffle"
        joins = isinstance(call.func, cst.Attribute) and call.func.attr.value == "join"
        return "read" if full in READS or keeps or joins else "unknown"
    return "unknown"


def _line(use: _Use) -> str:
    statement = use.file.statement(use.node)
    return short(use.file.text(statement or use.file.parent(use.node) or use.node))


def _value(use: _Use) -> cst.BaseExpression | None:
    up = use.file.parent(use.node)
    return use.file.parent(up).value if isinstance(up, cst.AssignTarget) else up.value  # type: ignore[union-attr]


def _is_list(node: cst.BaseExpression) -> bool:
    if isinstance(node, cst.Call):
        return dotted(node.func) in LISTS or (isinstance(node.func, cst.Attribute) and node.func.attr.value in LISTING)
    return isinstance(node, (cst.List, cst.ListComp))


def _made_of_plain(scene: Scene, use: _Use, name: str, picked: bool) -> None:
    """Refuses what is not known to be a list, or holds what a set cannot hold or would compare in another way.

    `picked`: the list holds lists.
    """
    here, value = use.file.location(use.node), _value(use)
    assign = sole(use.file.statement(use.node))
    if value is None or (isinstance(assign, cst.Assign) and len(assign.targets) != 1):
        raise refuse(f"{here}: `{_line(use)}` does not make `{name}` alone")
    parts: list[cst.BaseExpression] = []
    if isinstance(value, cst.List):
        parts = [each.value for each in value.elements]
    elif isinstance(value, cst.ListComp):
        parts = [value.elt]
    elif picked or not _is_list(value):
        raise refuse(f"{here}: whether `{short(use.file.text(value))}` is a list is not known")
    if picked and not (parts and all(_is_list(part) for part in parts)):
        raise refuse(f"{here}: whether `{short(use.file.text(value))}` holds lists is not known")
    for part in () if picked else parts:
        if isinstance(part, UNHASHABLE) or Formats(scene.project).of(use.file, part) in ("tensor", "float32", "float64"):
            raise refuse(f"{here}: `{name}` holds `{short(use.file.text(part))}`, which a set does not find by its value")


def _unique(uses: list[_Use]) -> bool:
    """Whether the list holds nothing twice: it begins empty, and each entry is added where it is not in it yet."""
    for use in uses:
        if use.does == "made":
            value = _value(use)
            if not isinstance(value, cst.List) or value.elements:
                return False
        if use.does == "added":
            call = use.file.parent(use.file.parent(use.node))  # type: ignore[arg-type]
            asked = use.file.parent(use.node).attr.value == "append" and any(  # type: ignore[union-attr]
                isinstance(up, cst.If) and _new(use.file, up.test, call.args[0].value, use.node)  # type: ignore[union-attr]
                for up in _branches(use.file, use.node)
            )
            if not asked:
                return False
    return True


def _branches(file: PythonFile, node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """What stands around `node` in its own function, as long as it is the taken side of a condition."""
    below: cst.CSTNode = node
    for up in file.ancestors(node):
        if isinstance(up, (cst.FunctionDef, cst.For, cst.While)):
            return
        if not isinstance(up, cst.If) or up.body is below:
            yield up
        below = up


def _new(file: PythonFile, test: cst.BaseExpression, item: cst.BaseExpression, container: cst.BaseExpression) -> bool:
    """Whether `test` is `item not in container`."""
    if not isinstance(test, cst.Comparison) or len(test.comparisons) != 1 or not isinstance(test.comparisons[0].operator, cst.NotIn):
        return False
    return file.text(test.left) == file.text(item) and file.text(test.comparisons[0].comparator) == file.text(container)


def _changed(use: _Use) -> list[Splice]:
    """What makes this use one of a set."""
    file = use.file
    if use.does == "added":
        word = file.parent(use.node).attr  # type: ignore[union-attr]
        return [Splice(file.path, *file.span(word), CHANGED_BY[word.value])] if CHANGED_BY[word.value] != word.value else []
    if use.does != "made":
        return []
    value, up = _value(use), file.parent(use.node)
    splices = []
    if isinstance(up, cst.AnnAssign):
        said = file.text(up.annotation.annotation)
        if not said.startswith("list"):
            raise refuse(f"{file.location(use.node)}: `{short(said)}` says what kind of list it is")
        start, _ = file.span(up.annotation.annotation)
        splices.append(Splice(file.path, start, start + len("list"), "set"))
    start, end = file.outer_span(value)  # type: ignore[arg-type]
    if isinstance(value, (cst.List, cst.ListComp)) and (isinstance(value, cst.ListComp) or value.elements):
        a, b = file.span(value)
        return [*splices, Splice(file.path, a, a + 1, "{"), Splice(file.path, b - 1, b, "}")]
    if isinstance(value, cst.List) or (isinstance(value, cst.Call) and dotted(value.func) == "list"):
        what = value.func if isinstance(value, cst.Call) else value
        return [*splices, Splice(file.path, *file.span(what), "set" if isinstance(value, cst.Call) else "set()")]
    return [*splices, Splice(file.path, start, start, "set("), Splice(file.path, end, end, ")")]


def _beside(project: Project, uses: list[_Use], made: list[_Use], name: str, suffix: str) -> list[Splice]:
    """A set that is made behind the list, grows with it, and is asked instead of it."""
    word = f"{name}{suffix}".split(".")[-1]
    if any(True for _ in project.parsed(word)):
        raise refuse(f"{made[0].file.location(made[0].node)}: the name {word} means something already")
    splices: list[Splice] = []
    for use in uses:
        file, own = use.file, use.file.text(use.node)
        if use.does == "made":
            sets = f"[frozenset(each) for each in {own}]" if suffix == "_sets" else f"set({own})"
            splices.append(_behind(use, f"{own}{suffix} = {sets}"))
        elif use.does == "added":
            splices.append(_behind(use, _grown(use, f"{own}{suffix}")))
        elif use.does == "picked" or (use.does == "asked" and isinstance(file.parent(use.node), cst.ComparisonTarget)):
            end = file.span(use.node)[1]
            splices.append(Splice(file.path, end, end, suffix))
    return splices


def _behind(use: _Use, text: str) -> Splice:
    """`text` as a line of its own behind the statement of `use`."""
    line = use.file.statement(use.node)
    if line is None or sole(line) is None:
        raise refuse(f"{use.file.location(use.node)}: there is no place for a line behind `{_line(use)}`")
    end = use.file.span(line)[1]
    return Splice(use.file.path, end, end, f"{use.file.newline}{use.file.indent(line)}{text}")


def _grown(use: _Use, name: str) -> str:
    """What does to the set `name` what `use` does to the list."""
    file, method = use.file, use.file.parent(use.node)
    word, call = method.attr.value, file.parent(method)  # type: ignore[union-attr,arg-type]
    given = [arg.value for arg in call.args]  # type: ignore[union-attr]
    if word == "extend" or any(dotted(each) is None and literal(each) is UNKNOWN for each in given):
        raise refuse(f"{file.location(use.node)}: `{_line(use)}` gives what can be taken only once")
    return f"{name}.{CHANGED_BY[word]}({', '.join(file.text(each) for each in given)})"
