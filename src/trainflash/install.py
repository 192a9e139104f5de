"""Rules and skills for coding assistants: into a project, and out again without a trace.

A file that the owner may have (`CLAUDE.md`, `AGENTS.md`, …) gets one marked block; everything around it stays byte for byte.
Files that are ours alone are written whole. `.trainflash-install.json` remembers what was written, so that a later version
replaces only what nobody edited, and `uninstall` gives back what stood there. Every path is checked before anything is written.

All instruction files come from one source, `templates/instructions/trainflash.md`; `python -m trainflash.install --render DIR` writes those
that this repository carries.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from trainflash import resources
from trainflash.errors import TrainFlashError, UsageError

RECORD = ".trainflash-install.json"
SCHEMA = "trainflash-install.v1"
BEGIN, END = b"<!-- trainflash:begin -->", b"<!-- trainflash:end -->"
SETTINGS = ".claude/settings.json"
ASK_FIRST = ("Bash(trainflash writeback:*)", "Bash(python -m trainflash writeback:*)")


@dataclass(frozen=True)
class Agent:
    """Where one assistant looks. `header` precedes the rules in a file that is ours alone; without one the file gets a marked block."""

    rules: str
    skills: str | None = None
    header: str = ""
    settings: str | None = None


AGENTS = {
    "claude": Agent("CLAUDE.md", skills=".claude/skills", settings=SETTINGS),
    "cursor": Agent(
        ".cursor/rules/trainflash.mdc",
        header="---\ndescription: Make this project's PyTorch training faster with trainflash, and prove it\nalwaysApply: true\n---\n\n",
    ),
    "copilot": Agent(".github/copilot-instructions.md", skills=".github/skills"),
    "codex": Agent("AGENTS.md", skills=".agents/skills"),
    "gemini": Agent("GEMINI.md"),
}
LEGACY_CURSOR = ".cursorrules"
CARRIED = ("claude", "codex", "cursor", "copilot")  # rendered into this repository, with LEGACY_CURSOR


@dataclass(frozen=True)
class Change:
    """What happened, or would happen, to one file: `action` is create, update, remove, restore or keep (edited since: left alone)."""

    action: str
    path: str


@dataclass(frozen=True)
class Report:
    """All changes of one `install` or `uninstall`, in order; empty when everything was in place already."""

    changes: tuple[Change, ...]


@dataclass
class _Record:
    """`.trainflash-install.json`: did a block's file exist before; SHA-256 of our files; settings' text before, and SHA-256 after."""

    blocks: dict[str, bool] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)
    settings: dict[str, dict[str, Any]] = field(default_factory=dict)
    folders: list[str] = field(default_factory=list)


def render(agent: str) -> str:
    """The rule file of `agent` as it stands in a project that had none. Raises `UsageError` for an unknown agent."""
    known = _agent(agent)
    body = _body()
    return known.header + body if known.header else _block(body).decode()


def install(project: Path, agents: tuple[str, ...], *, dry_run: bool = False) -> Report:
    """Write rules, skills and (for Claude Code) a permission to ask before write-back into `project`; running it again changes nothing.

    Raises `UsageError` for a missing project, an unknown agent, a damaged block or record, or a path that leads out of the project.
    """
    root = _root(project)
    record = _read_record(root)
    changes: list[Change] = []
    writes: dict[Path, bytes] = {}
    for name in agents:
        agent = _agent(name)
        if agent.header:
            _plan_file(root, agent.rules, render(name).encode(), record, writes, changes)
        else:
            _plan_block(root, agent.rules, record, writes, changes)
        if agent.skills:
            for relative, content in _skill_files():
                _plan_file(root, f"{agent.skills}/{relative}", content, record, writes, changes)
        if agent.settings:
            _plan_settings(root, agent.settings, record, writes, changes)
    if not dry_run and writes:
        for path, content in writes.items():
            _make_folder(root, path.parent, record)
            _write(path, content)
        _write(root / RECORD, (json.dumps({"schema": SCHEMA, **vars(record)}, indent=1, sort_keys=True) + "\n").encode())
    return Report(tuple(changes))


def uninstall(project: Path, *, dry_run: bool = False) -> Report:
    """Take out what `install` wrote. Files edited since are kept and reported. Raises `UsageError` as `install` does."""
    root = _root(project)
    record = _read_record(root)
    changes: list[Change] = []
    for relative in sorted({agent.rules for agent in AGENTS.values() if not agent.header} | set(record.blocks)):
        _remove_block(root, relative, record, changes, dry_run)
    for relative, settings in record.settings.items():
        _restore_settings(root, relative, settings, changes, dry_run)
    for relative, digest in record.files.items():
        path = _inside(root, relative)
        if path.is_file():
            ours = _digest(path.read_bytes()) == digest
            changes.append(Change("remove" if ours else "keep", relative))
            if ours and not dry_run:
                path.unlink()
    if not dry_run:
        (root / RECORD).unlink(missing_ok=True)
        for relative in sorted(record.folders, key=len, reverse=True):
            folder = _inside(root, relative, folder=True)
            if folder.is_dir() and not any(folder.iterdir()):
                folder.rmdir()
    return Report(tuple(sorted(changes, key=lambda change: change.path)))


def _plan_block(root: Path, relative: str, record: _Record, writes: dict[Path, bytes], changes: list[Change]) -> None:
    path = _inside(root, relative)
    old = writes.get(path, path.read_bytes() if path.exists() else b"")
    before, block, after = _split(old, relative)
    newline = b"\r\n" if b"\r\n" in old else b"\n"
    wanted = _block(_body()).replace(b"\n", newline)
    if block is None:
        record.blocks[relative] = path.exists()
        new = old + newline + wanted if old else wanted
    else:
        new = before + wanted + after
    if new != old:
        writes[path] = new
        changes.append(Change("update" if path.exists() else "create", relative))


def _plan_file(root: Path, relative: str, content: bytes, record: _Record, writes: dict[Path, bytes], changes: list[Change]) -> None:
    path = _inside(root, relative)
    if path.exists():
        there = path.read_bytes()
        if there == content:
            return
        if record.files.get(relative) != _digest(there):
            changes.append(Change("keep", relative))
            return
    record.files[relative] = _digest(content)
    writes[path] = content
    changes.append(Change("update" if path.exists() else "create", relative))


def _plan_settings(root: Path, relative: str, record: _Record, writes: dict[Path, bytes], changes: list[Change]) -> None:
    path = _inside(root, relative)
    there = path.read_bytes() if path.exists() else None
    settings = _json_object(there or b"{}")
    permissions = settings.setdefault("permissions", {}) if settings is not None else None
    asks = permissions.setdefault("ask", []) if isinstance(permissions, dict) else None
    if not isinstance(asks, list):
        changes.append(Change("keep", relative))
        return
    missing = [rule for rule in ASK_FIRST if rule not in asks]
    if not missing:
        return
    asks.extend(missing)
    content = (json.dumps(settings, indent=2, ensure_ascii=False) + "\n").encode()
    before = None if there is None else there.decode()
    record.settings.setdefault(relative, {"before": before})["after"] = _digest(content)
    writes[path] = content
    changes.append(Change("update" if path.exists() else "create", relative))


def _remove_block(root: Path, relative: str, record: _Record, changes: list[Change], dry_run: bool) -> None:
    path = _inside(root, relative)
    if not path.is_file():
        return
    before, block, after = _split(path.read_bytes(), relative)
    if block is None:
        return
    if before:  # the one line end that `install` put between the owner's text and the block
        before = before[:-2] if before.endswith(b"\r\n") else before[:-1]
    left = before + after
    remove = not left and not record.blocks.get(relative, False)
    changes.append(Change("remove" if remove else "restore", relative))
    if dry_run:
        return
    if remove:
        path.unlink()
    else:
        _write(path, left)


def _restore_settings(root: Path, relative: str, settings: dict[str, Any], changes: list[Change], dry_run: bool) -> None:
    path = _inside(root, relative)
    if not path.is_file():
        return
    before = settings.get("before")
    if _digest(path.read_bytes()) == settings.get("after"):
        changes.append(Change("remove" if before is None else "restore", relative))
        if not dry_run:
            path.unlink() if before is None else _write(path, str(before).encode())
        return
    edited = _json_object(path.read_bytes())
    permissions = edited.get("permissions") if edited else None
    asks = permissions.get("ask") if isinstance(permissions, dict) else None
    ours = isinstance(asks, list) and any(rule in ASK_FIRST for rule in asks)
    changes.append(Change("update" if ours else "keep", relative))
    if ours and not dry_run:
        asks[:] = [rule for rule in asks if rule not in ASK_FIRST]
        _write(path, (json.dumps(edited, indent=2, ensure_ascii=False) + "\n").encode())


def _split(content: bytes, relative: str) -> tuple[bytes, bytes | None, bytes]:
    """Content before, in and after our block; the block is None where there is none."""
    begins, ends = content.count(BEGIN), content.count(END)
    if begins == ends == 0:
        return content, None, b""
    start, stop = content.find(BEGIN), content.find(END)
    if (begins, ends) != (1, 1) or stop < start:
        mend = f"remove what stands from {BEGIN.decode()} on, then try again"
        raise UsageError(f"{relative}: the marks of trainflash's block are damaged", mend)
    stop += len(END)
    stop += 2 if content[stop : stop + 2] == b"\r\n" else int(content[stop : stop + 1] == b"\n")
    return content[:start], content[start:stop], content[stop:]


def _body() -> str:
    return (resources.folder("templates") / "instructions" / "trainflash.md").read_text(encoding="utf-8")


def _block(body: str) -> bytes:
    return BEGIN + b"\n" + body.encode() + END + b"\n"


def _skill_files() -> list[tuple[str, bytes]]:
    folder = resources.folder("skills")
    paths = sorted(path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return [(path.relative_to(folder).as_posix(), path.read_bytes()) for path in paths]


def _agent(name: str) -> Agent:
    if name not in AGENTS:
        raise UsageError(f"no assistant is called {name!r}", f"known: {', '.join(AGENTS)}")
    return AGENTS[name]


def _root(project: Path) -> Path:
    if not project.is_dir():
        raise UsageError(f"{project} is not a folder", "name the project that the rules are for")
    return project.resolve()


def _inside(root: Path, relative: str, *, folder: bool = False) -> Path:
    """The file (or folder) that `relative` leads to, links followed. Raises `UsageError` when that is outside of the project."""
    path = (root / PurePosixPath(relative)).resolve()
    if path == root or not path.is_relative_to(root):
        raise UsageError(f"{relative} leads out of the project, to {path}", "make it an ordinary file, or leave that assistant out")
    if path.is_dir() and not folder:
        raise UsageError(f"{relative} is a folder, where a file is expected", "rename it, or leave that assistant out")
    return path


def _read_record(root: Path) -> _Record:
    path = root / RECORD
    if not path.exists():
        return _Record()
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        if document.pop("schema") != SCHEMA:
            raise ValueError("another version")
        record = _Record(**document)
        if not all(isinstance(part, dict) for part in (record.blocks, record.files, record.settings)) or not isinstance(
            record.folders, list
        ):
            raise ValueError("not of the expected form")
        return record
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as bad:
        raise UsageError(f"{RECORD} cannot be read: {bad}", "remove it; files that it listed must then be removed by hand") from None


def _json_object(text: bytes) -> dict[str, Any] | None:
    try:
        found = json.loads(text.decode("utf-8"))
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def _make_folder(root: Path, folder: Path, record: _Record) -> None:
    missing = [path for path in (folder, *folder.parents) if path.is_relative_to(root) and not path.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as bad:
        raise UsageError(f"{folder} cannot be made: {bad.strerror}", "a file may stand in its way, or permissions may be missing") from None
    record.folders = sorted({*record.folders, *(path.relative_to(root).as_posix() for path in missing)})


def _write(path: Path, content: bytes) -> None:
    """Replace `path` at once, so that an interruption leaves the old file or the new one."""
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=".trainflash-")
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        if path.exists():
            shutil.copymode(path, name)
        else:
            os.chmod(name, 0o644)
        os.replace(name, path)
    except OSError as bad:
        raise UsageError(f"{path} cannot be written: {bad.strerror}", "check the folder's permissions and the free space") from None


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def rendered() -> dict[str, str]:
    """Relative path → text of every instruction file that this repository carries."""
    return {**{AGENTS[name].rules: render(name) for name in CARRIED}, LEGACY_CURSOR: render("codex")}


def main(argv: list[str] | None = None) -> int:
    """`python -m trainflash.install --render DIR`: write the carried instruction files below DIR."""
    parser = argparse.ArgumentParser(prog="python -m trainflash.install", description="Render the instruction files from their one source.")
    parser.add_argument("--render", type=Path, required=True, metavar="DIR")
    target = parser.parse_args(argv).render
    try:
        root = _root(target)
        for relative, text in rendered().items():
            (root / relative).parent.mkdir(parents=True, exist_ok=True)
            _write(root / relative, text.encode())
            print(relative)
    except TrainFlashError as problem:
        print(f"trainflash: {problem.message}\n  → {problem.mend}", file=sys.stderr)
        return problem.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
