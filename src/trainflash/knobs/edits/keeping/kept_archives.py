"""NumPy's archive of several arrays reads an array from the file each time that it is asked for it: all of them read once.

`self.archive = np.load("train.npz")` becomes `self.archive = dict(np.load("train.npz"))`, where calls ask it for an array by name again and
again. An archive gives a new array each time; so a part that somebody may change is copied where it is taken.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from trainflash.knobs.edits.keeping.kept_calls import set_once
from trainflash.knobs.kinds import KeptArchive
from trainflash.knobs.project import Project
from trainflash.knobs.reading.expressions import given_to, refuse, short, value_of
from trainflash.knobs.reading.python_source import PythonFile, descendants, dotted, string_value
from trainflash.knobs.reading.whole_files import ARCHIVE, values_given
from trainflash.knobs.scene import Scene, Target
from trainflash.knobs.splices import Splice

LOOKS = ("len", "list", "sorted", "set", "tuple", "print")  # at the names of its arrays
NEW = ("int", "float", "bool", "str", "torch.tensor", "numpy.array", "torch.FloatTensor", "torch.LongTensor")  # never what they are given
ANEW = ("astype", "copy", "tolist", "item", "mean", "sum", "std", "max", "min", "argmax")  # methods that never give what they are called on
SUFFIX = ".npz"


def kept_archive(edit: KeptArchive, scene: Scene) -> tuple[Target, ...]:
    """The archive that the function at the finding's line asks. Raises `UsageError` where it is none, or asked for more than arrays."""
    file, place = scene.source("reads")
    function = file.function_at(place)
    found = list(_asked(file, function)) if function is not None else []
    if len({id(loaded) for loaded, _ in found}) != 1:
        raise refuse(f"{place}: no archive of arrays is asked for one again near this line")
    loaded, name = found[0]
    here = file.location(loaded)
    if name.startswith("self.") and not set_once(scene.project, name.split(".")[1], whole=False):
        raise refuse(f"{here}: {name} may be another archive later")
    start, end = file.span(loaded)
    splices = [Splice(file.path, start, start, "dict("), Splice(file.path, end, end, ")")]
    uses = list(_uses(scene.project, file, name))
    keys = [_key(taken) for _, taken in uses]
    for (other, taken), key in zip(uses, keys, strict=True):
        splices += _copied(other, taken, alone=keys.count(key) == 1 and None not in keys and _made_once(other, taken, _owner(other, taken)))
    return (Target(here, None, lambda value: tuple(splices), f"the arrays of `{short(file.text(loaded))}` at {here}", "read once"),)


def _owner(file: PythonFile, node: cst.CSTNode) -> cst.CSTNode | None:
    return file.module if file.function_around(node) is None else file.class_around(node)


def _asked(file: PythonFile, function: cst.FunctionDef) -> Iterator[tuple[cst.Call, str]]:
    """The call that loads each archive that the function asks by a name, and what the archive is called."""
    for node in descendants(function.body, cst.Subscript):
        name = dotted(node.value)  # type: ignore[attr-defined]
        if _key(node) is None or name is None or name.removeprefix("self.").count("."):  # type: ignore[arg-type]
            continue
        owner = file.class_of(function) if name.startswith("self.") else file.module
        values = given_to(owner, name) if owner is not None else []
        if len(values) == 1 and isinstance(values[0], cst.Call) and _is_archive(file, values[0]) and _made_once(file, values[0], owner):
            yield values[0], name


def _key(node: cst.Subscript) -> str | None:
    index = node.slice[0].slice
    return string_value(index.value) if len(node.slice) == 1 and isinstance(index, cst.Index) else None


def _is_archive(file: PythonFile, call: cst.Call) -> bool:
    """Whether a call loads an archive of arrays, as its path says, and neither maps it nor finds objects in it."""
    if file.full_name(call.func) != ARCHIVE or [arg.keyword is None for arg in call.args] != [True]:
        return False
    path = call.args[0].value
    return any(SUFFIX in file.text(each) for each in (path, value_of(file, path), *values_given(file, call, path)))


def _made_once(file: PythonFile, call: cst.Call, owner: cst.CSTNode | None) -> bool:
    """Whether an archive is loaded by the module, or by the `__init__` of its object, and in no loop."""
    around = file.function_around(call)
    alone = not any(True for _ in file.loops_around(call))
    return alone and (around is None if owner is file.module else around is not None and around.name.value == "__init__")


def _uses(project: Project, file: PythonFile, name: str) -> Iterator[tuple[PythonFile, cst.Subscript]]:
    """All places that ask the archive for an array. Raises `UsageError` where it is used otherwise than a dictionary can be."""
    word, own = name.removeprefix("self."), name.startswith("self.")
    for where in project.parsed(word) if own else (file,):
        for node in where.nodes:
            if not (
                isinstance(node, cst.Attribute) and node.attr.value == word if own else isinstance(node, cst.Name) and node.value == word
            ):
                continue
            up = where.parent(node)
            if isinstance(up, (cst.AssignTarget, cst.AnnAssign)) or (isinstance(up, cst.Attribute) and up.attr is node):
                continue
            if isinstance(up, cst.Subscript) and up.value is node:
                if isinstance(where.parent(up), (cst.AssignTarget, cst.AugAssign, cst.Del)):
                    raise refuse(f"{where.location(up)}: `{where.text(up)}` is set")
                yield where, up
            elif not _as_dictionary(where, node, up):
                raise refuse(f"{where.location(node)}: `{short(where.text(up or node))}` asks an archive for more than its arrays")


def _as_dictionary(file: PythonFile, node: cst.CSTNode, up: cst.CSTNode | None) -> bool:
    if isinstance(up, cst.Arg):
        call = file.parent(up)
        return isinstance(call, cst.Call) and dotted(call.func) in LOOKS
    if isinstance(up, cst.Attribute):
        return up.attr.value == "keys"
    return isinstance(up, (cst.ComparisonTarget, cst.For, cst.CompFor))


def _copied(file: PythonFile, taken: cst.Subscript, alone: bool) -> list[Splice]:
    """The edit that copies the part that is taken, unless it is made new at once. Raises `UsageError` where that is the whole array.

    An array that one place alone asks for, while the object is made, is that place's.
    """
    part = file.parent(taken)
    node = part if isinstance(part, cst.Subscript) and part.value is taken else taken
    if _made_new(file, node) or (node is taken and alone):
        return []
    if node is taken:
        raise refuse(f"{file.location(taken)}: the whole array that `{file.text(taken)}` gives may be changed")
    end = file.span(node)[1]
    return [Splice(file.path, end, end, ".copy()")]


def _made_new(file: PythonFile, node: cst.CSTNode) -> bool:
    """Whether what stands around a part of an array makes another one of it, and does nothing else with it."""
    up = file.parent(node)
    if isinstance(up, (cst.BinaryOperation, cst.UnaryOperation, cst.Comparison)):
        return True
    call = file.parent(up) if up is not None else None
    if isinstance(up, cst.Arg) and isinstance(call, cst.Call):
        return file.full_name(call.func) in NEW
    return isinstance(up, cst.Attribute) and isinstance(call, cst.Call) and call.func is up and up.attr.value in ANEW and not call.args[1:]
