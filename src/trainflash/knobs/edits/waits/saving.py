"""Checkpoints beside the training: a thread writes a copy of what the program would have written itself."""

from __future__ import annotations

from dataclasses import dataclass

import libcst as cst

from trainflash.knobs.edits import imports
from trainflash.knobs.edits.statements import taken_away
from trainflash.knobs.edits.waits import copied
from trainflash.knobs.edits.which_call import the_call
from trainflash.knobs.effects import changes
from trainflash.knobs.kinds import Background
from trainflash.knobs.reading.expressions import refuse, short
from trainflash.knobs.reading.python_source import PythonFile, descendants, dotted, sole, string_value
from trainflash.knobs.scene import Scene, Target
from trainflash.knobs.splices import Splice

READERS = {"load", "replace", "rename", "move", "copy", "copy2", "copyfile", "remove", "unlink", "getsize", "stat", "symlink", "barrier"}
READERS |= {"copytree", "make_archive", "glob", "iglob", "listdir", "scandir", "walk"}
MODULES = {"torch", "os", "shutil", "pathlib", "dist", "glob"}
PASSES_ON = {"add_file", "hardlink_to", "load_file", "log_artifact", "log_artifacts", "push_to_hub", "symlink_to", "unlink"}
PROGRAMS = ("subprocess.", "os.system", "os.popen", "os.spawn", "os.exec", "pty.", "sh.")
ASKS = {"git", "hostname", "nvidia-smi", "nproc", "uname"}  # programs that read no checkpoint
FILES = ("open", "BytesIO", "StringIO", "fdopen", "NamedTemporaryFile", "TemporaryFile", "ZipFile")
SHOWN = ("print", "info", "debug", "warning", "log", "mkdir", "makedirs")
MOVES = ("os.replace", "os.rename", "shutil.move")
POOL, WRITER = "checkpoint_writer", "write_checkpoint"


def background(edit: Background, scene: Scene) -> tuple[Target, ...]:
    """The call that writes. Raises `UsageError` where the program reads the file again, or passes it on, while it runs."""
    ran = scene.facts.get("checkpoint")
    file, call = the_call(edit, scene)  # type: ignore[arg-type]
    here = file.location(call)
    if not isinstance(file.parent(call), cst.Expr):
        raise refuse(f"{here}: what `{dotted(call.func)}` returns is used")
    if len(call.args) != 2 or any(arg.star or arg.keyword is not None for arg in call.args):
        raise refuse(f"{here}: `{file.text(call)}` is not called with an object and a path")
    if any(isinstance(up, cst.With) for up in file.ancestors(call)):
        raise refuse(f"{here}: the file belongs to a `with`, which would close it before the thread has written")
    if any(isinstance(up, cst.Try) for up in file.ancestors(call)):
        raise refuse(f"{here}: a `try` around it would no longer see a failed write")
    moved = _moved(file, call)
    path = call.args[1].value
    for value in (path,) if moved is None else (path, moved.target):
        _only_written(file, call, value, moved)
    copied.can_be(scene.project, file, call)
    _nobody_reads(scene, file, (call,) if moved is None else (call, moved.call))
    for name in (POOL, WRITER):
        if any(node.value == name for node in file.each(cst.Name)):
            raise refuse(f"{here}: the name {name} is taken")
    deepcopy, first = imports.reach(file, "copy", "deepcopy")
    pool, second = imports.reach(file, "concurrent.futures", "ThreadPoolExecutor")
    offset = imports.after_imports(file)
    what, where = file.text(call.args[0].value), file.text(path)
    statement, writes, away = f"{file.newline}{POOL} = {pool}(max_workers=1){file.newline}", file.text(call.func), ()
    if moved is not None:
        statement += _writer(file, call, moved)
        writes, where, away = WRITER, f"{where}, {file.text(moved.target)}", taken_away(file, moved.call)
    submitted = f"{POOL}.submit({writes}, {deepcopy}({what}), {where}).add_done_callback(lambda done: done.result())"
    splices = (*second, *first, Splice(file.path, offset, offset, statement), Splice(file.path, *file.span(call), submitted), *away)
    size = f", {ran.bytes} bytes each" if ran is not None and ran.bytes else ""
    return (Target(here, None, lambda value: splices, f"`{file.text(call.func)}` at {here}{size}", "written by a thread"),)


@dataclass(frozen=True)
class _Moved:
    """The call behind the one that writes, which gives the file its name; `how` is that of the writer's own function."""

    call: cst.Call
    target: cst.BaseExpression
    how: str


