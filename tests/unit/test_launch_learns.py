"""What a run has found of a program is told to the runs that follow it in the same sandbox."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

from trainflash.launch import own_updates


def box(folder: Path) -> SimpleNamespace:
    folder.mkdir()
    return SimpleNamespace(directory=str(folder), project="/home/me/project")


def facts(run: Path, *lines: str) -> None:
    run.mkdir(exist_ok=True)
    (run / "facts-7.jsonl").write_text("\n".join(lines), encoding="utf-8")


def update(path: str, name: str) -> str:
    return json.dumps({"at": [path, 3, name], "step": 5, "k": "update_function"})


def test_updates_of_the_project_s_own_are_told(tmp_path):
    sandbox = box(tmp_path / "box")
    assert own_updates.told(sandbox) is None
    cut = update("/home/me/project/cut.py", "move")[:-9]
    other = json.dumps({"k": "place", "at": ["/home/me/project/a.py", 1, "f"]})
    facts(tmp_path / "run", other, update("/home/me/project/pkg/a.py", "f.<locals>.move"), update("/usr/lib/b.py", "move"), cut)
    own_updates.learn(sandbox, tmp_path / "run")
    assert json.loads(own_updates.told(sandbox)) == [["pkg/a.py", "f.<locals>.move"]]
    facts(tmp_path / "run", update("/home/me/project/b.py", "go"))
    own_updates.learn(sandbox, tmp_path / "run")
    assert json.loads(own_updates.told(sandbox)) == [["b.py", "go"], ["pkg/a.py", "f.<locals>.move"]]
    another = box(tmp_path / "another")
    own_updates.hand_on(sandbox, another)
    assert own_updates.told(another) == own_updates.told(sandbox)


def test_a_file_that_cannot_be_read_tells_nothing(tmp_path):
    sandbox = box(tmp_path / "box")
    for text in ("", "{", "[1]", '{"a": 1}'):
        Path(sandbox.directory, "own_updates.json").write_text(text, encoding="utf-8")
        assert own_updates.told(sandbox) is None
