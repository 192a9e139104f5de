"""A file that is opened again for each sample: opened once in each thread of each process, and kept open.

`with h5py.File(path, "r") as f:` becomes `with contextlib.nullcontext(_opened(os.getpid(), threading.get_ident(), path, "r")) as f:` with a
cached function `_opened`. Workers that were forked, and threads, open their own: a handle has one position.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import libcst as cst

from trainflash.knobs.edits import imports
from trainflash.knobs.edits.opened import Opened, opened
from trainflash.knobs.edits.statements import above_outermost
from trainflash.knobs.kinds import KeptHandle
from trainflash.knobs.project import Project
from trainflash.knobs.reading import callees
from trainflash.knobs.reading.expressions import literal, refuse
from trainflash.knobs.reading.python_source import PythonFile, descendants, keyword, positional, string_value
from trainflash.knobs.scene import Scene, Target
from trainflash.knobs.splices import Splice
from trainflash.schema import Location

# What opens a file, with its modes that only read; None: it has no mode.
OPENS: dict[str, tuple[str, ...] | None] = {
    "h5py.File": ("r",),
    "zipfile.ZipFile": ("r",),
    "tarfile.open": ("r", "r:", "r:*"),
    "sqlite3.connect": None,
    "numpy.load": None,
    "netCDF4.Dataset": ("r",),
    "lmdb.open": None,
    "open": ("r", "rb"),
}
MODES = {"h5py.File": 1, "zipfile.ZipFile": 1, "tarfile.open": 1, "netCDF4.Dataset": 1, "open": 1}  # the mode's position
DEFAULTS = {"h5py.File": "r", "zipfile.ZipFile": "r", "tarfile.open": "r", "netCDF4.Dataset": "r", "open": "r"}
CHANGES = re.compile(r"\b(insert|update|delete|create|drop|alter|replace|pragma|attach)\b", re.IGNORECASE)
WRITES = ("write", "writestr", "writelines", "commit", "put", "create_dataset", "create_group", "executescript", "truncate", "extractall")
KEPT = 32  # handles, fewer than the files that a process may have open
HANDLE = "opened"


def kept_handle(edit: KeptHandle, scene: Scene) -> tuple[Target, ...]:
    """The opening at the finding's line, or else the only one of its function and what that calls. Raises `UsageError` without one."""
    opening = _opening(scene.project, *scene.source("reads"))
    file, call = opening.file, opening.call
    here = file.location(call)
    _only_reads(opening)
    maker, made = _maker(file, call)
    own = file.raw[file.span(call.func)[1] : file.span(call)[1]].decode("utf-8").split("(", 1)[1]
    process, first = imports.reach(file, "os", "getpid")
    thread, second = imports.reach(file, "threading", "get_ident")
    edits = opening.kept(f"{maker}({process}(), {thread}(), {own}")
    splices = tuple(dict.fromkeys((*first, *second, *made, *edits)))
    return (Target(here, None, lambda value: splices, f"`{file.text(call)}` at {here}", "kept open"),)


def _opening(project: Project, file: PythonFile, place: Location) -> Opened:
    here = [each for each in _openings(file) if file.covers(file.statement(each.call) or each.call, place.line)]
    function = file.function_at(place)
    if not here and function is not None:
        called = list(callees.reached(project, [(file, function)]))
        here = [each for other, one in called for each in _openings(other) if other.function_around(each.call) is one]
    if len(here) != 1:
        raise refuse(f"{place}: {'no' if not here else 'more than one'} file is opened and closed again near this line")
    return here[0]


def _openings(file: PythonFile) -> Iterator[Opened]:
    return opened(file, lambda call: file.full_name(call.func) in OPENS, frozenset({"close"}))


def _only_reads(opening: Opened) -> None:
    """Raises `UsageError` where the file may be written, or its handle outlives the block or has a position that counts."""
    file, call = opening.file, opening.call
    here, full = file.location(call), file.full_name(call.func) or ""
    if any(arg.star for arg in call.args) or not call.args:
        raise refuse(f"{here}: the arguments of `{file.text(call)}` are not all written out")
    modes = OPENS[full]
    if modes is not None:
        given = keyword(call, "mode") or positional(call, MODES[full])
        mode = DEFAULTS[full] if given is None else string_value(given.value)
        if mode not in modes:
            raise refuse(f"{here}: the file is not opened for reading only")
    for arg in call.args:
        if any(True for _ in descendants(arg.value, (cst.List, cst.Dict, cst.Set, cst.ListComp, cst.DictComp, cst.NamedExpr))):
            raise refuse(f"{here}: `{file.text(arg)}` cannot be a key")
    uses = opening.uses()
    for node in uses:
        up = file.parent(node)
        method = up.attr.value if isinstance(up, cst.Attribute) else ""
        if isinstance(up, (cst.Return, cst.Yield, cst.Assign, cst.Element, cst.DictElement, cst.AssignTarget)) or method in WRITES:
            raise refuse(f"{file.location(node)}: the open file may be written, or kept")
        if isinstance(up, cst.Subscript) and isinstance(file.parent(up), (cst.AssignTarget, cst.AugAssign, cst.Del)):
            raise refuse(f"{file.location(node)}: the open file is written")
    if full == "sqlite3.connect":
        function = file.function_around(call)
        texts = [string_value(node) or "" for node in descendants(function, (cst.SimpleString, cst.ConcatenatedString))]  # type: ignore[arg-type]
        changing = next((text for text in texts if CHANGES.search(text)), None)
        if changing is not None or not any("select" in text.lower() for text in texts):
            raise refuse(f"{here}: the queries are not known to only read")
    if full == "open" and not (uses and _sought(file, uses[0])):
        raise refuse(f"{here}: the file is read from its beginning, which a kept one does not begin at again")
    function = file.function_around(call)
    if any(True for _ in descendants(function.body, (cst.Yield, cst.Await))):  # type: ignore[union-attr]
        raise refuse(f"{here}: other work may go on while the file is open")


def _sought(file: PythonFile, node: cst.CSTNode) -> bool:
    """Whether the use `node` moves the file to a place counted from its beginning."""
    up = file.parent(node)
    call = file.parent(up) if isinstance(up, cst.Attribute) and up.attr.value == "seek" else None
    if not isinstance(call, cst.Call) or call.func is not up or not call.args:
        return False
    return len(call.args) == 1 or literal(call.args[1].value) == 0


def _maker(file: PythonFile, call: cst.Call) -> tuple[str, tuple[Splice, ...]]:
    """The module's cached function that opens, and the lines that define it."""
    spelled, needed = imports.reach(file, "functools", "lru_cache")
    name = f"_{HANDLE}"
    while any(isinstance(node, cst.Name) and node.value == name for node in file.nodes):
        name += "_file"
    start = above_outermost(file, call)
    rows = (
        f"@{spelled}(maxsize={KEPT})",
        f"def {name}(process, thread, *args, **options):",
        f"{file.module.default_indent}return {file.text(call.func)}(*args, **options)",
    )
    text = "".join(f"{row}{file.newline}" for row in rows) + 2 * file.newline
    return name, (*needed, Splice(file.path, start, start, text))
