"""A file that every call reads whole, for one part of it: read once in each process, and again when it has changed.

`with open(path) as f: return json.load(f)[key]` becomes `return copy.deepcopy(_contents(path)[key])`. `_contents` looks at the file each
time and asks a cached function, whose keys are the path and the file's number, time and size. Only such readings are kept as are known to
give the same for the same file, and to give all of it at once. Who takes a part of it gets a copy, which may be changed.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from trainflash.knobs.edits import imports
from trainflash.knobs.edits.keeping.kept_calls import constant, known_above
from trainflash.knobs.edits.keeping.kept_handles import blank_above
from trainflash.knobs.edits.statements import above_outermost, kept_comments
from trainflash.knobs.edits.which_call import near
from trainflash.knobs.effects import purity
from trainflash.knobs.kinds import KeptContents
from trainflash.knobs.project import Project
from trainflash.knobs.reading import callers
from trainflash.knobs.reading.expressions import given_to, is_name, passed, refuse, short
from trainflash.knobs.reading.file_paths import OF_PATHS, PATHS, of_path
from trainflash.knobs.reading.python_source import PythonFile, descendants, dotted, positional
from trainflash.knobs.reading.whole_files import OPENS, PARSES, Reading, for_reading, readings, unassigned_parameter, values_given
from trainflash.knobs.scene import Scene, Target
from trainflash.knobs.splices import Splice

DEEPEST = 3  # own: calls between a reading and whoever says which file
KEPT = 8  # files; a program that reads many in turn gains nothing


def kept_contents(edit: KeptContents, scene: Scene) -> tuple[Target, ...]:
    """The reading at the finding's line, or else the only one of its function and what that calls. Raises `UsageError` without one."""
    found = near(scene.project, *scene.source("reads"), lambda file: _again(scene, file), "file is read whole again")
    file, here = found.file, found.file.location(found.call)
    if not _one_file(scene.project, file, found.call, found.path):
        raise refuse(f"{here}: `{file.text(found.path)}` may be another file in each call")
    _only_read(scene.project, found)
    _a_path(found)
    part, up = found.part, file.parent(found.part)
    if not (isinstance(up, cst.Subscript) and up.value is part) or isinstance(file.parent(up), (cst.AssignTarget, cst.AugAssign, cst.Del)):
        raise refuse(f"{here}: no part is taken of `{short(file.text(part))}` where it is read, and the whole may be changed")
    splices = kept_comments(file, _spliced(found))
    shown = f"`{short(file.text(part))}` at {here}"
    return (Target(here, None, lambda value: tuple(splices), shown, "read once"),)


def _again(scene: Scene, file: PythonFile) -> Iterator[tuple[cst.Call, Reading]]:
    """Readings of functions that keep no results."""
    for call, found in readings(scene.project, file):
        function = file.function_around(call)
        if function is not None and not purity.cached_already(file, function):
            yield call, found


# Which file -----------------------------------------------------------------------------------------------------------------------


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
    param = unassigned_parameter(function, node)
    sites = callers.sites(project, file, function) if param is not None else []
    given = [(where, site, passed(where, site, file, function, param)) for where, site in sites]  # type: ignore[arg-type]
    return bool(given) and all(each is not None and _one_file(project, where, site, each, depth + 1) for where, site, each in given)


def _only_read(project: Project, found: Reading) -> None:
    """Raises `UsageError` where the function writes the file, too, or goes on reading between two steps of a generator."""
    file, function = found.file, found.file.function_around(found.call)
    assert function is not None
    here = file.location(found.call)
    if any(True for _ in descendants(function.body, (cst.Yield, cst.Await))):
        raise refuse(f"{here}: other work may go on while the file is read")
    path = "".join(file.text(found.path).split())
    for other in file.calls:
        first = positional(other, 0)
        writes = first is not None and "".join(file.text(first.value).split()) == path and not for_reading(other, 1)
        if writes:
            raise refuse(f"{file.location(other)}: the program writes the same file")


# The edit -------------------------------------------------------------------------------------------------------------------------


def _a_path(found: Reading) -> None:
    """Raises `UsageError` where what is opened may be no plain file, or is not known to be named by a path."""
    file, path = found.file, found.path
    values = [path, *values_given(file, found.call, path)]
    values += given_to(file.module, path.value) if isinstance(path, cst.Name) else []
    method = isinstance(found.call.func, cst.Attribute) and found.call.func.value is path
    for value in values:
        text = file.text(value)
        calls = [each for each in descendants(value, cst.Call) if not of_path(file, each)]  # type: ignore[arg-type]
        if calls or "://" in text or any(f"{quote}/{part}" in text for quote in "\"'" for part in ("proc", "sys", "dev")):
            raise refuse(f"{file.location(found.call)}: `{short(text)}` may be no plain file of a path")
    if method and not any(
        isinstance(value, cst.BinaryOperation) or any(True for _ in descendants(value, cst.Call)) for value in values[1:]
    ):
        raise refuse(f"{file.location(found.call)}: `{file.text(path)}` is not known to be a path")


def _spliced(found: Reading) -> list[Splice]:
    """A copy of the part that is taken: who gets it may change it."""
    file, up = found.file, found.file.parent(found.part)
    assert isinstance(up, cst.Subscript)
    name, made = _makers(found)
    copied, more = imports.reach(file, "copy", "deepcopy")
    given = ", ".join((file.text(found.path), *_keys(found)))
    taken = file.raw[file.outer_span(found.part)[1] : file.span(up)[1]].decode("utf-8")
    text, span = f"{copied}({name}({given}){taken})", file.span(up)
    edit = Splice(file.path, *span, text) if found.block is None else _unblocked(found, text, span)
    return [*made, *more, edit]


def _unblocked(found: Reading, text: str, span: tuple[int, int]) -> Splice:
    """The statements of the block in its place, with `text` at `span`."""
    file, block = found.file, found.block
    assert block is not None
    strings = descendants(block.body, (cst.SimpleString, cst.FormattedString))
    if any("\n" in file.text(each) for each in strings):
        raise refuse(f"{file.location(block)}: a text of several lines would be moved")
    first, last = block.body.body[0], block.body.body[-1]
    start, end = file.span(first)[0], file.span(last)[1]
    raw = file.raw[start : span[0]] + text.encode() + file.raw[span[1] : end]
    inner, outer = file.indent(first), file.indent(block)
    return Splice(file.path, file.span(block)[0], end, raw.decode("utf-8").replace(f"\n{inner}", f"\n{outer}"))


def _makers(found: Reading) -> tuple[str, tuple[Splice, ...]]:
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
    reads = [f"{indent}return {_with_path(file, found.part, found.path, path)}"]
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


def _keys(found: Reading) -> tuple[str, ...]:
    """Parameters of the function that say which part is meant."""
    indices = [each.slice.value for each in descendants(found.part, cst.SubscriptElement) if isinstance(each.slice, cst.Index)]  # type: ignore[attr-defined]
    function = found.file.function_around(found.call)
    named = (each for each in indices if isinstance(each, cst.Name))
    return tuple(dict.fromkeys(each.value for each in named if unassigned_parameter(function, each) is not None))


def _reads(found: Reading, word: str) -> bool:
    names = [each for part in (found.part, found.call) for each in descendants(part, cst.Name) if not found.file.inside(each, found.path)]
    return any(each.value == word and is_name(found.file, each) for each in names)  # type: ignore[attr-defined,arg-type]


def _known(found: Reading, start: int) -> None:
    """Raises `UsageError` where what reads would not mean the same above the function."""
    file = found.file
    for call in (found.call, *descendants(found.part, cst.Call)):
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
