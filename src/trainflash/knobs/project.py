"""The owner's checkout as the knobs see it: which files take part in this command, and what the command itself says."""

from __future__ import annotations

import ast
import os
import re
from collections import deque
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath

import libcst as cst

from trainflash.errors import UsageError
from trainflash.knobs.reading import python_source, shell_lines
from trainflash.knobs.reading.python_source import PythonFile, string_value
from trainflash.knobs.reading.shell_lines import Word
from trainflash.schema import Command, Location

CONFIG_SUFFIXES = (".yaml", ".yml", ".json", ".toml", ".ini", ".cfg")
SKIPPED = {"__pycache__", "node_modules", "site-packages", "venv", "env", "build", "dist", "wandb", "mlruns"}
MOST_BYTES = 2_000_000  # own: a larger source or configuration file is data or generated
TRAINS = re.compile(rb"\bbackward\(|\bTrainer\(|\.train\(\)|\.fit\(|autograd\.grad\(")
FLAG = re.compile(rb"[\"'](--[\w-]+)[\"']")
DEFINED = re.compile(rb"\b(?:def|class)(?:\s|\\\r?\n)+(\w+)")
MOST_FILES = 5_000  # own: bounds the walk in a project that holds its data set


@dataclass(frozen=True, eq=False)
class Project:
    """`root` is the project's folder in the sandbox's checkout; paths in answers are relative to it, with forward slashes.

    `ran` are files that the recorded run of the command imported: no other takes part. Empty: not recorded. `loaded` are file and name of
    the classes that its loaders were made of; None: not all known.
    """

    root: Path
    command: Command
    ran: tuple[str, ...] = ()
    loaded: frozenset[tuple[str, str]] | None = None

    @cached_property
    def files(self) -> tuple[str, ...]:
        """All source and configuration files, links and environments left out."""
        found = []
        for folder, folders, names in os.walk(self.root):
            folders[:] = sorted(name for name in folders if not self._skipped(folder, name))
            for name in sorted(names):
                path = Path(folder) / name
                if path.suffix in (".py", *CONFIG_SUFFIXES) and not path.is_symlink() and path.stat().st_size <= MOST_BYTES:
                    found.append(path.relative_to(self.root).as_posix())
            if len(found) > MOST_FILES:
                break
        return tuple(found)

    @staticmethod
    def _skipped(folder: str, name: str) -> bool:
        return name.startswith(".") or name in SKIPPED or (Path(folder) / name / "pyvenv.cfg").exists()

    @cached_property
    def answers(self) -> dict[tuple[object, ...], object]:
        """What was found out about the program, by question; as of `remembered`."""
        return {}

    @cached_property
    def _cache(self) -> dict[str, object]:
        return {}

    def read(self, path: str) -> bytes:
        """The bytes of a file of the project. Raises `UsageError` when it is none, or lies outside."""
        if f"raw:{path}" not in self._cache:
            full = self.root / path
            if not full.is_file() or not full.resolve().is_relative_to(self.root.resolve()):
                raise UsageError(f"{path}: is not a file of this project", "only files of the project are edited")
            self._cache[f"raw:{path}"] = full.read_bytes()
        return self._cache[f"raw:{path}"]  # type: ignore[return-value]

    def linked(self, path: str) -> bool:
        """Whether a link stands for the file or a folder around it: git holds the link, and no patch goes through it."""
        return any((self.root / part).is_symlink() for part in (PurePosixPath(path), *PurePosixPath(path).parents[:-1]))

    def python(self, path: str) -> PythonFile:
        """The parsed file. Raises `UsageError` when it cannot be parsed."""
        if path not in self._cache:
            try:
                self._cache[path] = python_source.parse(path, self.read(path))
            except UsageError as bad:
                self._cache[path] = bad
        found = self._cache[path]
        if isinstance(found, UsageError):
            raise found
        return found  # type: ignore[return-value]

    def parsed(self, *words: str) -> Iterator[PythonFile]:
        """The program's Python files that contain all `words` and can be parsed; all of the project's where the entry is unknown."""
        known = ("parsed", words)
        if known not in self.answers:
            self.answers[known] = [path for path in self.program if all(word.encode() in self.read(path) for word in words)]
        for path in self.answers[known]:  # type: ignore[attr-defined]
            try:
                yield self.python(path)
            except UsageError:
                continue

    def has_module(self, module: str) -> bool:
        """Whether a file of the program can be the module of that dotted name."""
        return module.strip(".").replace(".", "/") in self._modules

    @cached_property
    def _modules(self) -> frozenset[str]:
        """By how many of its last parts each file of the program can be named, with slashes: `b` and `a/b` of `a/b.py`."""
        stems = [path.removesuffix(".py").split("/") for path in self.program]
        stems += [parts[:-1] for parts in stems if parts[-1] == "__init__"]
        return frozenset("/".join(parts[number:]) for parts in stems for number in range(len(parts)))

    @cached_property
    def folder(self) -> PurePosixPath:
        """Where the command runs, relative to the project."""
        return PurePosixPath(os.path.normpath(self.command.cwd))

    def from_cwd(self, name: str) -> str | None:
        """`name` as the command means it, as a path of the project; None when there is no such file inside."""
        path = Path(name) if os.path.isabs(name) else self.root / self.folder / name
        try:
            inside = Path(os.path.normpath(path)).relative_to(self.root)
        except ValueError:
            return None
        return inside.as_posix() if (self.root / inside).is_file() else None

    @cached_property
    def entry(self) -> str | None:
        """The Python file that the command starts; None when it cannot be told. Of several that a script starts, the one that trains."""
        named = [path for _, path in shell_lines.programs(self.command.argv, self.from_cwd)]
        if named:
            return named[0]
        started = [path for script in self.scripts for line in shell_lines.lines(self.read(script)) for path in self._started(line)]
        return next((path for path in started if self._trains(path)), started[0] if started else None)

    def _trains(self, entry: str) -> bool:
        return any(TRAINS.search(self.read(path)) for path in self._reached(entry))

    @cached_property
    def entry_word(self) -> int | None:
        """Which word of the command itself names the entry; None where a shell script does, or nobody."""
        return next((number for number, _ in shell_lines.programs(self.command.argv, self.from_cwd)), None)

    @cached_property
    def arguments(self) -> tuple[str, ...]:
        """Words of the command; those of a shell script that it names stand behind them."""
        return (*self.command.argv, *(word.plain for script in self.scripts for line in self.lines(script) for word in line))

    def lines(self, script: str) -> list[tuple[Word, ...]]:
        """Command lines of a script, without those that start other Python programs than the entry."""
        return [line for line in shell_lines.lines(self.read(script)) if not (started := self._started(line)) or self.entry in started]

    def _started(self, line: tuple[Word, ...]) -> list[str]:
        """Python programs that a line of a script starts."""
        return [path for _, path in shell_lines.programs([word.plain for word in line], self.from_cwd)]

    @cached_property
    def scripts(self) -> tuple[str, ...]:
        """Shell scripts of the project that the command names."""
        named = [self.from_cwd(word) for word in self.command.argv if word.endswith((".sh", ".bash"))]
        return tuple(dict.fromkeys(path for path in named if path is not None))

    def given(self, options: tuple[str, ...]) -> str | None:
        """How the command itself sets one of `options` (such as `--num-workers`, `-j` or `data.num_workers`), or None."""
        return next((word for word in self.arguments if any(sets_option(word, option, self.flags) for option in options)), None)

    @cached_property
    def flags(self) -> frozenset[str]:
        """Long options that the program may declare: each text of its source that looks like one."""
        return frozenset(flag.decode() for path in self.program for flag in FLAG.findall(self.read(path)))

    @cached_property
    def program(self) -> tuple[str, ...]:
        """Python files that ran, entry first; where that was not recorded, those that the entry reaches by its imports; else all."""
        entry = self.entry
        ran = [path for path in self.ran if (self.root / path).is_file()]
        if ran and (entry is None or entry in ran):
            return tuple(dict.fromkeys([entry or ran[0], *ran]))
        if entry is None:
            return tuple(path for path in self.files if path.endswith(".py"))
        return tuple(dict.fromkeys([*self._reached(entry), *ran]))

    def _reached(self, entry: str) -> tuple[str, ...]:
        reached: dict[str, None] = {}
        todo = deque([entry])
        while todo:
            path = todo.popleft()
            if path not in reached:
                reached[path] = None
                todo += [found for level, name in self._named_imports(path) for found in self._files_of(path, entry, level, name)]
        return tuple(reached)

    def _named_imports(self, path: str) -> list[tuple[int, str]]:
        """Level and dotted name of all that a file imports; nothing of one that cannot be read."""
        try:
            nodes = list(ast.walk(ast.parse(self.read(path))))
        except (UsageError, SyntaxError, ValueError, RecursionError):
            return []
        found: list[tuple[int, str]] = []
        for node in sorted((each for each in nodes if isinstance(each, (ast.Import, ast.ImportFrom))), key=lambda each: each.lineno):
            if isinstance(node, ast.Import):
                found += [(0, alias.name) for alias in node.names]
            else:
                package = node.module or ""
                found += [(node.level, package), *((node.level, f"{package}.{alias.name}".strip(".")) for alias in node.names)]
        return found

    def _files_of(self, importer: str, entry: str, level: int, name: str) -> list[str]:
        above = PurePosixPath(importer).parents
        roots = {PurePosixPath(entry).parent, self.folder, PurePosixPath("."), PurePosixPath("src")}
        bases = {above[level - 1]} if 0 < level <= len(above) else roots
        return [path for base in sorted(bases) for path in self._module(base, name)]

    def _module(self, base: PurePosixPath, name: str) -> list[str]:
        parts, found = [part for part in name.split(".") if part], []
        for depth in range(1, len(parts) + 1):
            stem = base.joinpath(*parts[:depth])
            found += [path for path in (f"{stem}.py", f"{stem}/__init__.py") if (self.root / path).is_file()]
        return [PurePosixPath(path).as_posix() for path in found]

    @cached_property
    def configs(self) -> tuple[str, ...]:
        """Configuration files: those that the command names, else those that the program's strings name, else all of the project's."""
        named = [path for word in self.arguments if (path := self._config(word.partition("=")[2] or word)) is not None]
        if named:
            return tuple(dict.fromkeys(named))
        spoken = [path for file in self.parsed() for text in _strings(file) if (path := self._config(text, near=file.path)) is not None]
        if spoken:
            return tuple(dict.fromkeys(spoken))
        return tuple(path for path in self.files if path.endswith(CONFIG_SUFFIXES))

    def _config(self, word: str, near: str = ".") -> str | None:
        if not word.endswith(CONFIG_SUFFIXES):
            return None
        beside = (PurePosixPath(near).parent / word).as_posix()
        found = self.from_cwd(word)
        if found is None and word in self.files:
            found = word
        if found is None and beside in self.files:
            found = beside
        return found

    def owns(self, location: Location | None) -> bool:
        """Whether `location` lies in a file of this project."""
        return location is not None and not os.path.isabs(location.file) and (self.root / location.file).is_file()

    def functions(self, name: str) -> list[tuple[PythonFile, cst.FunctionDef]]:
        """Functions and methods of that name in the program's files."""
        return [(file, each) for file in self.defining(name) for each in file.functions if each.name.value == name]

    def defining(self, name: str) -> Iterator[PythonFile]:
        """The program's Python files that define a function or a class of that name, and can be parsed."""
        for path in self._defined.get(name.encode(), ()):
            try:
                yield self.python(path)
            except UsageError:
                continue

    @cached_property
    def _defined(self) -> dict[bytes, list[str]]:
        found: dict[bytes, list[str]] = {}
        for path in self.program:
            for name in dict.fromkeys(DEFINED.findall(self.read(path))):
                found.setdefault(name, []).append(path)
        return found

    def each(self, words: tuple[str, ...], wanted: Callable[[PythonFile, cst.CSTNode], bool]) -> list[tuple[PythonFile, cst.CSTNode]]:
        """Nodes for which `wanted` holds, in the program's files that contain all `words`."""
        return [(file, node) for file in self.parsed(*words) for node in file.nodes if wanted(file, node)]


def _strings(file: PythonFile) -> Iterator[str]:
    for node in file.nodes:
        if isinstance(node, cst.SimpleString):
            text = string_value(node)
            if text is not None and text.endswith(CONFIG_SUFFIXES):
                yield text


def sets_option(word: str, option: str, declared: Collection[str] = ()) -> bool:
    """Whether a word of the command sets `option`: `--name`, `--name=v`, `-j4`, or `name=v` without dashes; or a prefix of it, where that
    is no other option that is `declared`."""
    name, equals, _ = word.partition("=")
    if name == option:
        return option.startswith("-") or bool(equals)
    if option.startswith("--"):
        return name.startswith("--") and len(name) > len("--xx") and option.startswith(name) and name not in declared
    if option.startswith("-"):
        return len(option) == 2 and word.startswith(option) and word[2:].isdigit()
    return bool(equals) and name.lstrip("+~-") == option


def is_module(path: str, module: str) -> bool:
    """Whether the file at `path` can be the module of that dotted name."""
    tail = module.strip(".").replace(".", "/")
    return f"/{path}".endswith((f"/{tail}.py", f"/{tail}/__init__.py"))
