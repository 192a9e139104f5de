"""What a program does with its loaders and copies that an argument of theirs would break."""

from __future__ import annotations

import re
from collections.abc import Iterator

import libcst as cst

from trainflash.knobs.project import Project
from trainflash.knobs.reading import callees
from trainflash.knobs.reading.expressions import assigned, refuse
from trainflash.knobs.reading.python_source import (
    PythonFile,
    descendants,
    dotted,
    has_splat,
    keyword,
    methods_of,
    positional,
    string_value,
)

LOADERS = ("torch.utils.data.DataLoader", "torch.utils.data.dataloader.DataLoader")
COLLATE_AT = 6  # where a DataLoader takes its collate function without its name
BACK = ("cpu", "numpy", "tolist", "item")  # methods that end in host memory
MOVERS = ("to", "cuda", "pin_memory")  # methods that move an object when somebody asks


def on_host(project: Project, file: PythonFile, call: cst.Call, argument: str, device: object) -> None:
    """Raises `UsageError` where the data set may lie on the device: workers cannot use their parent's, and only host memory is pinned."""
    if str(device).startswith("cuda"):
        data = keyword(call, "dataset")
        value = data.value if data is not None else first.value if (first := positional(call, 0)) is not None else None
        moved = on_device(project, file, value) if value is not None else None
        if moved is not None:
            raise refuse(f"{moved}: the data set may lie on the device, where {argument} does not serve")


def one_iterator(file: PythonFile, where: cst.CSTNode) -> None:
    """Kept workers serve one iterator: a second one, made while the first runs, would start that over. Raises `UsageError`."""
    for call in descendants(where, cst.Call):
        name, plain = dotted(call.func), [dotted(arg.value) for arg in call.args]
        twice = name == "zip" and any(each is not None and plain.count(each) > 1 for each in plain)
        around = [up.iter for up in file.ancestors(call) if isinstance(up, cst.For)] if name == "iter" and plain else []
        again = any(dotted(each) == plain[0] for loop in around for each in descendants(loop, (cst.Name, cst.Attribute)) if plain[0])
        if twice or again:
            raise refuse(f"{file.location(call)}: `{file.text(call)}` makes a second iterator, but kept workers serve one")
    for loop in descendants(where, cst.For):
        name = dotted(loop.iter.args[0].value if isinstance(loop.iter, cst.Call) and loop.iter.args else loop.iter) or ""
        if "load" not in name.lower():
            continue
        inner = [dotted(each.iter) for each in descendants(loop.body, cst.For)]
        handed = [each for each in descendants(loop.body, cst.Call) if any(dotted(arg.value) == name for arg in each.args)]
        handed = [each for each in handed if (dotted(each.func) or "") not in ("len", "print", "isinstance")]
        if name in inner or handed:
            raise refuse(
                f"{file.location(handed[0] if handed else loop)}: {name} is gone through within its own loop, and kept workers serve one"
            )


def can_be_added(project: Project, file: PythonFile, call: cst.Call, argument: str, calls: tuple[str, ...]) -> None:
    """Raises `UsageError` where `call` takes no `argument`, or a `**` may pass it already; `calls` as of `call_argument`."""
    if not _accepts(project, call, argument):
        raise refuse(f"{file.location(call)}: `{dotted(call.func)}` of this project takes no {argument}")
    _not_spread(project, file, call, argument, calls)


def _accepts(project: Project, call: cst.Call, argument: str) -> bool:
    """Whether a class or function of the project takes `argument`; what is not the project's is believed to."""
    for each in _constructors(project, call):
        taken = {param.name.value for param in (*each.params.params, *each.params.kwonly_params)}
        return argument in taken or each.params.star_kwarg is not None
    return True


def _constructors(project: Project, call: cst.Call) -> Iterator[cst.FunctionDef]:
    """`__init__` of the classes of the project that `call` may mean by their last name."""
    name = (dotted(call.func) or "").split(".")[-1]
    for where in project.parsed(name) if name else ():
        for owner in (node for node in where.each(cst.ClassDef) if node.name.value == name):
            yield from (each for each in methods_of(owner) if each.name.value == "__init__")


def _not_spread(project: Project, file: PythonFile, call: cst.Call, argument: str, calls: tuple[str, ...]) -> None:
    """Raises `UsageError` where a `**` may pass `argument` although its source does not show: the program says its name elsewhere.

    Elsewhere is neither where it is only read, nor an argument of another call of `calls`.
    """
    if not has_splat(call, "**") and not _spreads(project, call):
        return
    for where in project.parsed(argument):
        for node in where.nodes:
            given = isinstance(node, cst.Arg) and node.keyword is not None and node.keyword.value == argument
            outer = where.parent(node) if given else None
            if given and isinstance(outer, cst.Call) and where.full_name(outer.func) in calls and not has_splat(outer, "**"):
                continue
            written = isinstance(node, cst.SimpleString) and _says(where, node, argument)
            if given or written:
                raise refuse(f"{where.location(node)}: the ** of `{file.text(call.func)}` at {file.location(call)} may hold {argument}")


