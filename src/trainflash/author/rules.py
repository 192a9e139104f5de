"""Whether what an author left is an answer: a small change of the project's own sources and settings, and nothing else."""

from __future__ import annotations

import ast
import json
import sys
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path, PurePosixPath

from trainflash.author import watching
from trainflash.errors import UsageError
from trainflash.schema import load_yaml_documents
from trainflash.view import Change

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

MOST_FILES = 12  # own: what one person reviews at a sitting; the expert's changes of `bench/real` have 1 to 4
MOST_LINES = 600  # added and removed together
SAID = (
    f"an edit of at most {MOST_FILES} of the project's own source and settings files, {MOST_LINES} lines in all, that can be parsed; "
    "no test, data, packaging or ignored file, nothing taken away, no new dependency, and nothing that reads the clock or the "
    "environment, starts a program or looks at who runs it"
)
SOURCES = frozenset({".py", ".pyx", ".pxd", ".c", ".cc", ".cpp", ".cu", ".cuh", ".h", ".hpp", ".sh"})
SETTINGS = frozenset({".yaml", ".yml", ".json", ".toml", ".ini", ".cfg", ".gin", ".jsonnet"})
_TESTS = frozenset({"test", "tests", "testing"})
_DATA = frozenset({"data", "dataset", "datasets"})
_OF_THE_PROJECT = frozenset({"pyproject.toml", "setup.py", "setup.cfg", "poetry.toml", "package.json"})
_RUN_UNASKED = frozenset({"sitecustomize.py", "usercustomize.py", "conftest.py"})
_HELD = frozenset({"torch", "numpy"})  # what every such program has


def without_litter(changes: Iterable[Change]) -> tuple[Change, ...]:
    """`changes` without what tools leave behind: byte code, and new files and folders with a dot at the top of the project."""
    return tuple(each for each in changes if not (each.before is None and not each.odd and _litter(each.path)))


def _litter(path: str) -> bool:
    parts = PurePosixPath(path).parts
    return "__pycache__" in parts or path.endswith((".pyc", ".pyo")) or (parts[0].startswith(".") and parts[0] != "..")


def why_not(changes: Sequence[Change], ran: Collection[str], project: Path) -> str:
    """Why `changes` are no answer, one line; "": they are one. Paths of `changes` are relative to the project.

    `ran` are files that the brief is about, whatever they are called; `project` is the project's folder as it was before.
    """
    if not changes:
        return "nothing was changed"
    for change in changes:
        if refused := _of_one(change, ran):
            return refused
    if len(changes) > MOST_FILES:
        return f"edits {len(changes)} files; a change that somebody reviews has at most {MOST_FILES}"
    before = {change.path: _text(change.before) for change in changes if change.path.endswith(".py")}
    after = {change.path: _text(change.after) for change in changes if change.path.endswith(".py")}
    return watching.begins_to(before, after) or _new_dependency(before, after, project)


def too_long(diff: str) -> str:
    """Why a diff is more than somebody reviews; "": it is not."""
    lines = sum(line[:1] in {"+", "-"} and not line.startswith(("+++ ", "--- ")) for line in diff.splitlines())
    return f"changes {lines} lines; a change that somebody reviews has at most {MOST_LINES}" if lines > MOST_LINES else ""


def _of_one(change: Change, ran: Collection[str]) -> str:
    inside = PurePosixPath(change.path)
    name, folders = inside.name, inside.parts[:-1]
    if inside.parts[0] == "..":
        return f"edits {change.path}, which is outside of the project"
    if change.odd == "data":
        return f"edits {inside}, which git ignores: data, outputs and what is installed stay as they are"
    if change.odd:
        return f"makes {inside} what cannot be reviewed: {_ODD[change.odd]}"
    if change.after is None:
        return f"takes {inside} away"
    if "trainflash" in str(inside).lower() or name in {"BRIEF.md", "brief.json"}:
        return f"edits {inside}, which belongs to TrainFlash"
    if str(inside) not in ran and (_TESTS & set(folders) or name.startswith("test_") or name.endswith("_test.py") or name == "conftest.py"):
        return f"edits {inside}, which is a test"
    if name in _OF_THE_PROJECT or name in _RUN_UNASKED or name.startswith("requirements"):
        return f"edits {inside}, which is no part of the training"
    if inside.suffix not in SOURCES | SETTINGS or (inside.suffix not in SOURCES and _DATA & set(folders)):
        return f"edits {inside}, which is neither source nor settings"
    if b"\0" in change.after:
        return f"makes {inside} a binary file"
    return _unparsable(str(inside), change)


_ODD = {"link": "a link", "special": "no plain file", "large": "a file of more than 4 MB"}


def _unparsable(inside: str, change: Change) -> str:
    try:
        text = (change.after or b"").decode("utf-8")
    except UnicodeDecodeError as bad:
        return f"{inside}: cannot be read: no UTF-8 at byte {bad.start}"
    try:
        _parse(inside, text)
    except (SyntaxError, ValueError, UsageError, RecursionError) as bad:
        if change.before is not None and _was_unparsable(inside, change.before):
            return ""
        line = getattr(bad, "lineno", None)
        return f"{inside}{f':{line}' if line else ''}: cannot be parsed: {getattr(bad, 'msg', None) or getattr(bad, 'message', bad)}"
    return ""


def _was_unparsable(inside: str, before: bytes) -> bool:
    try:
        _parse(inside, before.decode("utf-8", "replace"))
    except (SyntaxError, ValueError, UsageError, RecursionError):
        return True
    return False


def _parse(inside: str, text: str) -> None:
    suffix = PurePosixPath(inside).suffix
    if suffix == ".py":
        ast.parse(text)
    elif suffix == ".json":
        json.loads(text)
    elif suffix in {".yaml", ".yml"}:
        load_yaml_documents(text, inside)
    elif suffix == ".toml":
        tomllib.loads(text)


def _new_dependency(before: dict[str, str], after: dict[str, str], project: Path) -> str:
    known = set().union(*(_imports(text) for text in before.values()), sys.stdlib_module_names, _HELD)
    wanted = {name: path for path, text in after.items() for name in _imports(text) if name not in known}
    wanted = {name: path for name, path in wanted.items() if not _own(name, after)}
    if not wanted:
        return ""
    for source in project.rglob("*.py"):
        if not {".git", "site-packages"} & set(source.parts):
            known |= _imports(source.read_text(encoding="utf-8", errors="replace")) | {source.stem, source.parent.name}
            known |= set(source.relative_to(project).parts[:-1])
    fresh = sorted(set(wanted) - known)
    return f"{wanted[fresh[0]]}: imports {fresh[0]}, which the project does not use: no new dependency" if fresh else ""


def _own(name: str, after: Iterable[str]) -> bool:
    return any(PurePosixPath(path).stem == name or name in PurePosixPath(path).parts[:-1] for path in after)


def _imports(text: str) -> set[str]:
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return set()
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module.partition(".")[0])
    return found


def _text(data: bytes | None) -> str:
    return (data or b"").decode("utf-8", "replace")
