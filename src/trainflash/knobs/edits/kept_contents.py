"""A file that every call reads whole, for one part of it: read once in each process, and again when it has changed.

`with open(path) as f: return json.load(f)[key]` becomes `return _contents(path)[key]`. `_contents` looks at the file each time and asks a
cached function, whose keys are the path and the file's number, time and size. Only such readings are kept as are known to give the same for
the same file, and to give all of it at once; what they give may be changed nowhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst

from trainflash.knobs.edits import imports
from trainflash.knobs.edits.kept_calls import constant, known_above
from trainflash.knobs.edits.kept_handles import OF_PATHS, PATHS, blank_above
from trainflash.knobs.edits.statements import above_outermost, kept_comments
from trainflash.knobs.edits.which_call import near
from trainflash.knobs.effects import changes, purity
from trainflash.knobs.kinds import KeptContents
from trainflash.knobs.project import Project
from trainflash.knobs.reading import callers
from trainflash.knobs.reading.expressions import UNKNOWN, argument_node, given_to, index_of, is_name, literal, refuse, short
from trainflash.knobs.reading.python_source import PythonFile, clauses, descendants, dotted, has_splat, keyword, positional, string_value
from trainflash.knobs.scene import Scene, Target
from trainflash.knobs.splices import Splice

OPENS = ("open", "io.open", "gzip.open", "bz2.open", "lzma.open")  # give a handle
ARCHIVE = "numpy.load"  # gives an array, or a handle of several
LOADS = (
    ARCHIVE, "numpy.loadtxt", "numpy.genfromtxt", "torch.load", "pandas.read_csv", "pandas.read_parquet", "pandas.read_pickle",
    "pandas.read_json", "pandas.read_table", "joblib.load",
)  # fmt: skip
METHODS = {"open": False, "read_text": True, "read_bytes": True}  # of a path; whether they give what the file holds
PARSES = (
    "json.load", "json.loads", "pickle.load", "pickle.loads", "yaml.safe_load", "yaml.full_load", "yaml.load", "tomllib.load",
    "tomllib.loads", "csv.reader", "csv.DictReader", "list", "dict", "tuple", "set", "sorted", "numpy.array", "numpy.asarray",
    "numpy.frombuffer", "torch.tensor", "torch.as_tensor", "torch.from_numpy", "zlib.decompress", "gzip.decompress", "enumerate", "zip",
    *LOADS,
)  # fmt: skip
OF_TEXT = ("read", "readlines", "split", "splitlines", "strip", "decode", "rstrip", "astype", "copy", "to_dict", "tolist")
LAZY = (*OPENS, "csv.reader", "csv.DictReader", "enumerate", "zip", "map", "filter")
DEEPEST = 3  # own: calls between a reading and whoever says which file
KEPT = 8  # files; a program that reads many in turn gains nothing


@dataclass(frozen=True)
class _Reading:
    """One file read: `parts` are the expressions that depend on the file alone, `block` the `with` that opens it."""

    file: PythonFile
    call: cst.Call
    path: cst.BaseExpression
    parts: tuple[cst.BaseExpression, ...]
    block: cst.With | None = None


def kept_contents(edit: KeptContents, scene: Scene) -> tuple[Target, ...]:
    """The reading at the finding's line, or else the only one of its function and what that calls. Raises `UsageError` without one."""
    found = near(scene.project, *scene.source("reads"), lambda file: _readings(scene.project, file), "file is read whole again")
    file, here = found.file, found.file.location(found.call)
    if not _one_file(scene.project, file, found.call, found.path):
        raise refuse(f"{here}: `{file.text(found.path)}` may be another file in each call")
    _only_read(scene.project, found)
    for part in found.parts:
        at = changes.result_changed(scene.project, [(file, part)])
        if at is not None:
            raise refuse(f"{here}: what `{short(file.text(part))}` gives is changed at {at}")
    splices = kept_comments(file, _spliced(found))
    shown = f"{', '.join(f'`{short(file.text(part))}`' for part in found.parts)} at {here}"
    return (Target(here, None, lambda value: tuple(splices), shown, "read once"),)


