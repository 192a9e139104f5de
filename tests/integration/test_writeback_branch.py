"""A write-back as a commit on a branch: exactly the approved diff is there, and nothing else of the owner's moved."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from torture_ground import git, look

from trainflash import sandbox, writeback
from trainflash.errors import Rejected, UsageError
from trainflash.schema import Command, Experiment, Verdict, write_document
from trainflash.writeback import branch as branches

SOURCE = "".join(f"line {number}\n" for number in range(1, 31))
ACCEPT = Verdict("accept", None, None, 6, ("faster and the same",))


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A repository whose hooks, signing and missing identity would all stop a commit, with edits that no commit holds."""
    for name, value in (("XDG_STATE_HOME", "state"), ("HOME", "home")):
        (tmp_path / value).mkdir()
        monkeypatch.setenv(name, str(tmp_path / value))
    root = tmp_path / "project"
    root.mkdir()
    (root / "train.py").write_text(SOURCE)
    (root / "old.py").write_text("o = 1\n")
    git(root, "init", "-q")
    git(root, "add", ".")
    git(root, "commit", "-q", "-m", "first")
    (root / "train.py").write_text(SOURCE.replace("line 25\n", "not committed\n"))
    for name in ("pre-commit", "commit-msg", "post-commit", "reference-transaction"):
        (root / ".git" / "hooks" / name).write_text(f"#!/bin/sh\ntouch '{tmp_path}/ran'\nexit 1\n")
        (root / ".git" / "hooks" / name).chmod(0o755)
    for name, value in (("commit.gpgSign", "true"), ("gpg.program", "/bin/false"), ("user.useConfigOnly", "true")):
        subprocess.run(["git", "config", name, value], cwd=root, check=True)
    return root


@pytest.fixture
def box(project):
    return sandbox.create(project)


@pytest.fixture
def one(box):
    tree = Path(box.worktree)
    (tree / "train.py").write_text((tree / "train.py").read_text().replace("line 5\n", "line five\n"))
    (tree / "old.py").unlink()
    (tree / "new").mkdir()
    (tree / "new" / "n.sh").write_text("n = 1\n")
    (tree / "new" / "n.sh").chmod(0o755)
    commit = sandbox.commit_worktree(box, "one")
    return Experiment(
        n=1, parent=None, knob="knob", value="1", finding=None, location=None, risk="same", why="test", commit=commit,
        parent_commit=box.base_ref, diff_digest="", files=(), command=Command(("python", "train.py")),
        created_utc="2025-01-01T00:00:00+00:00", verdict=ACCEPT, decision="accepted",
    )  # fmt: skip


def quietly(where, *arguments):
    """Git without the owner's hooks."""
    return git(where, "-c", "core.hooksPath=/dev/null", *arguments)


def apply(box, proposal):
    return writeback.apply(box, proposal, approved_digest=proposal.digest, how="digest")


def without_branch(project, name="faster"):
    """The project's state but for the branch and its log."""
    return {path: facts for path, facts in look(project).items() if not path.endswith(f"heads/{name}")}


def test_the_commit_is_there_and_nothing_else_moved(box, project, one, tmp_path):
    before, head = look(project), git(project, "rev-parse", "HEAD").strip()
    proposal = writeback.propose(box, [one], "faster")
    assert proposal.digest != writeback.propose(box, [one]).digest
    assert look(project) == before
    approval = apply(box, proposal)
    assert (approval.branch, approval.commit) == ("faster", git(project, "rev-parse", "faster").strip())
    assert without_branch(project) == before
    assert not (tmp_path / "ran").exists()
    assert git(project, "rev-parse", "faster^").strip() == head
    assert git(project, "show", "faster:train.py") == SOURCE.replace("line 5\n", "line five\n")
    assert git(project, "diff", "--raw", "HEAD", "faster").count("\n") == 3
    assert git(project, "ls-tree", "faster", "new/n.sh").startswith("100755")
    writeback.undo(box)
    assert look(project) == before
    assert git(project, "branch", "--list", "faster") == ""


def test_an_existing_branch_goes_on_only_where_it_holds_what_is(box, project, one):
    quietly(project, "branch", "faster")
    head = git(project, "rev-parse", "faster").strip()
    apply(box, writeback.propose(box, [one], "faster"))
    assert git(project, "rev-parse", "faster^").strip() == head
    assert not writeback.propose(box, [one], "faster").approvable
    writeback.undo(box)
    assert git(project, "rev-parse", "faster").strip() == head
    quietly(project, "branch", "-f", "behind", git(project, "commit-tree", "HEAD^{tree}", "-m", "elsewhere").strip())
    with pytest.raises(Rejected, match="does not build on") as caught:
        writeback.propose(box, [one], "behind")
    assert "git switch behind" in caught.value.mend


