"""Data of any size costs a sandbox no time and no room; a disk without room leaves a write-back undone, and all as it was."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from torture_ground import git, look, make_project

from trainflash import sandbox, writeback
from trainflash.errors import UsageError
from trainflash.schema import Command, Experiment, Verdict
from trainflash.view import open_view

HUGE_BYTES = 300 << 30
ROOM = "2m"
HALF = 50_000


@pytest.fixture
def base(tmp_path, monkeypatch):
    for name, folder in (("HOME", "home"), ("XDG_STATE_HOME", "state")):
        (tmp_path / folder).mkdir()
        monkeypatch.setenv(name, str(tmp_path / folder))
    return tmp_path


def used(folder: Path) -> int:
    return sum(path.lstat().st_blocks * 512 for path in folder.rglob("*"))


@pytest.mark.parametrize("protection", ["mount", "landlock", "manifest"])
def test_300_gigabytes_of_data_cost_no_time_and_no_room(base, protection):
    project = make_project(base / "project")
    with open(project / "data" / "huge.bin", "wb") as file:
        try:
            file.truncate(HUGE_BYTES)
        except OSError:
            pytest.skip("this file system holds no file of that size")
    begun = time.process_time()
    box = sandbox.create(project)
    run_dir = Path(box.directory, "runs", "one")
    run_dir.mkdir(parents=True)
    view = open_view(box, "candidate", run_dir, only=protection)
    try:
        code = "import os; f = open('data/huge.bin', 'rb'); f.seek(-1, 2); print(os.stat('data/huge.bin').st_size, f.read())"
        words = view.argv([sys.executable, "-I", "-S", "-c", code])
        done = subprocess.run(words, cwd=view.cwd, env={**os.environ, **view.env}, capture_output=True, text=True)
        if "the view cannot be entered" in done.stderr:
            pytest.skip("not to be had on this machine")
        assert done.stdout.split() == [str(HUGE_BYTES), r"b'\x00'"], done.stderr
        assert used(Path(box.directory)) < 10 << 20
    finally:
        view.close()
    assert time.process_time() - begun < 20
    assert sandbox.original_changes(box) == ()


def accepted(box) -> Experiment:
    """An accepted experiment of what lies in the worktree."""
    return Experiment(
        n=1, parent=None, knob="knob", value="1", finding=None, location=None, risk="same", why="test",
        commit=sandbox.commit_worktree(box, "one"), parent_commit=box.base_ref, diff_digest="", files=(),
        command=Command(("python", "train.py")), created_utc="2025-01-01T00:00:00+00:00",
        verdict=Verdict("accept", None, None, 6, ("same",)), decision="accepted",
    )  # fmt: skip


@pytest.fixture
def small_disk(base):
    """A project on a disk of 2 MiB of its own, with its sandbox elsewhere."""
    place = base / "disk"
    place.mkdir()
    if os.geteuid() != 0 or subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={ROOM}", "tmpfs", place], capture_output=True).returncode:
        pytest.skip("no disk can be mounted here")
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", place], check=True)


def test_a_full_disk_leaves_a_write_back_undone_and_all_as_it_was(small_disk):
    project = make_project(small_disk / "project")
    box = sandbox.create(project)
    tree = Path(box.worktree)
    (tree / "train.py").write_text("print('faster')\n")
    (tree / "pkg" / "old.py").unlink()
    for number in range(8):
        (tree / "pkg" / f"made{number}.py").write_text("# a table\n" * 20_000)
    one = accepted(box)
    filler = small_disk / "filler"
    with open(filler, "wb", buffering=0) as file, pytest.raises(OSError, match="No space"):
        while True:
            file.write(b"x" * 65536)
    os.truncate(filler, filler.stat().st_size - 500_000)
    before = look(project)
    proposal = writeback.propose(box, [one])
    with pytest.raises(UsageError, match="No space left on device; nothing was changed"):
        writeback.apply(box, proposal, approved_digest=proposal.digest, how="digest")
    assert _files(look(project)) == _files(before)
    assert writeback.approvals(box) == () and writeback.recover(box) == ()
    filler.unlink()
    writeback.apply(box, proposal, approved_digest=writeback.propose(box, [one]).digest, how="digest")
    assert (project / "pkg" / "made7.py").exists() and not (project / "pkg" / "old.py").exists()
    writeback.undo(box)
    assert _files(look(project)) == _files(before)


def _files(seen: dict[str, tuple]) -> dict[str, tuple]:
    """Without folders, whose times change with every file made in them."""
    return {path: facts for path, facts in seen.items() if len(facts) > 3}


@pytest.mark.full
@pytest.mark.timeout(1800)
def test_a_hundred_thousand_files(base):
    """Half of them tracked, half ignored data: made, run in, changed, written back, discarded."""
    project = make_project(base / "project")
    for number in range(HALF):
        for folder in ("src", "data"):
            path = project / folder / f"part{number % 250}" / f"n{number}.py"
            if number < 250:
                path.parent.mkdir(parents=True)
            path.write_bytes(b"n = %d\n" % number)
    git(project, "config", "gc.auto", "0")  # else git packs its objects and refs in the background, whenever it gets to it
    git(project, "add", ".")
    git(project, "commit", "-q", "-m", "many")
    box = sandbox.create(project)
    assert sandbox.original_changes(box) == () and not sandbox.status(box).dirty
    run_dir = Path(box.directory, "runs", "one")
    run_dir.mkdir(parents=True)
    view = open_view(box, "candidate", run_dir)
    try:
        code = (
            "import os; print(*(sum(len(files) for *_, files in os.walk(part)) for part in ('src', 'data'))); os.unlink('src/part1/n1.py')"
        )
        words = view.argv([sys.executable, "-I", "-S", "-c", code])
        done = subprocess.run(words, cwd=view.cwd, env={**os.environ, **view.env}, capture_output=True, text=True)
    finally:
        view.close()
    linked = int(done.stdout.split()[1])  # beyond a number of links, a folder of data is one link
    assert done.stdout.split()[0] == str(HALF), done.stderr
    assert linked == HALF + 2 or view.protection != "mount"
    Path(box.worktree, "src", "part7", "n7.py").write_text("n = 8\n")
    one = accepted(box)
    proposal = writeback.propose(box, [one])
    assert proposal.files == ("src/part7/n7.py",)
    writeback.apply(box, proposal, approved_digest=proposal.digest, how="digest")
    assert git(project, "status", "--porcelain").split() == ["M", "src/part7/n7.py"]
    writeback.undo(box)
    sandbox.discard(box, everything=True)
    assert git(project, "worktree", "list").count("\n") == 1
