"""A tensor that is made of a list of arrays, number by number: of one array, `torch.tensor(np.array(rows))`.

Both join in the same way and give the same numbers. They differ for Python's own floats, of which `torch.tensor` makes float32 and NumPy
float64, and for tensors: so it must be known what the list holds, or the type be written out and the list be one of samples. Where it is
not, the program asks at the costly line itself: `torch.tensor(np.array(rows) if rows and isinstance(rows[0], np.ndarray) else rows)`.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from trainflash.errors import UsageError
from trainflash.knobs.edits import imports
from trainflash.knobs.edits.batches import collating
from trainflash.knobs.kinds import StackedArrays
from trainflash.knobs.reading.arrays import declared_array
from trainflash.knobs.reading.expressions import free_name, given_to, refuse
from trainflash.knobs.reading.formats import Formats
from trainflash.knobs.reading.listed import Listed, entries
from trainflash.knobs.reading.python_source import PythonFile, descendants, dotted, keyword
from trainflash.knobs.scene import Scene, Target
from trainflash.knobs.splices import Splice

TYPED = {
    "torch.FloatTensor": "float32",
    "torch.DoubleTensor": "float64",
    "torch.LongTensor": "int64",
    "torch.IntTensor": "int32",
    "torch.Tensor": "get_default_dtype()",
}
MAKES = ("torch.tensor", "torch.as_tensor", *TYPED)
CASTS = ("float", "double", "half", "bfloat16")  # methods that name the type of the tensor at once
SINGLE = ("len", "int", "float", "bool", "sum")  # calls that give one number
ARRAY = ("float64", "float32", "whole", "other")
CLEAR = 0.1  # own: of the time of all such lines, a lower part pays for no condition of its own
NAMES = ("rows", "arrays")  # for a list that has none


def stacked_arrays(edit: StackedArrays, scene: Scene) -> tuple[Target, ...]:
    """The calls at the line, else those of the function there, else of the collate function. Raises `UsageError` where none can be known
    to be given arrays."""
    splices: list[Splice] = []
    places, reasons = [], []
    calls = _calls(scene)
    for file, call, _ in calls:
        try:
            made = _joined(scene, file, call, _is_hot(scene, file, call, [each for _, each, _ in calls]))
        except UsageError as bad:
            reasons.append(bad)
            continue
        splices += [each for each in made if each not in splices]
        places.append((file.location(call), f"`{file.text(call)}` at {file.location(call)}"))
    asks = [] if places else [(file, call) for file, call, at_line in calls if at_line and _unknown_parts(scene, file, call)]
    for file, call in asks:
        splices += [each for each in _asked(file, call, call.args[0].value) if each not in splices]
        places.append((file.location(call), f"`{file.text(call)}` at {file.location(call)}, where its rows are arrays"))
    if not places:
        raise reasons[0]
    return (Target(places[0][0], None, lambda value: tuple(splices), " and ".join(said for _, said in places), "one array"),)


def _calls(scene: Scene) -> list[tuple[PythonFile, cst.Call, bool]]:
    """Each with whether it stands at the line: these come first."""
    file, place = scene.source("makes the tensor")
    function = file.function_at(place)
    found = [(file, call) for call in _makers(file, function or file.module)]
    at_line = [(where, call) for where, call in found if file.covers(file.statement(call) or call, place.line)]
    if function is None:
        found = at_line
    if not found:
        file, function = collating.collate_function(scene)
        found = [(file, call) for call in _makers(file, function)]
    if not found:
        raise refuse(f"{place}: no tensor is made of a list near this line")
    return sorted(((*pair, pair in at_line) for pair in found), key=lambda each: not each[2])


def _makers(file: PythonFile, within: cst.CSTNode) -> Iterator[cst.Call]:
    for call in descendants(within, cst.Call):
        if file.full_name(call.func) in MAKES and call.args and call.args[0].keyword is None and not call.args[0].star:  # type: ignore[attr-defined]
            yield call  # type: ignore[misc]


def _is_hot(scene: Scene, file: PythonFile, call: cst.Call, calls: list[cst.Call]) -> bool:
    """Whether the run spent a clear part of the time of all `calls` at the line of this one; True where it saw none of their lines."""
    costs = {id(each): 0.0 for each in calls}
    for line in scene.summary.lines:
        for each in calls if line.location.file == file.path else ():
            costs[id(each)] += line.share * file.covers(file.statement(each) or each, line.location.line)
    return costs[id(call)] >= CLEAR * sum(costs.values())


def _joined(scene: Scene, file: PythonFile, call: cst.Call, hot: bool) -> list[Splice]:
    here, whole, full = file.location(call), call.args[0].value, file.full_name(call.func) or ""
    if full in TYPED and len(call.args) > 1:
        raise refuse(f"{here}: `{file.text(call)}` is given sizes")
    typed = full in TYPED or _typed(file, call)
    if typed and full not in TYPED and isinstance(whole, cst.ListComp) and _taken_apart(whole.elt) is not None:
        return _whole_again(file, call, whole)
    found = entries(file, whole)
    if found is None:
        raise refuse(f"{here}: `{file.text(whole)}` is no list whose entries the source shows")
    kinds = {_kind(scene, each) for each in found}
    if "tensor" in kinds:
        raise refuse(f"{here}: `{file.text(whole)}` holds tensors")
    if "single" in kinds:
        raise refuse(f"{here}: `{file.text(whole)}` holds single numbers")
    sampled = all(each.sampled and (each.key is not None or isinstance(each.node, (cst.Name, cst.ListComp, cst.List))) for each in found)
    if kinds != {"array"} and not (typed and sampled and hot):
        raise refuse(f"{here}: whether `{file.text(whole)}` holds arrays is not known")
    if kinds != {"array"}:
        return [*_typed_maker(file, call, full), *_asked(file, call, whole)]
    if full not in TYPED and not typed and not _never_empty(scene, file, call, found):
        return _asked(file, call, whole, known=True)
    array, needed = imports.reach(file, "numpy", "array")
    start, end = file.outer_span(whole)
    if full not in TYPED:
        return [*needed, Splice(file.path, start, start, f"{array}("), Splice(file.path, end, end, ")")]
    maker, more = imports.reach(file, "torch", "tensor")
    name, _ = imports.reach(file, "torch", TYPED[full])
    text = f"{maker}({array}({file.outer_text(whole)}), dtype={name})"
    return [*needed, *more, Splice(file.path, *file.span(call), text)]


def _typed_maker(file: PythonFile, call: cst.Call, full: str) -> list[Splice]:
    """`torch.tensor(…, dtype=torch.float32)` in place of `torch.FloatTensor(…)`, which takes no array."""
    if full not in TYPED:
        return []
    maker, needed = imports.reach(file, "torch", "tensor")
    name, _ = imports.reach(file, "torch", TYPED[full])
    end = file.outer_span(call.args[0].value)[1]
    return [*needed, Splice(file.path, *file.span(call.func), maker), Splice(file.path, end, end, f", dtype={name}")]


def _unknown_parts(scene: Scene, file: PythonFile, call: cst.Call) -> bool:
    """Whether the list holds one part of each sample, and nothing shows of what kind."""
    found = entries(file, call.args[0].value) if file.full_name(call.func) not in TYPED else None
    parts = [each for each in found or () if each.sampled and (each.key is not None or isinstance(each.node, cst.Subscript))]
    return bool(parts) and parts == found and all(_kind(scene, each) is None for each in parts)


def _asked(file: PythonFile, call: cst.Call, whole: cst.BaseExpression, known: bool = False) -> list[Splice]:
    """One array where the first row is one. A list without a name gets one in the condition. `known`: the rows are, if there are any."""
    name, first = _first_asked(file, call, whole, file.outer_text(whole))
    if known:
        array, needed = imports.reach(file, "numpy", "array")
        return [*needed, Splice(file.path, *file.outer_span(whole), f"{array}({name}) if {first} else {name}")]
    return _where_arrays(file, whole, name, first, name)


def _whole_again(file: PythonFile, call: cst.Call, whole: cst.ListComp) -> list[Splice]:
    """One array of rows that were taken apart by `tolist()`, where they are arrays: of tensors with gradients NumPy makes none."""
    start, end = file.outer_span(whole)
    taken = file.outer_span(_taken_apart(whole.elt))[1], file.outer_span(whole.elt)[1]  # type: ignore[arg-type]
    text = (file.raw[start : taken[0]] + file.raw[taken[1] : end]).decode("utf-8")
    name, first = _first_asked(file, call, whole, text)
    each = free_name(file, call, "row", "each", "one")
    return _where_arrays(file, whole, name, first, f"[{each}.tolist() for {each} in {name}]")


def _where_arrays(file: PythonFile, whole: cst.BaseExpression, name: str, first: str, otherwise: str) -> list[Splice]:
    """In place of `whole` one array where its first row is one that holds something, else `otherwise`."""
    array, needed = imports.reach(file, "numpy", "array")
    kind, more = imports.reach(file, "numpy", "ndarray")
    text = f"{array}({name}) if {first} and isinstance({name}[0], {kind}) and {name}[0].size else {otherwise}"
    return [*needed, *(each for each in more if each not in needed), Splice(file.path, *file.outer_span(whole), text)]


def _first_asked(file: PythonFile, call: cst.Call, whole: cst.BaseExpression, text: str) -> tuple[str, str]:
    """The name of the list `whole`, which is made by `text`, and what is written where it is asked for first."""
    if (known := dotted(whole)) is not None:
        return known, known
    name = _free_name(file, call)
    return name, f"({name} := {text})"


def _never_empty(scene: Scene, file: PythonFile, call: cst.Call, found: list[Listed]) -> bool:
    """Whether the list has a row: it is written out, or made of a batch in a function that joins batches."""
    if not any(each.sampled for each in found):
        return isinstance(call.args[0].value, (cst.List, cst.Tuple))
    function, owner = file.function_around(call), file.class_around(call)
    names = [each.name.value.lower() for each in (function, owner) if each is not None]
    try:
        return any("collat" in name for name in names) or collating.collate_function(scene)[1] is function
    except UsageError:
        return False


def _free_name(file: PythonFile, call: cst.Call) -> str:
    """Raises `UsageError` where Python allows no `:=`: in what a comprehension goes over, and in the body of a class."""
    inner: cst.CSTNode = call
    for up in file.ancestors(call):
        if isinstance(up, cst.CompFor) and up.iter is inner:
            raise refuse(f"{file.location(call)}: the list has no name, and none can be given here")
        if isinstance(up, cst.ClassDef):
            raise refuse(f"{file.location(call)}: the list is made in the body of a class")
        if isinstance(up, cst.FunctionDef):
            break
        inner = up
    return free_name(file, call, *NAMES)


def _taken_apart(node: cst.BaseExpression) -> cst.BaseExpression | None:
    """`x` of `x.tolist()`: an array, or a tensor that NumPy reads as one."""
    method = isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute) and node.func.attr.value == "tolist" and not node.args
    return node.func.value if method else None  # type: ignore[attr-defined]


def _typed(file: PythonFile, call: cst.Call) -> bool:
    """Whether the type of the tensor is written out, in the call or right behind it."""
    given = keyword(call, "dtype")
    if given is not None:
        return dotted(given.value) != "None" and not _maybe_none(file, given.value)
    up = file.parent(call)
    return isinstance(up, cst.Attribute) and up.attr.value in CASTS and isinstance(file.parent(up), cst.Call)


def _maybe_none(file: PythonFile, node: cst.BaseExpression) -> bool:
    """Whether a variable is given None in its function, or where nothing is passed."""
    function = file.function_around(node)
    params = descendants(function.params, cst.Param) if function is not None else ()
    given = [each.default for each in params if each.name.value == dotted(node)]  # type: ignore[attr-defined]
    given += given_to(function or file.module, dotted(node) or "")
    return any(each is not None and "None" in {name.value for name in descendants(each, cst.Name)} for each in given)  # type: ignore[attr-defined]


def _kind(scene: Scene, entry: Listed) -> str | None:
    """What an entry of the list is: `array`, `tensor`, `single` for a single number, or None where that is not known."""
    file, node = entry.file, entry.node
    if node is not None:
        kind = _of(scene, file, node)
        if kind is not None or entry.key is None:
            return kind
    if entry.key is None or not entry.sampled:
        return None
    kinds = {_of(scene, where, part) for where, part in collating.sample_parts(scene, entry.key)}
    return kinds.pop() if len(kinds) == 1 else None


def _of(scene: Scene, file: PythonFile, node: cst.BaseExpression) -> str | None:
    if isinstance(node, (cst.Integer, cst.Float)) or (isinstance(node, cst.Call) and dotted(node.func) in SINGLE):
        return "single"
    found = Formats(scene.project).of(file, node)
    if found == "tensor":
        return "tensor"
    if found in ARRAY and not isinstance(node, cst.Comparison):
        return "array"
    return "array" if declared_array(scene.project, file, node) else None
