"""Where arrays of NumPy become tensors: each place whose float64 would stay float64 beside a network in float32, brought to float32."""

from __future__ import annotations

import libcst as cst

from trainflash.knobs.edits import imports
from trainflash.knobs.edits.formats import spoiled
from trainflash.knobs.project import Project
from trainflash.knobs.reading import callers
from trainflash.knobs.reading.expressions import class_values, given_to, literal, passed, refuse, short
from trainflash.knobs.reading.formats import Formats
from trainflash.knobs.reading.python_source import PythonFile, descendants, dotted, keyword, positional
from trainflash.knobs.reading.whole_files import unassigned_parameter
from trainflash.knobs.splices import Edit, Splice

Place = tuple[PythonFile, cst.CSTNode, tuple[Edit, ...]]
EDGES = {"torch.from_numpy": None, "torch.tensor": None, "torch.as_tensor": 1, "torch.asarray": None}  # and where `dtype` may stand
CONVERTS = {"float", "double", "half", "bfloat16", "long", "int", "short", "bool", "byte", "type", "type_as", "item", "numel"}
TAKES_ANY = {"copy_", "load_state_dict"}  # methods that convert what they are given
IN_PLACE = {"fill", "sort", "shuffle", "copyto", "put", "resize", "partition"}
NUMPY = {"float64": "float32", "double": "float32", "float_": "float32"}


def single(project: Project) -> list[Place]:
    """Edits that make float32 of the arrays. Raises `UsageError` where an array's format is not known."""
    formats = Formats(project)
    found: list[Place] = []
    for file in project.parsed("torch"):
        spoiled.called_everywhere(file, tuple(EDGES))
        spoiled.loaded(file, lambda where, node: _converted(formats, where, node))
        for call in file.calls:
            if file.full_name(call.func) in EDGES:
                found += _edge(formats, file, call)
    _batches(formats)
    return found


def _edge(formats: Formats, file: PythonFile, call: cst.Call) -> list[Place]:
    here, name = file.location(call), file.full_name(call.func) or ""
    given = keyword(call, "dtype") or positional(call, EDGES[name])
    if given is not None:
        return _told(formats, file, call, given.value)
    if any(arg.star == "**" and _gives_type(formats, file, arg.value) for arg in call.args):
        return []  # what the options say is edited where they stand
    first = positional(call, 0) or keyword(call, "data") or keyword(call, "obj")
    if first is None:
        raise refuse(f"{here}: what `{short(file.text(call))}` is given cannot be told")
    if _converted(formats, file, call) or _plain(first.value):
        return []
    kind = formats.of(file, first.value)
    if kind is None and formats.has_fractions(file, first.value):
        return _brought(formats, file, call, first.value)  # float32 stays as it is
    if kind is None and name == "torch.from_numpy" and (array := dotted(first.value)) is not None:
        return _by_its_own_format(formats.project, file, call, first.value, array)
    if kind is None:
        raise refuse(f"{here}: whether `{short(file.text(first.value))}` holds float64 is not known, and its tensor would keep that")
    return _brought(formats, file, call, first.value) if kind == "float64" else []


def _gives_type(formats: Formats, file: PythonFile, options: cst.BaseExpression, depth: int = 2) -> bool:
    """Whether options, a constant of the module or of the class, name a type of numbers."""
    if isinstance(options, cst.Dict):
        return any(isinstance(each, cst.DictElement) and literal(each.key) == "dtype" for each in options.elements)
    if isinstance(options, cst.Call):
        return dotted(options.func) == "dict" and keyword(options, "dtype") is not None
    owner = file.class_around(options)
    of_class = isinstance(options, cst.Attribute) and dotted(options.value) in ("self", "cls") and owner is not None
    if of_class and isinstance(owner.body, cst.IndentedBlock):  # type: ignore[union-attr]
        made = [(file, value) for value in class_values(owner.body, options.attr.value)]  # type: ignore[union-attr]
    else:
        held = formats.constant(file, options) if isinstance(options, cst.Name) else None
        made = [] if held is None else [held]
    return depth > 0 and len(made) == 1 and _gives_type(formats, *made[0], depth - 1)


def _told(formats: Formats, file: PythonFile, call: cst.Call, given: cst.BaseExpression) -> list[Place]:
    """A call that names its type: torch's own names are edited where they stand, Python's `float` here."""
    if file.full_name(given) == "float" and isinstance(call.func, cst.Attribute):
        start, end = file.span(given)
        return [(file, call, (Splice(file.path, start, end, f"{file.text(call.func.value)}.float32"),))]
    if file.full_name(given) == "float":
        raise refuse(f"{file.location(call)}: `{short(file.text(call))}` makes float64")
    return []


def _brought(formats: Formats, file: PythonFile, call: cst.Call, array: cst.BaseExpression) -> list[Place]:
    """The array's own conversion edited where it names float64 for this tensor alone, else a conversion behind the call."""
    if isinstance(array, cst.Call) and isinstance(array.func, cst.Attribute) and array.func.attr.value == "astype":
        named = array.args[0].value if len(array.args) == 1 else None
        if isinstance(named, cst.Name) and (held := formats.constant(file, named)) and _only_here(formats, named.value):
            file, named = held
        if isinstance(named, cst.Attribute) and file.full_name(named) in {f"numpy.{name}" for name in NUMPY}:
            start, end = file.span(named.attr)
            return [(file, named, (Splice(file.path, start, end, NUMPY[named.attr.value]),))]
    if file.full_name(call.func) != "torch.tensor":
        _not_written_later(file, call, dotted(array))
    end = file.span(call)[1]
    return [(file, call, (Splice(file.path, end, end, ".float()"),))]


