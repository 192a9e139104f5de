"""A file that is opened again for each sample: opened once in each thread of each process, and kept open as long as the file is the same.

`with h5py.File(path, "r") as f:` becomes `with contextlib.nullcontext(_opened(path, "r")) as f:`. `_opened` looks at the file each time and
asks a cached function, whose keys are the process, the thread, and the file's number, time and size. Workers that were forked, and threads,
open their own: a handle has one position. Only such uses are known to leave nothing behind in a handle as `USES` names.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import libcst as cst

from trainflash.knobs.edits import imports
from trainflash.knobs.edits.keeping.kept_calls import known_above
from trainflash.knobs.edits.keeping.opened import Opened, opened
from trainflash.knobs.edits.statements import above_outermost
from trainflash.knobs.edits.which_call import near
from trainflash.knobs.kinds import KeptHandle
from trainflash.knobs.project import Project
from trainflash.knobs.reading import callees
from trainflash.knobs.reading.expressions import literal, refuse
from trainflash.knobs.reading.file_paths import PATHS, needs_path, of_path
from trainflash.knobs.reading.python_source import PythonFile, descendants, dotted, has_splat, keyword, positional, string_value
from trainflash.knobs.reading.whole_files import values_given
from trainflash.knobs.scene import Scene, Target
from trainflash.knobs.splices import Splice

# What opens a file, with its modes that only read; None: it has no mode.
OPENS: dict[str, tuple[str, ...] | None] = {
    "h5py.File": ("r",),
    "zipfile.ZipFile": ("r",),
    "tarfile.open": ("r", "r:", "r:*"),
    "sqlite3.connect": None,
    "numpy.load": None,
    "netCDF4.Dataset": ("r",),
    "open": ("r", "rb"),
}
MODE = 1  # its position in all of them
DEFAULT = "r"
BY_KEYS = ("keys", "get", "items", "values", "files", "variables", "attrs")
# Methods and attributes that leave nothing behind in a handle; those of arrays by their keys are also read by `f["x"]` and `"x" in f`.
USES: dict[str, tuple[str, ...]] = {
    "h5py.File": BY_KEYS,
    "netCDF4.Dataset": BY_KEYS,
    "numpy.load": BY_KEYS,
    "zipfile.ZipFile": ("open", "read", "namelist", "infolist", "getinfo"),
    "tarfile.open": ("extractfile", "getmember", "getmembers", "getnames"),
    "sqlite3.connect": ("execute",),
    "open": ("read", "readinto", "readline", "seek", "tell"),
}
READERS = ("numpy.fromfile", "numpy.load", "pickle.load")  # go on where a plain file was moved to
FETCHES = ("fetchone", "fetchall", "fetchmany")
LISTS = ("list", "tuple", "dict", "set", "sorted")
OTHERS = ("fileobj", "uri", "opener", "closefd", "memory", "diskless", "persist", "factory")  # arguments that open something else
NO_FILE = re.compile(r":memory:|://")
SAVES = ("numpy.save", "numpy.savez", "numpy.savez_compressed", "torch.save")
KEPT = 32  # handles, fewer than the files that a process may have open


def kept_handle(edit: KeptHandle, scene: Scene) -> tuple[Target, ...]:
    """The opening at the finding's line, or else the only one of its function and what that calls. Raises `UsageError` without one."""
    opening = near(scene.project, *scene.source("reads"), _openings, "file is opened and closed again")
    file, call = opening.file, opening.call
    here = file.location(call)
    _names_a_file(file, call)
    needs_path(scene.project, file, call.args[0].value)
    _only_reads(file, call)
    _leaves_nothing(scene.project, opening)
    name, made = _makers(file, call)
    own = file.raw[file.span(call.func)[1] : file.span(call)[1]].decode("utf-8")
    splices = tuple(dict.fromkeys((*opening.kept(f"{name}{own}"), *made)))
    return (Target(here, None, lambda value: splices, f"`{file.text(call)}` at {here}", "kept open"),)


def _openings(file: PythonFile) -> Iterator[tuple[cst.Call, Opened]]:
    return ((each.call, each) for each in opened(file, lambda call: file.full_name(call.func) in OPENS, frozenset({"close"})))


# The file -------------------------------------------------------------------------------------------------------------------------