# What is read ---------------------------------------------------------------------------------------------------------------------


def _readings(project: Project, file: PythonFile) -> Iterator[tuple[cst.Call, _Reading]]:
    for call in file.calls:
        path, function = _path_of(file, call), file.function_around(call)
        if path is None or function is None or purity.cached_already(file, function):
            continue
        item = file.parent(call)
        if isinstance(item, cst.WithItem):
            block = file.parent(item)
            parts = _of_block(project, file, item, block) if isinstance(block, cst.With) else ()
            if parts:
                yield call, _Reading(file, call, path, parts, block)  # type: ignore[arg-type]
        elif (whole := _whole(project, file, call, "")) is not None:
            yield call, _Reading(file, call, path, (whole,))


def _path_of(file: PythonFile, call: cst.Call) -> cst.BaseExpression | None:
    """The path of what a call opens for reading, or reads; None where it does neither, or gets more than is understood."""
    full = file.full_name(call.func) or ""
    first = positional(call, 0)
    if any(arg is not first and not _fixed(file, arg.value) for arg in call.args) or keyword(call, "mmap_mode") is not None:
        return None
    if full in OPENS or full in LOADS:
        if first is None or has_splat(call, "*") or has_splat(call, "**"):
            return None
        path = first.value
        inner = isinstance(path, cst.Call) and _path_of(file, path) is not None  # the file is that of what is inside
        return None if inner or (full in OPENS and not _for_reading(call, 1)) else path
    if isinstance(call.func, cst.Attribute) and call.func.attr.value in METHODS and full.split(".")[0] not in file.imported:
        return call.func.value if call.func.attr.value != "open" or _for_reading(call, 0) else None
    return None


def _for_reading(call: cst.Call, index: int) -> bool:
    given = keyword(call, "mode") or positional(call, index)
    return given is None or string_value(given.value) in ("r", "rb", "rt")


def _of_block(project: Project, file: PythonFile, item: cst.WithItem, block: cst.With) -> tuple[cst.BaseExpression, ...]:
    """The readings of `with open(path) as f:`, where the block does nothing else with `f`."""
    named = item.asname.name if item.asname is not None else None
    function = file.function_around(block)
    if len(block.items) != 1 or not isinstance(named, cst.Name) or function is None or block.asynchronous is not None:
        return ()
    uses = [each for each in descendants(function.body, cst.Name) if each.value == named.value and each is not named]  # type: ignore[attr-defined]
    parts = [_whole(project, file, use, named.value) if file.inside(use, block.body) else None for use in uses]  # type: ignore[arg-type]
    return tuple(dict.fromkeys(parts)) if parts and None not in parts else ()  # type: ignore[arg-type]


def _whole(project: Project, file: PythonFile, node: cst.BaseExpression, handle: str) -> cst.BaseExpression | None:
    """The largest expression around `node` that the file alone decides, and that gives all of it at once; None where there is none."""
    best, at = None, node
    while at is not None:
        if _gives_all(file, at, handle):
            best = at
        at = _around(project, file, at, handle)  # type: ignore[assignment]
    return best


def _around(project: Project, file: PythonFile, node: cst.BaseExpression, handle: str) -> cst.BaseExpression | None:
    """The expression next around `node`, where it only works on what `node` gives."""
    up = file.parent(node)
    if isinstance(up, cst.Arg) and isinstance(call := file.parent(up), cst.Call):
        others = [arg for arg in call.args if arg is not up]
        known = file.full_name(call.func) in PARSES and all(_fixed(file, arg.value) for arg in others)
        return call if known and not up.star else None
    if isinstance(up, cst.Attribute) and up.value is node:
        call = file.parent(up)  # type: ignore[assignment]
        called = isinstance(call, cst.Call) and call.func is up and up.attr.value in OF_TEXT
        return call if called and all(_fixed(file, arg.value) for arg in call.args) else None
    if isinstance(up, cst.Subscript) and up.value is node and len(up.slice) == 1 and isinstance(up.slice[0].slice, cst.Index):
        key = up.slice[0].slice.value
        needed = not _gives_all(file, node, handle)
        return up if literal(key) is not UNKNOWN or (needed and _chosen(project, file, key)) else None
    if isinstance(up, cst.CompFor) and up.iter is node:
        around = next(each for each in file.ancestors(up) if isinstance(each, cst.BaseComp))
        return around if _own_names(file, around, handle) else None
    return None


