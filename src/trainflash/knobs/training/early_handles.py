"""Files and connections that a data set opens before workers begin: they share them, and the place that each reads from."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from trainflash.knobs.project import Project
from trainflash.knobs.reading import callees
from trainflash.knobs.reading.callees import Function
from trainflash.knobs.reading.expressions import argument_node, given_to, is_name, refuse
from trainflash.knobs.reading.python_source import PythonFile, descendants, dotted, methods_of, unsubscripted
from trainflash.knobs.training import data_sets

# What gives something that has a place in a file, or a connection; `mmap` and `memmap` have a place in each process.
OPENS = {
    "av.open", "bz2.open", "cv2.VideoCapture", "gzip.open", "h5py.File", "io.open", "lmdb.open", "lmdb.Environment", "lzma.open",
    "netCDF4.Dataset", "open", "PIL.Image.open", "rasterio.open", "soundfile.SoundFile", "sqlite3.connect", "tables.open_file",
    "tarfile.open", "tarfile.TarFile", "zipfile.ZipFile",
}  # fmt: skip
AROUND = {"csv.DictReader", "csv.reader", "enumerate", "io.BufferedReader", "io.TextIOWrapper", "iter"}  # read from what they are handed
ALONE = {"os.pread", "os.preadv"}  # read from a place of their own
BEGINS = ("__init__", "__post_init__", "__len__")  # the main process runs these


def none(project: Project, call: cst.Call) -> None:
    """Raises `UsageError` where samples read from something that is open before the workers of the loader `call` begin."""
    for file, owner in data_sets.classes(project):
        early = data_sets.reached(project, owner, [(file, each) for each in methods_of(owner) if each.name.value in BEGINS])
        inside = data_sets.sampled(project, file, owner)
        for field, (where, opens) in _fields(early).items():
            if _ended(early, field) or _opened_again(project, call, field):
                continue
            for place, node in _used(inside, field):
                told = f"`{where.text(opens.func)}` opens it at {where.location(opens)}, before workers begin"
                raise refuse(f"{place.location(node)}: `{place.text(node)}` is read in a sample; {told}, and they would share it")
    for where, function in callees.reached(project, data_sets.starts(project)):
        for name, opens in _variables(where):
            if any(each.value == name and is_name(where, each) for each in descendants(function.body, cst.Name)):  # type: ignore[attr-defined,arg-type]
                raise refuse(f"{where.location(opens)}: {name} is opened before workers begin, and they would share it")


def _fields(early: list[Function]) -> dict[str, tuple[PythonFile, cst.Call]]:
    """Fields that hold what is open, or a part of it."""
    found: dict[str, tuple[PythonFile, cst.Call]] = {}
    for _ in range(2):  # a part of what another field holds
        for file, method in early:
            for node in descendants(method.body, (cst.Assign, cst.AnnAssign)):
                targets = [each.target for each in node.targets] if isinstance(node, cst.Assign) else [node.target]  # type: ignore[attr-defined]
                own = [dotted(each) for each in targets if (dotted(each) or "").startswith("self.")]
                opens = _held(file, method, node.value, found) if own and node.value is not None else None  # type: ignore[attr-defined]
                if opens is not None:
                    found.update({(name or "").removeprefix("self."): (file, opens) for name in own})
    return found


def _held(file: PythonFile, method: cst.FunctionDef, value: cst.BaseExpression, known: dict) -> cst.Call | None:
    """The call that opens what `value` holds; None where it holds nothing open."""
    for call in descendants(value, cst.Call):
        if file.full_name(call.func) in OPENS and _is_whole(file, call, value):  # type: ignore[attr-defined,arg-type]
            return call  # type: ignore[return-value]
    name = dotted(unsubscripted(value)) or ""
    if name.startswith("self."):
        return known[name.removeprefix("self.")][1] if name.removeprefix("self.") in known else None
    for each in given_to(method.body, name) if name else ():
        if isinstance(each, cst.Call) and file.full_name(each.func) in OPENS:
            return each
    return None


def _is_whole(file: PythonFile, call: cst.CSTNode, value: cst.CSTNode) -> bool:
    """Whether `value` is what the call gives, a part of it, or a list or reader of it."""
    if call is value:
        return True
    up = file.parent(call)
    if isinstance(up, cst.Subscript):
        return up.value is call and _is_whole(file, up, value)
    if isinstance(up, cst.Arg):
        outer = file.parent(up)
        taken = isinstance(outer, cst.Call) and file.full_name(outer.func) in AROUND | OPENS
        return taken and _is_whole(file, outer, value)  # type: ignore[arg-type]
    inner = isinstance(up, (cst.Element, cst.DictElement, cst.List, cst.Tuple, cst.Dict, cst.IfExp))
    listed = isinstance(up, (cst.ListComp, cst.DictComp)) and (getattr(up, "elt", None) is call or getattr(up, "value", None) is call)
    return (inner or listed) and _is_whole(file, up, value)  # type: ignore[arg-type]


def _ended(early: list[Function], field: str) -> bool:
    """Whether what was opened is closed or forgotten again there."""
    for file, method in early:
        calls = [call for call in descendants(method.body, cst.Call) if _opens_or_own(file, call)]
        if any(dotted(call.func) == f"self.{field}.close" for call in calls):
            return True
        for node in descendants(method.body, cst.Assign):
            empty = dotted(node.value) == "None" and any(dotted(each.target) == f"self.{field}" for each in node.targets)  # type: ignore[attr-defined]
            if empty and any(file.span(call)[0] < file.span(node)[0] for call in calls):
                return True
    return False


def _opens_or_own(file: PythonFile, call: cst.CSTNode) -> bool:
    name = dotted(call.func) or ""  # type: ignore[attr-defined]
    return name.startswith("self.") or file.full_name(call.func) in OPENS  # type: ignore[attr-defined]


def _opened_again(project: Project, call: cst.Call, field: str) -> bool:
    """Whether each worker opens its own when it begins."""
    for file in project.parsed():
        if not any(call is each for each in file.calls):
            continue
        begins = argument_node(file, call, "worker_init_fn", None)
        starts = callees.defined(project, (dotted(begins) or "").split(".")[-1]) if begins is not None else ()
        for _, function in callees.reached(project, starts):
            for node in descendants(function.body, cst.AssignTarget):
                if isinstance(node.target, cst.Attribute) and node.target.attr.value == field:  # type: ignore[attr-defined]
                    return True
    return False


def _used(inside: list[Function], field: str) -> Iterator[tuple[PythonFile, cst.CSTNode]]:
    for file, method in inside:
        for node in descendants(method.body, cst.Attribute):
            if dotted(node) != f"self.{field}" or isinstance(file.parent(node), cst.AssignTarget):
                continue
            calls = [file.full_name(up.func) for up in file.ancestors(node) if isinstance(up, cst.Call)]
            if not ALONE & set(calls):
                yield file, node


def _variables(file: PythonFile) -> Iterator[tuple[str, cst.Call]]:
    """Variables of the module that hold what is open."""
    for line in file.module.body:
        for node in descendants(line, cst.Assign) if isinstance(line, cst.SimpleStatementLine) else ():
            for target in node.targets:  # type: ignore[attr-defined]
                for call in descendants(node.value, cst.Call):  # type: ignore[attr-defined]
                    if file.full_name(call.func) in OPENS and _is_whole(file, call, node.value):  # type: ignore[attr-defined,arg-type]
                        yield dotted(target.target) or "", call  # type: ignore[misc]
