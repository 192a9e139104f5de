"""A list that is asked again and again whether it holds something: a set, where the source shows every use of the list.

Where all that the program does with the list can be done with a set, the list becomes one. Where it also needs the order, a set is kept
beside it. Of lists in a list, of which one is picked and searched, the sets are made beside the list, where nothing changes it.
"""

from __future__ import annotations

import re

import libcst as cst

from trainflash.errors import UsageError
from trainflash.knobs.edits.lists.found_by_value import known_by_value
from trainflash.knobs.edits.which_loop import near
from trainflash.knobs.effects import changes
from trainflash.knobs.kinds import SearchedList
from trainflash.knobs.project import Project
from trainflash.knobs.reading.expressions import UNKNOWN, given_to, literal, refuse, short
from trainflash.knobs.reading.formats import Formats
from trainflash.knobs.reading.list_uses import CHANGED_BY, ListUse, line_of, list_uses, value_of
from trainflash.knobs.reading.python_source import PythonFile, clauses, descendants, dotted, sole
from trainflash.knobs.scene import Scene, Target
from trainflash.knobs.splices import Splice

LISTS = ("list", "sorted")  # calls that give a list
LISTING = ("tolist", "split", "splitlines", "readlines")  # methods that do
UNHASHABLE = (cst.List, cst.Dict, cst.Set, cst.ListComp, cst.DictComp, cst.SetComp)
TABLES = ("csv.DictReader", "csv.reader")  # give rows that no set can hold


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
    uses = list(list_uses(scene.project, file, searched))
    made = [use for use in uses if use.does == "made"]
    unknown = next((use for use in uses if use.does == "unknown"), None)
    if unknown is not None:
        raise refuse(f"{unknown.file.location(unknown.node)}: whether `{line_of(unknown)}` needs `{name}` to be a list is not known")
    if not made:
        raise refuse(f"{file.location(searched)}: where `{name}` is made is not known")
    picked = any(use.does == "picked" for use in uses)
    for use in made:
        _made_of_plain(scene, use, name, picked)
    for use in uses:
        _compared(scene, use)
    if picked and any(use.does == "added" for use in uses):
        raise refuse(f"{file.location(searched)}: `{name}` gets other lists later")
    if picked:
        for use in uses:
            at = changes.result_changed(scene.project, [(use.file, use.node)]) if use.does == "read" else None
            if at is not None:
                raise refuse(f"{use.file.location(use.node)}: a list that `{name}` holds is changed at {at}")
        known_by_value(scene.project, uses, name, picked)
        return _beside(scene.project, uses, made, name, "_sets"), f"sets beside {name}"
    known_by_value(scene.project, uses, name, picked)
    if any(use.does == "read" for use in uses) or (any(use.does == "counted" for use in uses) and not _unique(uses)):
        return _beside(scene.project, uses, made, name, "_set"), f"a set beside {name}"
    return [splice for use in uses for splice in _changed(use)], f"{name} as a set"


def _compared(scene: Scene, use: ListUse) -> None:
    """Refuses what is looked for, or added, where a set cannot hold it, or compares it in another way than a list does."""
    file, up = use.file, use.file.parent(use.node)
    up = file.parent(up) if use.does == "picked" else up  # type: ignore[arg-type]
    items: list[cst.BaseExpression] = []
    if isinstance(up, cst.ComparisonTarget):
        items = [file.parent(up).left]  # type: ignore[union-attr]
    elif use.does == "added":
        items = [arg.value for arg in file.parent(up).args]  # type: ignore[union-attr,arg-type]
        if up.attr.value == "extend":  # type: ignore[union-attr]
            return
    for item in items:
        made = [item, *(given_to(file.function_around(item) or file.module, item.value) if isinstance(item, cst.Name) else ())]
        for value in made:
            listed = isinstance(value, cst.Call) and isinstance(value.func, cst.Attribute) and value.func.attr.value in LISTING
            if isinstance(value, UNHASHABLE) or listed or Formats(scene.project).of(file, value) in ("tensor", "float32", "float64"):
                raise refuse(
                    f"{file.location(item)}: `{short(file.text(value))}` is a list or a tensor, which a set does not find by its value"
                )
        if isinstance(item, cst.Subscript):
            raise refuse(f"{file.location(item)}: `{short(file.text(item))}` may be a tensor, which a set does not find by its value")
        loops = [each for up in file.ancestors(item) for each in ([up] if isinstance(up, cst.For) else clauses(up))]
        rows = [each.iter for each in loops if dotted(each.target) == dotted(item)]
        if any(isinstance(each, cst.Call) and file.full_name(each.func) in TABLES for each in rows):
            raise refuse(f"{file.location(item)}: `{file.text(item)}` is a row, which no set can hold")
        if any(isinstance(each, (cst.Name, cst.Attribute)) and not _listed(file, each) for each in rows):
            raise refuse(f"{file.location(item)}: `{file.text(item)}` may come out of a tensor, and a set would not find it by its value")


def _listed(file: PythonFile, node: cst.BaseExpression) -> bool:
    """Whether a name is given a list or a range, whose entries are no tensors of one."""
    values = given_to(file.function_around(node) or file.module, dotted(node) or "")
    return bool(values) and all(_is_list(each) or (isinstance(each, cst.Call) and dotted(each.func) == "range") for each in values)