def test_what_cannot_be_is_refused_with_the_mend(box, project, one):
    before = look(project)
    own = git(project, "symbolic-ref", "--short", "HEAD").strip()
    for name, error, said in (
        (own, Rejected, "is checked out"),
        ("a..b", UsageError, "no name"),
        ("-d", UsageError, "no name"),
        ("", UsageError, "no name"),
    ):
        with pytest.raises(error, match=said) as caught:
            writeback.propose(box, [one], name)
        assert caught.value.mend
    assert look(project) == before


def test_where_the_change_meets_what_was_never_committed_nothing_is_written(project):
    box = sandbox.create(project)
    source = Path(box.worktree, "train.py")
    source.write_text(source.read_text().replace("not committed\n", "faster\n"))
    commit = sandbox.commit_worktree(box, "one")
    made = Experiment(
        n=1, parent=None, knob="knob", value="1", finding=None, location=None, risk="same", why="test", commit=commit,
        parent_commit=box.base_ref, diff_digest="", files=(), command=Command(("python", "train.py")),
        created_utc="2025-01-01T00:00:00+00:00", verdict=ACCEPT, decision="accepted",
    )  # fmt: skip
    with pytest.raises(Rejected, match=r"train\.py:25: branch faster") as caught:
        writeback.propose(box, [made], "faster")
    assert "commit your own edits" in caught.value.mend


def test_undo_leaves_a_branch_alone_that_moved_or_is_in_use(box, project, one):
    apply(box, writeback.propose(box, [one], "faster"))
    tip = git(project, "rev-parse", "faster").strip()
    moved = git(project, "commit-tree", "faster^{tree}", "-p", "faster", "-m", "mine").strip()
    quietly(project, "update-ref", "refs/heads/faster", moved)
    with pytest.raises(UsageError, match="moved since"):
        writeback.undo(box)
    assert git(project, "rev-parse", "faster").strip() == moved
    quietly(project, "update-ref", "refs/heads/faster", tip)
    quietly(project, "worktree", "add", "-q", "../other", "faster")
    with pytest.raises(Rejected, match="checked out"):
        writeback.undo(box)
    assert git(project, "rev-parse", "faster").strip() == tip


def test_a_project_without_a_commit_has_no_branch_to_write_to(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    root = tmp_path / "plain"
    root.mkdir()
    (root / "train.py").write_text("1\n")
    with pytest.raises(UsageError, match="no commit"):
        branches.find(sandbox.create(root), "faster")


KILLED = """
import os, signal, sys
from pathlib import Path
from trainflash import sandbox, writeback
from trainflash.schema import Experiment, read_document
from trainflash.writeback import branch, journal
box, one = sandbox.load(Path(sys.argv[1])), read_document(Experiment, Path(sys.argv[2]))
def stop(*_):
    os.kill(os.getpid(), signal.SIGKILL)
where, when = sys.argv[3].split(":")
proposal = writeback.propose(box, [one], "faster")
real = getattr(branch, where)
setattr(branch, where, stop if when == "before" else lambda *given: (real(*given), stop()))
writeback.apply(box, proposal, approved_digest=proposal.digest, how="digest")
"""


@pytest.mark.parametrize("where", ["_commit:before", "_commit:after", "_move:before", "_move:after", "finish:before"])
def test_a_kill_leaves_the_branch_whole_or_not_there_and_no_lock(box, project, one, tmp_path, where):
    write_document(tmp_path / "one.json", one)
    before = look(project)
    child = subprocess.run([sys.executable, "-c", KILLED, box.directory, str(tmp_path / "one.json"), where], capture_output=True)
    assert child.returncode == -9, child.stderr
    if "_move" in where:  # as git leaves them when it is killed itself
        for lock in ("refs/heads/faster.lock", "packed-refs.lock"):
            (project / ".git" / lock).touch()
    assert writeback.recover(box) == ()
    assert look(project) == before
    proposal = writeback.propose(box, [one], "faster")
    apply(box, proposal)
    assert git(project, "show", "faster:new/n.sh") == "n = 1\n"
    assert os.listdir(project / ".git" / "refs" / "heads").count("faster") == 1