def _names_a_file(file: PythonFile, call: cst.Call) -> None:
    """Raises `UsageError` where the arguments may mean something else than a file of a certain path, or cannot be keys."""
    here = file.location(call)
    path = positional(call, 0)
    if path is None or has_splat(call, "*") or has_splat(call, "**"):
        raise refuse(f"{here}: the arguments of `{file.text(call)}` are not all written out, the path in front")
    for value in (path.value, *values_given(file, call, path.value)):
        strange = next((each for each in descendants(value, (cst.Call, cst.Await)) if not of_path(file, each)), None)
        if strange is not None:
            raise refuse(f"{here}: `{file.text(strange)}` may be no path of a file")
        if string_value(value) == "" or NO_FILE.search(file.text(value)):
            raise refuse(f"{here}: `{file.text(value)}` is no path of a file")
    for arg in call.args:
        if arg.keyword is not None and arg.keyword.value in OTHERS:
            raise refuse(f"{here}: `{file.text(arg)}` may open something else than the file")
        kinds = (cst.List, cst.Dict, cst.Set, cst.BaseComp, cst.NamedExpr, *((cst.Call,) if arg is not path else ()))
        if any(True for _ in descendants(arg.value, kinds)):
            raise refuse(f"{here}: `{file.text(arg)}` cannot be a key")


def _only_reads(file: PythonFile, call: cst.Call) -> None:
    """Raises `UsageError` where the file is opened for more than reading, here or elsewhere in this source."""
    here, modes = file.location(call), OPENS[file.full_name(call.func) or ""]
    given = keyword(call, "mode") or positional(call, MODE)
    if modes is not None and (DEFAULT if given is None else string_value(given.value)) not in modes:
        raise refuse(f"{here}: the file is not opened for reading only")
    path = _bare_path(file, call.args[0].value)
    for other in file.calls:
        first = positional(other, 0)
        if first is not None and _writes(file, other) and _bare_path(file, first.value) == path:
            raise refuse(f"{file.location(other)}: the program writes the same file")


def _bare_path(file: PythonFile, node: cst.BaseExpression) -> str:
    """Source of a path without `str(…)` and the like around it."""
    while isinstance(node, cst.Call) and len(node.args) == 1 and file.full_name(node.func) in PATHS:
        node = node.args[0].value
    return "".join(file.text(node).split())


def _writes(file: PythonFile, call: cst.Call) -> bool:
    """Whether a call writes to the file that its first argument names, or may."""
    if file.full_name(call.func) in SAVES:
        return True
    given = keyword(call, "mode") or positional(call, MODE)
    mode = string_value(given.value) if given is not None else None
    opens = (file.full_name(call.func) or "").split(".")[-1] in {name.split(".")[-1] for name in OPENS}
    return opens and mode is not None and bool(set(mode) & set("wax+"))


# The handle -----------------------------------------------------------------------------------------------------------------------


def _leaves_nothing(project: Project, opening: Opened) -> None:
    """Raises `UsageError` where the handle is used by more than what is known to leave nothing behind in it, or outlives its block."""
    file, call = opening.file, opening.call
    function = file.function_around(call)
    assert function is not None
    for node in opening.uses():
        if file.function_around(node) is not function or not _known_use(file, node, file.full_name(call.func) or ""):
            raise refuse(f"{file.location(node)}: what is done with `{node.value}` here may be kept by it, or keep it")
    if any(True for _ in descendants(function.body, (cst.Yield, cst.Await))):
        raise refuse(f"{file.location(call)}: other work may go on while the file is open")
    if file.full_name(call.func) == "netCDF4.Dataset" and _sets_variables(function):
        raise refuse(f"{file.location(call)}: how variables are read is set, which a kept file goes on with")
    if file.full_name(call.func) != "open":
        return
    if not _sought_first(opening):
        raise refuse(f"{file.location(call)}: the file is read from its beginning, which a kept one does not begin at again")
    others = [each for each in descendants(function.body, cst.Call) if (dotted(each.func) or "").split(".")[0] != opening.name]  # type: ignore[attr-defined]
    called = [each for other in others for each in callees.meant(project, file, other)]  # type: ignore[arg-type]
    if any(each is function for _, each in callees.reached(project, called)):
        raise refuse(f"{file.location(call)}: the function calls itself, and may move the file in between")


def _known_use(file: PythonFile, node: cst.Name, full: str) -> bool:
    up = file.parent(node)
    if any(isinstance(each, (cst.Lambda, cst.GeneratorExp)) for each in file.ancestors(node)):
        return False
    if isinstance(up, cst.Attribute) and up.value is node and up.attr.value in USES[full]:
        call = file.parent(up)
        called = isinstance(call, cst.Call) and call.func is up
        if full == "sqlite3.connect":
            return called and _selects(file, call)  # type: ignore[arg-type]
        return called or (up.attr.value in ("files", "variables", "attrs") and not _assigned_to(file, up))
    if isinstance(up, cst.Arg) and full == "open":
        call = file.parent(up)
        return isinstance(call, cst.Call) and call.args[0] is up and file.full_name(call.func) in READERS
    if USES[full] is not BY_KEYS:
        return False
    found = isinstance(up, cst.ComparisonTarget) and isinstance(up.operator, (cst.In, cst.NotIn))
    return found or (isinstance(up, cst.Subscript) and up.value is node and not _assigned_to(file, up))