def _is_list(node: cst.BaseExpression) -> bool:
    if isinstance(node, cst.Call):
        return dotted(node.func) in LISTS or (isinstance(node.func, cst.Attribute) and node.func.attr.value in LISTING)
    return isinstance(node, (cst.List, cst.ListComp))


def _made_of_plain(scene: Scene, use: ListUse, name: str, picked: bool) -> None:
    """Refuses what is not known to be a list, or holds what a set cannot hold or would compare in another way.

    `picked`: the list holds lists.
    """
    here, value = use.file.location(use.node), value_of(use)
    assign = sole(use.file.statement(use.node))
    if value is None or (isinstance(assign, cst.Assign) and len(assign.targets) != 1):
        raise refuse(f"{here}: `{line_of(use)}` does not make `{name}` alone")
    parts: list[cst.BaseExpression] = []
    if isinstance(value, cst.List):
        parts = [each.value for each in value.elements]
    elif isinstance(value, cst.ListComp):
        parts = [value.elt]
    elif picked or not _is_list(value):
        raise refuse(f"{here}: whether `{short(use.file.text(value))}` is a list is not known")
    if picked and not (parts and all(_is_list(part) for part in parts)):
        raise refuse(f"{here}: whether `{short(use.file.text(value))}` holds lists is not known")
    rows = value.func.attr.value == "tolist" if isinstance(value, cst.Call) and isinstance(value.func, cst.Attribute) else False
    if rows and not picked:
        raise refuse(f"{here}: `{short(use.file.text(value))}` may hold lists")
    for part in () if picked else parts:
        if isinstance(part, UNHASHABLE) or Formats(scene.project).of(use.file, part) in ("tensor", "float32", "float64"):
            raise refuse(f"{here}: `{name}` holds `{short(use.file.text(part))}`, which a set does not find by its value")


def _unique(uses: list[ListUse]) -> bool:
    """Whether the list holds nothing twice: it begins empty, and each entry is added in one place, where it is not in it yet."""
    added = [use for use in uses if use.does == "added"]
    made = [value_of(use) for use in uses if use.does == "made"]
    if len(added) != 1 or not all(isinstance(value, cst.List) and not value.elements for value in made):
        return False
    file, node = added[0].file, added[0].node
    line, call = file.statement(node), file.parent(file.parent(node))  # type: ignore[arg-type]
    block = file.parent(line) if line is not None else None
    guard = file.parent(block) if block is not None else None
    if file.parent(node).attr.value != "append" or not isinstance(guard, cst.If) or guard.body is not block:  # type: ignore[union-attr]
        return False
    item = call.args[0].value  # type: ignore[union-attr]
    stored = any(
        isinstance(file.parent(each), (cst.AssignTarget, cst.AugAssign, cst.For)) and each.value == dotted(item)
        for each in descendants(block, cst.Name)
    )  # type: ignore[attr-defined]
    return not stored and _new(file, guard.test, item, node)


def _new(file: PythonFile, test: cst.BaseExpression, item: cst.BaseExpression, container: cst.BaseExpression) -> bool:
    """Whether `test` is `item not in container`."""
    if not isinstance(test, cst.Comparison) or len(test.comparisons) != 1 or not isinstance(test.comparisons[0].operator, cst.NotIn):
        return False
    return file.text(test.left) == file.text(item) and file.text(test.comparisons[0].comparator) == file.text(container)


def _changed(use: ListUse) -> list[Splice]:
    """What makes this use one of a set."""
    file = use.file
    if use.does == "added":
        word = file.parent(use.node).attr  # type: ignore[union-attr]
        return [Splice(file.path, *file.span(word), CHANGED_BY[word.value])] if CHANGED_BY[word.value] != word.value else []
    if use.does != "made":
        return []
    value, up = value_of(use), file.parent(use.node)
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


def _beside(project: Project, uses: list[ListUse], made: list[ListUse], name: str, suffix: str) -> list[Splice]:
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


def _behind(use: ListUse, text: str) -> Splice:
    """`text` as a line of its own behind the statement of `use`."""
    line = use.file.statement(use.node)
    if line is None or sole(line) is None:
        raise refuse(f"{use.file.location(use.node)}: there is no place for a line behind `{line_of(use)}`")
    end = use.file.span(line)[1]
    end += len(re.match(rb"[^\r\n]*", use.file.raw[end:])[0])  # type: ignore[index]
    return Splice(use.file.path, end, end, f"{use.file.newline}{use.file.indent(line)}{text}")


def _grown(use: ListUse, name: str) -> str:
    """What does to the set `name` what `use` does to the list."""
    file, method = use.file, use.file.parent(use.node)
    word, call = method.attr.value, file.parent(method)  # type: ignore[union-attr,arg-type]
    given = [arg.value for arg in call.args]  # type: ignore[union-attr]
    if word == "extend" or any(dotted(each) is None and literal(each) is UNKNOWN for each in given):
        raise refuse(f"{file.location(use.node)}: `{line_of(use)}` gives what can be taken only once")
    return f"{name}.{CHANGED_BY[word]}({', '.join(file.text(each) for each in given)})"
