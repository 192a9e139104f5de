"""The catalogue of real programs, and copies of them as their owners have them."""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import yaml

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE.parent))

from owners_project import make_repository  # noqa: E402


def half_of(name: str) -> str:
    """Which half a program is in: by lot."""
    return "open" if int(hashlib.sha1(name.encode()).hexdigest()[0], 16) % 2 == 0 else "held"


def catalogue(half: str, only: list[str] | None) -> list[dict]:
    found = [yaml.safe_load(path.read_text(encoding="utf-8")) for path in sorted((HERE / "truths").glob("*.yaml"))]
    return [each for each in found if (only is None or each["name"] in only) and half in ("all", half_of(each["name"]))]


@contextmanager
def owners_copy(truth: dict, base: Path) -> Iterator[tuple[Path, list[str], dict[str, str]]]:
    """(folder, command, environment) of a copy with its own repository. Raises `FileNotFoundError` where `base` has it not."""
    folder = Path(truth["folder"])
    beside, inside = (HERE if truth["source"] == "library" else base), Path(*folder.parts[2:])
    source, python = beside / Path(*folder.parts[:2]), base / truth["python"]
    if not source.is_dir() or not python.exists():
        raise FileNotFoundError(f"{source if python.exists() else python} is not there")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as place:
        root = Path(place, source.name)
        shutil.copytree(source, root, symlinks=True)
        own = {name: str(value).replace("{root}", str(root)) for name, value in truth.get("environment", {}).items()}
        environment = {**os.environ, **own}
        for words in truth.get("prepare", []):  # what makes its data, or a network that it takes for granted
            subprocess.run(_with(python, words), cwd=root / inside, env=environment, check=True, capture_output=True)
        if not (root / ".git").exists():
            make_repository(root)
        yield root / inside, _with(python, truth["command"]), {**environment, "XDG_STATE_HOME": str(Path(place, "state"))}


def _with(python: Path, words: list) -> list[str]:
    """A command of a truth, by that interpreter."""
    return [str(python) if word == "python" else str(word) for word in words]