def _chosen(project: Project, file: PythonFile, key: cst.BaseExpression) -> bool:
    """Whether `key` is a parameter for which every caller gives a literal, such as the name of an array."""
    function = file.function_around(key)
    param = _param(function, key)
    sites = callers.sites(project, file, function) if function is not None and param is not None else []
    given = [argument_node(where, site, param.name.value, index_of(file, function, param)) for where, site in sites]  # type: ignore[arg-type,union-attr]
    return bool(given) and all(each is not None and literal(each) is not UNKNOWN for each in given)


def _param(function: cst.FunctionDef | None, node: cst.BaseExpression) -> cst.Param | None:
    """The parameter that `node` names, where the function gives it no other value."""
    if function is None or not isinstance(node, cst.Name) or given_to(function, node.value):
        return None
    return next((each for each in function.params.params if each.name.value == node.value), None)


def _own_names(file: PythonFile, comp: cst.CSTNode, handle: str) -> bool:
    """Whether a comprehension calls nothing but what parses, and reads no name but its own."""
    bound = {each.value for clause in clauses(comp) for each in descendants(clause.target, cst.Name)}  # type: ignore[attr-defined]
    names = {each.value for each in descendants(comp, cst.Name) if is_name(file, each)} - bound - {handle}  # type: ignore[attr-defined,arg-type]
    plain = ("int", "float", "str", "len", "open", *PARSES)
    return all((file.imported.get(name) or name).split(".")[0] in {each.split(".")[0] for each in plain} for name in names)


def _fixed(file: PythonFile, node: cst.BaseExpression) -> bool:
    """Whether an argument is a literal, or a name of an imported module such as `np.float32`."""
    name = dotted(node)
    if isinstance(node, (cst.Tuple, cst.List)):
        return all(_fixed(file, each.value) for each in node.elements)
    return literal(node) is not UNKNOWN or (name is not None and name.split(".")[0] in file.imported) or name in ("int", "float", "str")


def _gives_all(file: PythonFile, node: cst.BaseExpression, handle: str) -> bool:
    """Whether `node` is what the file holds, and no handle or iterator that gives it later."""
    if isinstance(node, cst.Call):
        full = file.full_name(node.func) or ""
        if full in LAZY or (isinstance(node.func, cst.Attribute) and METHODS.get(node.func.attr.value) is False):
            return False
        return full != ARCHIVE or not _keyed(file, node)
    if isinstance(node, cst.Subscript):
        return True
    return isinstance(node, (cst.ListComp, cst.SetComp, cst.DictComp))


def _keyed(file: PythonFile, call: cst.Call) -> bool:
    """Whether `np.load(path)` gives an archive: it is asked for an array by name, or given a name of its own."""
    up = file.parent(call)
    if isinstance(up, cst.Subscript) and up.value is call and isinstance(up.slice[0].slice, cst.Index):
        key = up.slice[0].slice.value
        return string_value(key) is not None or (literal(key) is UNKNOWN and _npz(file, call))
    return _npz(file, call) or (isinstance(up, cst.Attribute) and up.value is call and up.attr.value in ("files", "close", "keys"))


def _npz(file: PythonFile, call: cst.Call) -> bool:
    return not any(".npy" in file.text(each) for each in (call, *_given(file, call, call.args[0].value)))


# Which file -----------------------------------------------------------------------------------------------------------------------