def _by_its_own_format(project: Project, file: PythonFile, call: cst.Call, array: cst.BaseExpression, name: str) -> list[Place]:
    """An array whose format is known when the program runs alone: what is float64 then becomes float32, all others stay what they are."""
    _not_written_later(file, call, name)
    function = file.function_around(call)
    param = unassigned_parameter(function, array)
    for where, site in callers.sites(project, file, function) if function is not None and param is not None else ():
        given = passed(where, site, file, function, param)  # type: ignore[arg-type]
        _not_written_later(where, site, None if given is None else dotted(given))
    asarray, needed = imports.reach(file, "numpy", "asarray")
    start, end = file.span(array)
    chosen = f'{{"float64": "float32", "complex128": "complex64"}}.get({name}.dtype.name)'
    return [(file, call, (*needed, Splice(file.path, start, end, f"{asarray}({name}, {chosen})")))]


def _not_written_later(file: PythonFile, call: cst.Call, name: str | None) -> None:
    if (later := _written_later(file, call, name)) is not None:
        raise refuse(
            f"{file.location(later)}: the array is written to behind {file.location(call)}, and its tensor in float32 would not see it"
        )


def _written_later(file: PythonFile, call: cst.Call, name: str | None) -> cst.CSTNode | None:
    """Where the array called `name`, whose memory the tensor shares, is written to in place behind the call."""
    for node in file.nodes if name is not None else ():
        target: cst.CSTNode | None = node.target if isinstance(node, (cst.AssignTarget, cst.AugAssign)) else None
        if isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute) and node.func.attr.value in IN_PLACE:
            target = next((each for each in (node.func.value, *(arg.value for arg in node.args)) if dotted(each) == name), None)
        elif isinstance(node, cst.AssignTarget) and not isinstance(target, cst.Subscript):
            continue
        target = target.value if isinstance(target, cst.Subscript) else target
        if target is not None and dotted(target) == name and file.lines_of(node)[0] > file.lines_of(call)[0]:
            return node
    return None


def _only_here(formats: Formats, name: str) -> bool:
    """Whether the constant is read only as the type of arrays that become tensors there."""
    for file in formats.project.parsed(name):
        for node in file.nodes:
            if not isinstance(node, cst.Name) or node.value != name:
                continue
            up = file.parent(node)
            if isinstance(up, (cst.AssignTarget, cst.ImportAlias)) and not file.location(node).function:
                continue
            cast = file.parent(up) if isinstance(up, cst.Arg) else None
            around = file.parent(file.parent(cast)) if cast is not None else None  # type: ignore[arg-type]
            method = cast.func.attr.value if isinstance(cast, cst.Call) and isinstance(cast.func, cst.Attribute) else ""
            if method != "astype" or not isinstance(around, cst.Call) or file.full_name(around.func) not in EDGES:
                return False
    return True


def _converted(formats: Formats, file: PythonFile, node: cst.CSTNode) -> bool:
    """Whether what stands around the call converts its result, or takes any type."""
    up = file.parent(node)
    while isinstance(up, cst.Attribute) and isinstance(called := file.parent(up), cst.Call) and called.func is up:
        if up.attr.value in CONVERTS or (up.attr.value == "to" and any(_is_type(formats, file, arg.value) for arg in called.args)):
            return True
        node, up = called, file.parent(called)
    method = file.parent(up) if isinstance(up, cst.Arg) else None
    return isinstance(method, cst.Call) and isinstance(method.func, cst.Attribute) and method.func.attr.value in TAKES_ANY


def _is_type(formats: Formats, file: PythonFile, node: cst.BaseExpression) -> bool:
    """Whether `node` is a type of numbers: one by name, `x.dtype`, the default, or a variable called so."""
    if isinstance(node, cst.Call):
        return file.full_name(node.func) == "torch.get_default_dtype"
    made = given_to(file.function_around(node) or file.module, node.value) if isinstance(node, cst.Name) else []
    if len(made) == 1 and isinstance(made[0], cst.Call):
        return _is_type(formats, file, made[0])
    return formats.named_type(file, node) is not None or (dotted(node) or "").split(".")[-1] in ("dtype", "DTYPE")


def _plain(node: cst.BaseExpression) -> bool:
    """Numbers that are written out: they become tensors of the default type."""
    if isinstance(node, (cst.List, cst.Tuple)):
        return all(_plain(element.value) for element in node.elements)
    return isinstance(literal(node), (bool, int, float))


def _batches(formats: Formats) -> None:
    """Raises `UsageError` unless what data sets hand to torch's own collate function are tensors or whole numbers: it makes float64 of
    Python's numbers and keeps that of arrays."""
    loaders = [call for file in formats.project.parsed("DataLoader") for call in file.calls if _is_loader(file, call)]
    if not loaders or all(keyword(call, "collate_fn") is not None for call in loaders):
        return
    for file in formats.project.parsed("__getitem__"):
        for function in file.functions:
            if function.name.value == "__getitem__":
                for node in descendants(function, cst.Return):
                    for value in _parts(node.value):  # type: ignore[attr-defined]
                        if formats.of(file, value) not in ("tensor", "whole", "other", "float32"):
                            shown = short(file.text(value))
                            raise refuse(f"{file.location(value)}: whether `{shown}` is float64 in a batch is not known")


def _is_loader(file: PythonFile, call: cst.Call) -> bool:
    return (file.full_name(call.func) or "").split(".")[-1] == "DataLoader"


def _parts(node: cst.BaseExpression | None) -> list[cst.BaseExpression]:
    """What a sample is made of."""
    if isinstance(node, (cst.Tuple, cst.List)):
        return [part for element in node.elements for part in _parts(element.value)]
    if isinstance(node, cst.Dict):
        return [part for element in node.elements for part in _parts(element.value)]
    return [] if node is None else [node]
