"""Each cell of the table in docs/policy.md, tried."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from torture_ground import git, make_project

from trainflash import sandbox
from trainflash.view import open_view, trial

TABLE = Path(__file__).resolve().parents[2] / "docs" / "policy.md"
PROGRAM = """
import json, os, subprocess, sys
refused = []
for what, (verb, path) in json.loads(sys.argv[1]).items():
    try:
        if verb == "write":
            open(path, "w").write("by the run")
        elif verb == "chmod":
            os.chmod(path, 0o600)
            os.utime(path, (1, 1))
        else:
            done = subprocess.run(["git", *verb.split(), path], capture_output=True)
            if done.returncode:
                raise OSError(done.stderr)
    except OSError as bad:
        refused.append(what)
print(json.dumps(refused))
"""


def table() -> dict[str, dict[str, str]]:
    """What → protection → cell."""
    lines = TABLE.read_text().partition("\n## ")[0].splitlines()
    rows = [[cell.strip() for cell in line.strip("|\n").split("|")] for line in lines if line.startswith("|")]
    return {row[0]: dict(zip(rows[0][1:], row[1:], strict=True)) for row in rows[2:]}


def attempts(project: Path, base: Path, run_dir: Path) -> dict[str, tuple[str, str]]:
    """What → how it is tried; paths without a leading slash are relative to the project as the run sees it."""
    mark = base.name
    return {
        "source file, where the run sees the project": ("write", "train.py"),
        "new file, where the run sees the project": ("write", "made.py"),
        "new file in an ignored folder of the project": ("write", "data/made.bin"),
        "existing file in an ignored folder of the project": ("write", "data/x.bin"),
        "source file of the original, by its absolute path": ("write", f"{project}/pkg/old.py"),
        "permissions and times of a file of the original, by its absolute path": ("chmod", f"{project}/.gitignore"),
        "commit, branch, tag or stash, made by git in the working folder": ("tag", "made-in-the-run"),
        "branch of the original's repository, by its absolute path": (f"-C {project} branch", "made-by-path"),
        "folder beside the project": ("write", f"{base}/beside/made"),
        "folder that the settings name in `writable`": ("write", f"{base}/named/made"),
        "file in the home folder": ("write", f"{base}/home/file"),
        "cache in the home folder (`~/.cache`)": ("write", f"{base}/home/.cache/made"),
        "temporary file": ("write", f"/tmp/trainflash-policy-{mark}"),
        "shared memory (`/dev/shm`)": ("write", f"/dev/shm/trainflash-policy-{mark}"),
        "the run's own folder in the sandbox": ("write", f"{run_dir}/made"),
    }


def arrived(verb: str, path: str, project: Path) -> bool:
    """Whether it is there, outside the run."""
    if verb == "chmod":
        return Path(path).stat().st_mtime == 1
    if verb != "write":
        return path in git(project, "for-each-ref", "--format=%(refname:short)").split()
    place = project / path
    return place.exists() and place.read_text(errors="replace") == "by the run"


@pytest.mark.parametrize("protection", ["mount", "landlock", "manifest"])
def test_each_cell_of_the_policy(tmp_path_factory, monkeypatch, protection):
    base = Path(os.path.realpath(tmp_path_factory.mktemp("policy")))
    if str(base).startswith("/tmp/"):  # not where everything is layered or writable anyway
        base = Path("/var/lib" if os.access("/var/lib", os.W_OK) else Path.home()) / f"trainflash-policy-{os.getpid()}-{protection}"
        base.mkdir()
    try:
        _try_each(base, monkeypatch, protection)
    finally:
        subprocess.run(
            ["rm", "-rf", str(base), f"/tmp/trainflash-policy-{base.name}", f"/dev/shm/trainflash-policy-{base.name}"], check=True
        )


def _try_each(base: Path, monkeypatch, protection: str) -> None:
    for name in ("home/.cache", "beside", "named"):
        (base / name).mkdir(parents=True)
    monkeypatch.setenv("HOME", str(base / "home"))
    monkeypatch.setenv("XDG_STATE_HOME", str(base / "state"))
    project = make_project(base / "project")
    box = sandbox.create(project)
    run_dir = Path(box.directory, "runs", "one")
    run_dir.mkdir(parents=True)
    places = attempts(project, base, run_dir)
    assert set(places) == set(table()), "the table and the attempts name the same things"
    strategy = trial.Strategy(protection, "", str(Path(box.directory, "layers")))
    open_one = lambda found, folder: open_view(box, "baseline", folder, only=found.protection)  # noqa: E731
    if protection != "manifest" and (why := trial._fails(box, strategy, open_one)):
        pytest.skip(f"not to be had on this machine: {why}")
    outcome = {}
    for what, (verb, path) in places.items():  # one by one, so that what is seen belongs to it
        before = sandbox.original_changes(box)
        view = open_view(box, "baseline", run_dir, only=protection, writable=[str(base / "named")])
        try:
            words = view.argv([sys.executable, "-I", "-S", "-c", PROGRAM, json.dumps({what: (verb, path)})])
            done = subprocess.run(words, cwd=view.cwd, env={**os.environ, **view.env}, capture_output=True, text=True, timeout=120)
        finally:
            view.close()
        assert done.returncode == 0, done.stderr
        there, seen = arrived(verb, path, project), sandbox.original_changes(box) != before
        outcome[what] = "refused" if json.loads(done.stdout) else ("seen" if seen else "write") if there else "layer"
    assert outcome == {what: cells[protection] for what, cells in table().items()}