def _given(file: PythonFile, call: cst.CSTNode, node: cst.BaseExpression) -> list[cst.BaseExpression]:
    """What the function gives to a name, or the class to an attribute of `self`."""
    name, function = dotted(node), file.function_around(call)
    owner = file.class_of(function) if function is not None and (name or "").startswith("self.") else function
    return given_to(owner, name) if name is not None and owner is not None else []


def _one_file(project: Project, file: PythonFile, call: cst.Call, node: cst.BaseExpression, depth: int = 0) -> bool:
    """Whether `node` names the same file in each call: parts that stay the same, put together, also by whoever calls."""
    if depth > DEEPEST:
        return False
    if constant(project, file, call, node):
        return True
    if isinstance(node, cst.BinaryOperation):
        return all(_one_file(project, file, call, side, depth) for side in (node.left, node.right))
    if isinstance(node, cst.FormattedString):
        held = [each.expression for each in node.parts if isinstance(each, cst.FormattedStringExpression)]
        return all(_one_file(project, file, call, each, depth) for each in held)
    if isinstance(node, cst.Call):
        method = isinstance(node.func, cst.Attribute) and node.func.attr.value in OF_PATHS
        if not method and file.full_name(node.func) not in PATHS:
            return False
        held = [arg.value for arg in node.args] + ([node.func.value] if method and file.full_name(node.func) not in PATHS else [])  # type: ignore[attr-defined]
        return all(_one_file(project, file, call, each, depth) for each in held)
    function = file.function_around(call)
    if not isinstance(node, cst.Name) or function is None:
        return False
    values = given_to(function, node.value)
    if values:
        return len(values) == 1 and _one_file(project, file, call, values[0], depth + 1)
    param = _param(function, node)
    sites = callers.sites(project, file, function) if param is not None else []
    passed = [(where, site, argument_node(where, site, node.value, index_of(file, function, param))) for where, site in sites]  # type: ignore[arg-type]
    return bool(passed) and all(each is not None and _one_file(project, where, site, each, depth + 1) for where, site, each in passed)


def _only_read(project: Project, found: _Reading) -> None:
    """Raises `UsageError` where the function writes the file, too, or goes on reading between two steps of a generator."""
    file, function = found.file, found.file.function_around(found.call)
    assert function is not None
    here = file.location(found.call)
    if any(True for _ in descendants(function.body, (cst.Yield, cst.Await))):
        raise refuse(f"{here}: other work may go on while the file is read")
    path = "".join(file.text(found.path).split())
    for other in file.calls:
        first = positional(other, 0)
        writes = first is not None and "".join(file.text(first.value).split()) == path and not _for_reading(other, 1)
        if writes and file.function_around(other) is function:
            raise refuse(f"{file.location(other)}: the function writes the same file")


# The edit -------------------------------------------------------------------------------------------------------------------------


def _spliced(found: _Reading) -> list[Splice]:
    file = found.file
    name, made = _makers(found)
    given = ", ".join((file.text(found.path), *_keys(found)))
    texts = [f"{name}({given})" + (f"[{number}]" if len(found.parts) > 1 else "") for number in range(len(found.parts))]
    if found.block is None:
        return [*made, *(Splice(file.path, *file.span(part), text) for part, text in zip(found.parts, texts, strict=True))]
    return [*made, _unblocked(found, texts)]


def _unblocked(found: _Reading, texts: list[str]) -> Splice:
    """The statements of the block in its place, with the readings replaced."""
    file, block = found.file, found.block
    assert block is not None and isinstance(block.body, cst.IndentedBlock | cst.SimpleStatementSuite)
    strings = descendants(block.body, (cst.SimpleString, cst.FormattedString))
    if any("\n" in file.text(each) for each in strings):
        raise refuse(f"{file.location(block)}: a text of several lines would be moved")
    first, last = block.body.body[0], block.body.body[-1]
    start, end = file.span(first)[0], file.span(last)[1]
    raw, shift = file.raw[start:end], start
    for part, text in sorted(zip(found.parts, texts, strict=True), key=lambda pair: -file.span(pair[0])[0]):
        a, b = file.span(part)
        raw = raw[: a - shift] + text.encode() + raw[b - shift :]
    inner, outer = file.indent(first), file.indent(block)
    moved = raw.decode("utf-8").replace(f"\n{inner}", f"\n{outer}") if inner != outer else raw.decode("utf-8")
    return Splice(file.path, file.span(block)[0], end, moved)


