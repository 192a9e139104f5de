"""Every kind of project under every protection: made, run in by a program that writes and deletes all it can, written back, discarded."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from torture_ground import GIT, look, make_project
from torture_kinds import KINDS

from trainflash import sandbox, writeback
from trainflash.schema import Command, Experiment, Verdict
from trainflash.view import open_view

PROTECTIONS = ("mount", "landlock", "manifest")
FAST = {
    ("no git", "mount"),
    ("submodules", "landlock"),
    ("read only", "mount"),
    ("hostile names", "landlock"),
    ("flags in the index", "manifest"),
}
# Writes, makes and deletes all that it finds below its working folder, and asks git to change the repository that it sees.
PROGRAM = """
import os, shutil, subprocess, sys
print(open('probe.py').read(), os.path.exists('data/x.bin') and open('data/x.bin').read())
def attempt(do, *arguments):
    try:
        do(*arguments)
    except OSError:
        pass
for words in ('commit -q --allow-empty -a -m x', 'stash', 'tag hostile', 'branch hostile', 'config a.b c'):
    words = ['git', '-c', 'user.name=x', '-c', 'user.email=x@x', *words.split()]
    subprocess.run(words, capture_output=True, stdin=subprocess.DEVNULL)
for at, names, files in os.walk('.', topdown=False):
    for name in files:
        path = os.path.join(at, name)
        if not os.path.islink(path) or sys.argv[1] == 'mount':
            attempt(lambda: open(path, 'r+').write('hostile'))
        attempt(os.chmod, path, 0o777) if sys.argv[1] == 'mount' and not os.path.islink(path) else None
        attempt(os.unlink, path)
    for name in names:
        attempt(os.rmdir, os.path.join(at, name))
open('output', 'w').write('x')
"""


def cases() -> list:
    return [
        pytest.param(
            kind, protection, id=f"{kind}-{protection}".replace(" ", "_"), marks=[] if (kind, protection) in FAST else [pytest.mark.full]
        )
        for kind in KINDS
        for protection in PROTECTIONS
    ]


@pytest.fixture
def base(tmp_path, monkeypatch):
    """Where the project and all that belongs to it lies; HOME and the state folder are elsewhere."""
    for name, folder in (("HOME", "home"), ("XDG_STATE_HOME", "state")):
        (tmp_path / folder).mkdir()
        monkeypatch.setenv(name, str(tmp_path / folder))
    (tmp_path / "work").mkdir()
    return tmp_path / "work"


def changed(box) -> Experiment:
    """An accepted experiment that edits one file and makes another."""
    tree = sandbox.project_in(box, "candidate")
    (tree / "probe.py").write_text("candidate = 1\n")
    (tree / "made").mkdir()
    (tree / "made" / "new.py").write_text("n = 1\n")
    return Experiment(
        n=1, parent=None, knob="knob", value="1", finding=None, location=None, risk="same", why="test",
        commit=sandbox.commit_worktree(box, "one"), parent_commit=box.base_ref, diff_digest="", files=(),
        command=Command(("python", "train.py")), created_utc="2025-01-01T00:00:00+00:00",
        verdict=Verdict("accept", None, None, 6, ("same",)), decision="accepted",
    )  # fmt: skip


def same(base: Path, before: dict) -> None:
    now = look_at(base)
    differ = {path for path in before.keys() | now.keys() if before.get(path) != now.get(path)}
    assert not differ, sorted(differ)[:5]


def look_at(base: Path) -> dict:
    """Everything below `base`, in every repository there."""
    found = {}
    for path, facts in look(base).items():
        parts = Path(path).relative_to(base).parts
        inside = parts[parts.index(".git") + 1 :] if ".git" in parts else ()
        if inside and inside[0] == "modules":
            inside = inside[2:]
        ours = inside[:1] == ("objects",) or inside[:2] == ("refs", "trainflash")
        ours |= inside[:1] == ("worktrees",) and (len(inside) == 1 or inside[1].startswith("trainflash-"))
        folder_of_git = bool(".git" in parts and stat.S_ISDIR(facts[0] if isinstance(facts[0], int) else 0))
        if not ours and not folder_of_git:
            found[path] = facts
    return found


@pytest.mark.parametrize(("kind", "protection"), cases())
def test_no_kind_of_project_is_hurt(base, kind, protection):
    root = make_project(base / "project")
    (root / "probe.py").write_text("owner = 1\n")
    if kind == "in a larger repository":
        (root / "pkg" / "probe.py").write_text("owner = 1\n")
    subprocess.run([*GIT, "add", "probe.py"], cwd=root, check=True)
    subprocess.run([*GIT, "commit", "-q", "-m", "probe", "--", "probe.py"], cwd=root, check=True)
    project = KINDS[kind](root)
    (base / "spy").unlink(missing_ok=True)
    before = look_at(base)
    box = sandbox.create(project)
    same(base, before)
    experiment = changed(box)
    run_dir = Path(box.directory, "runs", "one")
    run_dir.mkdir(parents=True)
    view = open_view(box, "candidate", run_dir, only=protection)
    try:
        words = view.argv([sys.executable, "-I", "-S", "-c", PROGRAM, protection])
        done = subprocess.run(words, cwd=view.cwd, env={**os.environ, **view.env}, capture_output=True, text=True, timeout=120)
    finally:
        view.close()
    if protection != "manifest" and "the view cannot be entered" in done.stderr:
        pytest.skip("not to be had on this machine")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("candidate = 1\n"), done.stdout
    if protection == "manifest":  # the program's own git ran the owner's filter, which writes beside the project: allowed there
        (base / "spy").unlink(missing_ok=True)
    same(base, before)
    assert sandbox.original_changes(box) == ()
    proposal = writeback.propose(box, [experiment])
    assert proposal.approvable, proposal.reason
    assert proposal.files == ("made/new.py", "probe.py")
    writeback.apply(box, proposal, approved_digest=proposal.digest, how="digest")
    assert (Path(box.project) / "probe.py").read_text() == "candidate = 1\n"
    writeback.undo(box)
    after = look_at(base)
    for path in (box.project,):  # a file was put in this folder and taken away again
        before.pop(path), after.pop(path)
    assert {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)} == set()
    sandbox.discard(box, everything=True)
    same(base, {**before, box.project: look_at(base)[box.project]})
    assert not (base / "spy").exists()
    assert not list(base.rglob("refs/trainflash"))


def test_there_are_enough_kinds():
    assert len(KINDS) >= 25
    assert {(kind, protection) for kind in KINDS for protection in PROTECTIONS} >= FAST