def _moved(file: PythonFile, call: cst.Call) -> _Moved | None:
    """`os.replace(path, target)`, `path.rename(target)` and the like in the statement behind `call`."""
    statement = file.statement(call)
    block = file.parent(statement) if statement is not None else None
    rows = list(getattr(block, "body", ()))
    behind = rows[rows.index(statement) + 1] if statement in rows[:-1] else None
    small = sole(behind)
    move = small.value if isinstance(small, cst.Expr) else None
    if not isinstance(move, cst.Call) or sole(statement) is None or any(arg.star or arg.keyword is not None for arg in move.args):
        return None
    path = file.text(call.args[1].value)
    if file.full_name(move.func) in MOVES and len(move.args) == 2 and file.text(move.args[0].value) == path:
        return _Moved(move, move.args[1].value, f"{file.text(move.func)}(path, target)")
    own = isinstance(move.func, cst.Attribute) and move.func.attr.value in ("replace", "rename") and len(move.args) == 1
    if own and file.outer_text(move.func.value) == path:  # type: ignore[union-attr]
        return _Moved(move, move.args[0].value, f"path.{move.func.attr.value}(target)")  # type: ignore[union-attr]
    return None


def _writer(file: PythonFile, call: cst.Call, moved: _Moved) -> str:
    """A function of the module that does both: a file that could not be written must not take the place of the one before."""
    indent = file.module.default_indent
    rows = (f"def {WRITER}(content, path, target):", f"{indent}{file.text(call.func)}(content, path)", f"{indent}{moved.how}")
    return 2 * file.newline + "".join(f"{row}{file.newline}" for row in rows)


def _only_written(file: PythonFile, call: cst.Call, path: cst.BaseExpression, moved: _Moved | None) -> None:
    """The path is no open file, and nothing behind the call in its function is handed it."""
    around = file.function_around(call) or file.module
    name = changes.root(path)
    for value in (path, *copied.values(around, name)):
        if isinstance(value, cst.Call) and (dotted(value.func) or "").split(".")[-1] in FILES:
            raise refuse(f"{file.location(call)}: `{file.text(path)}` is an open file or buffer, not a path")
    for other in descendants(around, cst.Call):
        if (
            other is call
            or (moved is not None and other is moved.call)
            or file.inside(call, other)
            or file.span(other)[0] < file.span(call)[0]
        ):
            continue
        tail = (dotted(other.func) or "").split(".")[-1]
        within = any(file.text(each) == file.text(path) for arg in other.args for each in descendants(arg.value, type(path)))
        called = isinstance(other.func, cst.Attribute) and name != "" and changes.root(other.func) == name
        if (within and tail not in SHOWN) or (called and not isinstance(path, cst.Attribute)):
            raise refuse(f"{file.location(other)}: `{file.text(other)}` may need the file before it is written")


def _nobody_reads(scene: Scene, file: PythonFile, writing: tuple[cst.Call, ...]) -> None:
    for other in scene.project.parsed():
        for call in other.calls:
            full = other.full_name(call.func) or ""
            tail = call.func.attr.value if isinstance(call.func, cst.Attribute) else full.split(".")[-1]
            if call not in writing and full == "torch.save" and not _apart(other, call, file, writing[0]):
                raise refuse(f"{other.location(call)}: `{short(other.text(call))}` may write the same file meanwhile")
            if call not in writing and tail in READERS and full.split(".")[0] in MODULES:
                raise refuse(f"{other.location(call)}: `{other.text(call.func)}` may need the file before it is written")
            passes = isinstance(call.func, cst.Attribute) and (tail in PASSES_ON or tail.startswith("upload"))
            if passes or full == "wandb.save" or (full.startswith(PROGRAMS) and not _only_asks(call)):
                raise refuse(f"{other.location(call)}: `{other.text(call)}` may need the file before it is written")


def _apart(file: PythonFile, call: cst.Call, where: PythonFile, writing: cst.Call) -> bool:
    """Whether two saves are known to write files of different names: each path ends in a text of its own."""
    ends = [_end(file, call), _end(where, writing)]
    return None not in ends and ends[0] != ends[1]


def _end(file: PythonFile, call: cst.Call) -> str | None:
    """The text that a path ends in: `"a/best.pt"`, the last argument of a join, the right side of `folder / "best.pt"`."""
    node = call.args[1].value if len(call.args) > 1 else None
    while isinstance(node, (cst.Call, cst.BinaryOperation)):
        node = node.right if isinstance(node, cst.BinaryOperation) else node.args[-1].value if node.args else None
    said = string_value(node) if node is not None else None
    return None if said is None else said.rpartition("/")[2]


def _only_asks(call: cst.Call) -> bool:
    """Whether the program that is started is known to read no checkpoint, or a name of the module is called that starts none."""
    if not call.args:
        return True
    command = call.args[0].value
    if isinstance(command, (cst.List, cst.Tuple)) and command.elements:
        command = command.elements[0].value
    words = (string_value(command) or "?").split()
    return bool(words) and words[0] in ASKS and not set("|;&") & set("".join(words))