def _makers(found: _Reading) -> tuple[str, tuple[Splice, ...]]:
    """The module's function that gives the contents, and the lines that define it and the cached one that it asks."""
    file = found.file
    cache, needed = imports.reach(file, "functools", "lru_cache")
    stat, more = imports.reach(file, "os", "stat")
    start = above_outermost(file, found.call)
    _known(found, start)
    names = {node.value for node in file.nodes if isinstance(node, cst.Name)}
    ends = ("", *(f"_{number}" for number in range(2, len(names) + 3)))
    end = next(end for end in ends if not {f"_kept_contents{end}", f"_contents{end}"} & names)
    path = next(word for word in ("path", *(f"path{end}" for end in ends[1:])) if not _reads(found, word))
    keys = _keys(found)
    given = ", ".join((path, *keys))
    indent = file.module.default_indent
    texts = [_with_path(file, part, found.path, path) for part in found.parts]
    reads = [f"{indent}return {', '.join(texts)}"]
    if found.block is not None:
        opening = file.raw[slice(*file.span(found.block))].decode("utf-8")
        head = opening[: file.span(found.block.items[0])[1] - file.span(found.block)[0]]
        at = file.span(found.path)[0] - file.span(found.block)[0], file.outer_span(found.path)[1] - file.span(found.block)[0]
        reads = [f"{indent}{head[: at[0]]}{path}{head[at[1] :]}:", f"{indent}{reads[0]}"]
    rows = (
        f"@{cache}(maxsize={KEPT})",
        f"def _kept_contents{end}({given}, number, changed, size):",
        *reads,
        "",
        "",
        f"def _contents{end}({given}):",
        f"{indent}found = {stat}({path})",
        f"{indent}return _kept_contents{end}({given}, found.st_ino, found.st_mtime_ns, found.st_size)",
    )
    text = blank_above(file, start) * file.newline + "".join(f"{row}{file.newline}" for row in rows) + 2 * file.newline
    return f"_contents{end}", (*needed, *more, Splice(file.path, start, start, text))


def _keys(found: _Reading) -> tuple[str, ...]:
    """Parameters of the function that say which part is meant."""
    indices = [
        each.slice.value for part in found.parts for each in descendants(part, cst.SubscriptElement) if isinstance(each.slice, cst.Index)
    ]  # type: ignore[attr-defined]
    function = found.file.function_around(found.call)
    return tuple(dict.fromkeys(each.value for each in indices if isinstance(each, cst.Name) and _param(function, each) is not None))


def _reads(found: _Reading, word: str) -> bool:
    names = [each for part in (*found.parts, found.call) for each in descendants(part, cst.Name) if not found.file.inside(each, found.path)]
    return any(each.value == word and is_name(found.file, each) for each in names)  # type: ignore[attr-defined,arg-type]


def _known(found: _Reading, start: int) -> None:
    """Raises `UsageError` where what reads would not mean the same above the function."""
    file = found.file
    for call in (found.call, *(each for part in found.parts for each in descendants(part, cst.Call))):
        root = (dotted(call.func) or "").split(".")[0]  # type: ignore[attr-defined]
        if file.full_name(call.func) in (*OPENS, *PARSES) and root:  # type: ignore[attr-defined]
            known_above(file, call.func, start)  # type: ignore[attr-defined]


def _with_path(file: PythonFile, part: cst.BaseExpression, path: cst.BaseExpression, word: str) -> str:
    """The text of `part` with the path, where it stands in it, as `word`."""
    if not file.inside(path, part):
        return file.text(part)
    start, (a, b) = file.span(part)[0], file.outer_span(path)
    raw = file.raw[slice(*file.span(part))]
    return (raw[: a - start] + word.encode() + raw[b - start :]).decode("utf-8")