def _assigned_to(file: PythonFile, node: cst.CSTNode) -> bool:
    """Whether `node`, a part of a handle, or a part of that is set or deleted."""
    while isinstance(up := file.parent(node), (cst.Subscript, cst.Attribute)) and up.value is node:
        node = up
    return isinstance(up, (cst.AssignTarget, cst.AugAssign, cst.AnnAssign, cst.Del))


def _selects(file: PythonFile, call: cst.Call) -> bool:
    """Whether a statement of SQL is written out and only reads, and its rows are taken where it stands."""
    said = string_value(call.args[0].value) if call.args and call.args[0].keyword is None else None
    if said is None or not re.match(r"\s*select\b", said, re.IGNORECASE):
        return False
    up = file.parent(call)
    if isinstance(up, cst.Attribute):
        return up.attr.value in FETCHES and isinstance(file.parent(up), cst.Call)
    if isinstance(up, cst.Arg):
        return isinstance(outer := file.parent(up), cst.Call) and file.full_name(outer.func) in LISTS
    return isinstance(up, (cst.For, cst.CompFor)) and up.iter is call


def _sets_variables(function: cst.FunctionDef) -> bool:
    """Whether a function says how netCDF4 shall read: `x.set_auto_mask(False)`, `x.scale = False`."""
    calls = descendants(function.body, cst.Call)
    targets = (target.target for node in descendants(function.body, cst.Assign) for target in node.targets)  # type: ignore[attr-defined]
    sets = any(isinstance(call.func, cst.Attribute) and call.func.attr.value.startswith("set_") for call in calls)  # type: ignore[attr-defined]
    return sets or any(isinstance(each, cst.Attribute) and dotted(each.value) != "self" for each in targets)


def _sought_first(opening: Opened) -> bool:
    """Whether the block begins by moving the file to a place counted from its beginning."""
    file = opening.file
    up = next(each for each in file.ancestors(opening.call) if isinstance(each, (cst.With, cst.SimpleStatementLine)))
    if isinstance(up, cst.With):
        lines = list(up.body.body)
    else:
        block = list(file.parent(up).body)  # type: ignore[union-attr]
        lines = [*up.body[1:], *block[block.index(up) + 1 :]]
    small = next((each for line in lines[:1] for each in (line.body if isinstance(line, cst.SimpleStatementLine) else [line])), None)
    call = small.value if isinstance(small, cst.Expr) else None
    if not isinstance(call, cst.Call) or dotted(call.func) != f"{opening.name}.seek" or not call.args:
        return False
    return len(call.args) == 1 or (len(call.args) == 2 and literal(call.args[1].value) == 0)


# What opens -----------------------------------------------------------------------------------------------------------------------


def _makers(file: PythonFile, call: cst.Call) -> tuple[str, tuple[Splice, ...]]:
    """The module's function that opens, and the lines that define it and the cached one that it asks."""
    reached = {
        name: imports.reach(file, *name.rsplit(".", 1)) for name in ("functools.lru_cache", "os.getpid", "os.stat", "threading.get_ident")
    }
    spelled = {name.split(".")[-1]: said for name, (said, _) in reached.items()}
    start = above_outermost(file, call)
    known_above(file, call.func, start)
    names = {node.value for node in file.nodes if isinstance(node, cst.Name)}
    end = next(end for end in ("", *(f"_{number}" for number in range(2, len(names) + 3))) if not {f"_kept{end}", f"_opened{end}"} & names)
    indent = file.module.default_indent
    rows = (
        f"@{spelled['lru_cache']}(maxsize={KEPT})",
        f"def _kept{end}(process, thread, number, changed, size, path, *args, **options):",
        f"{indent}return {file.text(call.func)}(path, *args, **options)",
        "",
        "",
        f"def _opened{end}(path, *args, **options):",
        f"{indent}found = {spelled['stat']}(path)",
        f"{indent}key = ({spelled['getpid']}(), {spelled['get_ident']}(), found.st_ino, found.st_mtime_ns, found.st_size)",
        f"{indent}return _kept{end}(*key, path, *args, **options)",
    )
    text = blank_above(file, start) * file.newline + "".join(f"{row}{file.newline}" for row in rows) + 2 * file.newline
    needed = (splice for _, splices in reached.values() for splice in splices)
    return f"_opened{end}", (*needed, Splice(file.path, start, start, text))


def blank_above(file: PythonFile, offset: int) -> int:
    """How many lines are missing for two blank ones above `offset`."""
    above = file.raw[:offset].decode("utf-8").replace("\r\n", "\n")
    return max(0, 2 - (len(above) - len(above.rstrip("\n")) - 1)) if above.strip() else 0
