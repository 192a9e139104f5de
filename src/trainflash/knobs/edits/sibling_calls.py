"""A function's sibling in the same module, called with the same arguments: `np.savez` in place of `np.savez_compressed`."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from trainflash.knobs.edits import imports
from trainflash.knobs.edits.which_call import near, the_call, wanted_location
from trainflash.knobs.kinds import SiblingCall
from trainflash.knobs.project import Project
from trainflash.knobs.reading.expressions import argument_node, refuse, short
from trainflash.knobs.reading.file_paths import needs_path
from trainflash.knobs.reading.python_source import PythonFile, descendants, dotted, keyword, positional, string_value
from trainflash.knobs.scene import Scene, Target
from trainflash.knobs.splices import Splice

OPENS = ("open", "io.open")  # handles of these are plain files


def sibling_call(edit: SiblingCall, scene: Scene) -> tuple[Target, ...]:
    """The call at the finding's line, or else the only one of its function, or of the program. Raises `UsageError` with the reason."""
    file, call = _place(edit, scene)
    here = file.location(call)
    if file.full_name(call.func) not in edit.calls:
        raise refuse(f"{here}: `{file.text(call.func)}` is another function that has the same name")
    for word in edit.unless:
        for other in scene.project.parsed(word):
            raise refuse(f"{other.path}: `{word}` may look at what is written")
    module, _, former = edit.calls[0].rpartition(".")
    for where, node in _references(scene.project, f"{module}.{edit.to}"):
        raise refuse(f"{where.location(node)}: the program calls {edit.to} here, and may choose between it and {former} itself")
    for up in file.ancestors(call):
        if isinstance(up, (cst.If, cst.IfExp)) and any(word in file.text(up.test).lower() for word in edit.asked):
            raise refuse(f"{file.location(up)}: the program asks `{short(file.text(up.test))}` before it calls {former}")
    if edit.path is not None:
        _of_a_plain_file(edit.path, scene.project, file, call)
    return (Target(here, None, lambda value: _written(edit, file, call, module), f"the call at {here}", edit.to),)


def _place(edit: SiblingCall, scene: Scene) -> tuple[PythonFile, cst.Call]:
    place = wanted_location(edit, scene)
    if place is None or scene.project.python(place.file).function_at(place) is None:
        return the_call(edit, scene)

    def find(file: PythonFile) -> list[tuple[cst.Call, tuple[PythonFile, cst.Call]]]:
        return [(call, (file, call)) for call in file.calls if file.full_name(call.func) in edit.calls]

    return near(scene.project, scene.project.python(place.file), place, find, f"call of {edit.calls[0].rpartition('.')[2]}")


def _references(project: Project, name: str) -> Iterator[tuple[PythonFile, cst.CSTNode]]:
    """Where the program names the sibling already."""
    for file in project.parsed(name.rpartition(".")[2]):
        for node in file.nodes:
            named = isinstance(node, (cst.Name, cst.Attribute)) and not isinstance(file.parent(node), (cst.Attribute, cst.ImportAlias))
            if named and file.full_name(node) == name:  # type: ignore[arg-type]
                yield file, node


def _of_a_plain_file(name: str, project: Project, file: PythonFile, call: cst.Call) -> None:
    """Raises `UsageError` where the argument may be a buffer, whose size counts, or a file that is compressed anyhow."""
    given = positional(call, 0) or keyword(call, name)
    if given is None:
        raise refuse(f"{file.location(call)}: which file `{file.text(call.func)}` writes is not written out")
    handle = _opened(file, given.value)
    needs_path(project, file, handle if handle is not None else given.value)


def _opened(file: PythonFile, node: cst.BaseExpression) -> cst.BaseExpression | None:
    """What is opened by the `with open(…)` around, where that gives `node` its name, which is used for nothing else in it."""
    for up in file.ancestors(node):
        if isinstance(up, cst.FunctionDef):
            return None
        for item in up.items if isinstance(up, cst.With) else ():
            bound = item.asname is not None and dotted(item.asname.name) == dotted(node) is not None
            if bound and isinstance(item.item, cst.Call) and item.item.args:
                mode = argument_node(file, item.item, "mode", 1)
                if mode is None or string_value(mode) != "wb":
                    return None
                alone = sum(dotted(each) == dotted(node) for each in descendants(up.body, cst.Name)) == 1
                return item.item.args[0].value if alone and file.full_name(item.item.func) in OPENS else None
    return None


def _written(edit: SiblingCall, file: PythonFile, call: cst.Call, module: str) -> tuple[Splice, ...]:
    if isinstance(call.func, cst.Attribute):
        return (Splice(file.path, *file.span(call.func.attr), edit.to),)
    spelled, needed = imports.reach(file, module, edit.to)
    return (*needed, Splice(file.path, *file.span(call.func), spelled))
