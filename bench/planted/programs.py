"""The planted programs: where they lie, what their manifests say, and how one is copied and started."""

import json
import os
import re
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
HALVES = ("open", "kept")
LAST_LINE = re.compile(r"(\d+) steps in ([\d.]+) ?s, loss (\S+)")  # of each program, at its end


@dataclass(frozen=True)
class Program:
    half: str
    name: str
    folder: Path
    manifest: dict


def programs(half: str = "all", only: list[str] | None = None) -> list[Program]:
    """All programs of a half (or of both), in order of name."""
    found = []
    for part in HALVES if half == "all" else (half,):
        for path in sorted((HERE / part).glob("*/manifest.json")):
            if not only or path.parent.name in only:
                found.append(Program(part, path.parent.name, path.parent, json.loads(path.read_text())))
    return found


def copy_of(program: Program, base: Path) -> Path:
    """A copy without the manifest, in a folder named after the program."""
    folder = base / program.name
    shutil.copytree(program.folder, folder, ignore=shutil.ignore_patterns("manifest.json", "__pycache__", "checkpoints"))
    return folder


def command_of(program: Program) -> list[str]:
    command = list(program.manifest["command"])
    return [sys.executable, *command[1:]] if command[0] == "python" else command


def environment() -> dict[str, str]:
    """One OpenMP thread, and `python` in shell scripts is this interpreter."""
    return {
        "OMP_NUM_THREADS": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PATH": str(Path(sys.executable).parent) + os.pathsep + os.environ.get("PATH", ""),
    }


def manifest_faults(program: Program) -> list[str]:
    """What is wrong with a manifest: a marker that is not one line, a function that is not there, a hint left in the source."""
    manifest, faults = program.manifest, []
    paths = [path for path in program.folder.rglob("*") if path.suffix in (".py", ".sh")]
    sources = {path.relative_to(program.folder).as_posix(): path.read_text() for path in paths}
    if manifest["file"] is not None and manifest["file"] not in sources:
        return [f"no file {manifest['file']}"]
    if manifest["line_marker"]:
        count = sum(manifest["line_marker"] in line for line in sources[manifest["file"]].splitlines())
        if count != 1:
            faults.append(f"line_marker on {count} lines")
    if manifest["function"] and f"def {manifest['function']}(" not in sources[manifest["file"]]:
        faults.append(f"no function {manifest['function']}")
    for marker in manifest["lines_also_right"]:
        if not any(marker in source for source in sources.values()):
            faults.append(f"no line with {marker!r}")
    return faults