def _says(file: PythonFile, text: cst.SimpleString, argument: str) -> bool:
    """Whether a text is the key `argument`, and is not only read, or holds such a key, as a configuration in JSON does."""
    if string_value(text) == argument:
        return not _only_read(file, text)
    return not isinstance(file.parent(text), cst.Expr) and re.search(rf"\b{argument}\b\W*[:=]", text.value) is not None


def _spreads(project: Project, call: cst.Call) -> bool:
    """Whether a class of the project is called that hands on what it does not name."""
    return any(each.params.star_kwarg is not None for each in _constructors(project, call))


def _only_read(file: PythonFile, key: cst.SimpleString) -> bool:
    """Whether a key is looked up, taken out or asked for."""
    up = file.parent(key)
    if isinstance(up, (cst.Comparison, cst.ComparisonTarget)):
        return True
    if isinstance(up, cst.Index):
        place = file.parent(file.parent(up))
        return not isinstance(file.parent(place), (cst.AssignTarget, cst.AugAssign, cst.AnnAssign))
    call = file.parent(up) if isinstance(up, cst.Arg) else None
    called = dotted(call.func) or "" if isinstance(call, cst.Call) else ""
    return called in ("getattr", "hasattr") or called.split(".")[-1] in ("get", "pop", "getint", "getboolean", "getfloat")


def to_host(file: PythonFile, call: cst.Call) -> bool:
    """Whether a copy ends in host memory, where nothing waits for it by itself."""
    first = positional(call, 0) or keyword(call, "device")
    return first is not None and _host(file, first.value)


def _host(file: PythonFile, target: cst.BaseExpression) -> bool:
    """Whether a device is the host's memory."""
    if isinstance(target, cst.Call) and file.full_name(target.func) == "torch.device" and target.args:
        target = target.args[0].value
    return (string_value(target) or "").startswith("cpu")


def waited_for(project: Project) -> None:
    """Raises `UsageError` where something in the program needs the host to wait for the device."""
    for file in project.parsed():
        for call in file.calls:
            full = file.full_name(call.func) or ""
            tail = call.func.attr.value if isinstance(call.func, cst.Attribute) else full.split(".")[-1]
            later = keyword(call, "non_blocking") is not None and (tail == "copy_" or to_host(file, call))
            streams = full in ("torch.cuda.Stream", "torch.cuda.stream", "torch.Stream", "torch.cuda.graph") or tail == "elapsed_time"
            if later or streams:
                raise refuse(f"{file.location(call)}: `{file.text(call)}` may need the host to wait")


def on_device(project: Project, file: PythonFile, node: cst.CSTNode, depth: int = 0) -> object:
    """Where the source moves what `node` is made of to the device; None where it does not show. `depth`: how far that was followed."""
    for call in descendants(node, cst.Call):
        if _comes_back(file, call, node):
            continue
        tail = call.func.attr.value if isinstance(call.func, cst.Attribute) else ""
        target = positional(call, 0) or keyword(call, "device")
        placed = keyword(call, "device") or keyword(call, "map_location")
        named = target is not None and tail == "to" and not _is_type(file, target.value) and not to_host(file, call)
        if tail == "cuda" or named or (placed is not None and not _host(file, placed.value)):
            return file.location(call)
        for where, made in callees.behind(project, file, call.func) if depth < 2 and isinstance(call.func, cst.Name) else ():
            for each in descendants(made.body, cst.Return):
                if (found := on_device(project, where, each, depth + 1)) is not None:
                    return found
        owner = (dotted(call.func) or "").split(".")[-1]
        for where in project.parsed(f"class {owner}") if owner and depth < 2 else ():
            for each in where.nodes:
                made = isinstance(each, cst.ClassDef) and each.name.value == owner
                for part in each.body.body if made else ():  # type: ignore[attr-defined]
                    moves = isinstance(part, cst.FunctionDef) and part.name.value in MOVERS
                    if not moves and (found := on_device(project, where, part, depth + 1)) is not None:
                        return found
    for name in descendants(node, cst.Name) if depth < 2 else ():
        scope = file.scope(name)
        for each in scope[name.value] if scope is not None else ():
            value = _given(file, each.node) if hasattr(each, "node") else None
            if value is not None and not file.inside(node, value) and (found := on_device(project, file, value, depth + 1)) is not None:
                return found
    return None


def _comes_back(file: PythonFile, call: cst.Call, node: cst.CSTNode) -> bool:
    """Whether what `call` makes ends in host memory within `node`: `model(x.to(device)).cpu()`."""
    for up in file.ancestors(call):
        if isinstance(up, cst.Call) and callees.method_name(up) in BACK and file.inside(call, up.func):
            return True
        if up is node or isinstance(up, cst.BaseSmallStatement):
            return False
    return False


def _given(file: PythonFile, target: cst.CSTNode) -> cst.BaseExpression | None:
    """What is assigned to a name, also where that is unpacked."""
    up = file.parent(target)
    around = file.parent(up) if isinstance(up, cst.Element) else None
    line = file.parent(file.parent(around)) if around is not None and isinstance(file.parent(around), cst.AssignTarget) else None
    return assigned(file, target) or (line.value if isinstance(line, cst.Assign) else None)


def _is_type(file: PythonFile, node: cst.BaseExpression) -> bool:
    full = file.full_name(node) or ""
    return (full.startswith("torch.") and full != "torch.device") or "dtype" in full
