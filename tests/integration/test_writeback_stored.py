"""What `--branch` commits is what the owner's own `git add` of the same change stores, whatever the repository makes of a file."""

import os
import shutil
import stat
import subprocess
from pathlib import Path

import pytest
from torture_ground import GIT, git, look

from trainflash import sandbox, writeback
from trainflash.errors import Rejected, UsageError
from trainflash.schema import Command, Experiment, Verdict
from trainflash.writeback import proposal as making

LINES = tuple(f"line {number}" for number in range(1, 31))


@pytest.fixture
def project(tmp_path, monkeypatch):
    for name, value in (("XDG_STATE_HOME", "state"), ("HOME", "home")):
        (tmp_path / value).mkdir()
        monkeypatch.setenv(name, str(tmp_path / value))
    root = tmp_path / "project"
    (root / "sub").mkdir(parents=True)
    git(root, "init", "-q")
    return root


def put(path: Path, end: str, **changed: str) -> None:
    """The usual lines; `changed`: new text of line N as `lineN`."""
    path.write_bytes("".join(changed.get(line.replace(" ", ""), line) + end for line in LINES).encode())


def attributes(text: str, *config: str):
    """A repository with these attributes and settings; files lie on disk as a checkout would lay them."""

    def prepare(root: Path) -> None:
        (root / ".gitattributes").write_text(text)
        for setting in config:
            git(root, "config", *setting.split("=", 1))

    return prepare


def mixed(root: Path) -> None:
    """Stored with CRLF before the attributes came: git leaves such a file alone until it is renormalised."""
    put(root / "train.py", "\r\n")
    git(root, "add", "train.py")
    (root / ".gitattributes").write_text("* text=auto\n")


def with_filter(root: Path) -> None:
    (root / ".gitattributes").write_text("*.py filter=local\n")
    git(root, "config", "filter.local.clean", "sed s/local-path/SHARED/")
    git(root, "config", "filter.local.smudge", "sed s/SHARED/local-path/")
    git(root, "config", "filter.local.required", "true")


def of_the_users(root: Path) -> None:
    """Attributes that stand in no file of the project."""
    (root / ".git" / "info").mkdir(exist_ok=True)
    (root / ".git" / "info" / "attributes").write_text("*.py text eol=crlf\n")


KINDS = {
    "plain": (attributes(""), "\n"),
    "line endings by attributes": (attributes("* text=auto eol=crlf\n"), "\r\n"),
    "line endings by a setting": (attributes("", "core.autocrlf=true"), "\r\n"),
    "line endings of the disk, stored so": (mixed, "\r\n"),
    "attributes of a folder": (lambda root: (root / "sub" / ".gitattributes").write_text("*.py text eol=crlf\n"), "\r\n"),
    "attributes of the user": (of_the_users, "\r\n"),
    "filter": (with_filter, "\n"),
    "identity": (attributes("*.py ident\n"), "\n"),
    "encoding": (attributes("*.cfg text working-tree-encoding=UTF-16LE\n"), "\n"),
    "executable bits": (attributes(""), "\n"),
    "executable bits that do not count": (attributes("", "core.fileMode=false"), "\n"),
}


def owners_state(root: Path, kind: str) -> None:
    prepare, end = KINDS[kind]
    prepare(root)
    first = "# $Id$" if kind == "identity" else "path = 'local-path'"
    for name in ("train.py", "sub/model.py"):
        put(root / name, end, line1=first)
    (root / "run.sh").write_text("#!/bin/sh\n")
    (root / "conf.cfg").write_bytes("key = 'ä'\n".encode("utf-16-le" if kind == "encoding" else "utf-8"))
    git(root, "add", ".")
    git(root, "commit", "-q", "-m", "first")
    (root / "run.sh").chmod(0o755)


def change(tree: Path, kind: str) -> None:
    """The candidate's: edits, a new file, a file less, an executable bit; on disk as the owner's editor would leave it."""
    end, first = KINDS[kind][1], "# $Id$" if kind == "identity" else "path = 'local-path'"
    for name in ("train.py", "sub/model.py"):
        put(tree / name, end, line1=first, line20="faster local-path")
    put(tree / "sub" / "new.py", end, line2="new local-path")
    (tree / "conf.cfg").write_bytes("key = 'ö'\n".encode("utf-16-le" if kind == "encoding" else "utf-8"))
    (tree / "sub" / "tool.sh").write_text("#!/bin/sh\n")
    (tree / "sub" / "tool.sh").chmod(0o755)
    (tree / "train.py").chmod(0o755)


def accepted(box) -> Experiment:
    return Experiment(
        n=1, parent=None, knob="knob", value="1", finding=None, location=None, risk="same", why="test",
        commit=sandbox.commit_worktree(box, "one"), parent_commit=box.base_ref, diff_digest="", files=(),
        command=Command(("python", "train.py")), created_utc="2025-01-01T00:00:00+00:00",
        verdict=Verdict("accept", None, None, 6, ("same",)), decision="accepted",
    )  # fmt: skip


def by_the_owner(root: Path, box, files: tuple[str, ...], copy: Path) -> str:
    """The tree that `git add` of the same files makes, in a copy of the project."""
    shutil.copytree(root, copy, symlinks=True)
    for name in files:
        source = Path(box.worktree, name)
        (copy / name).parent.mkdir(exist_ok=True)
        shutil.copyfile(source, copy / name)
        (copy / name).chmod(stat.S_IMODE(source.stat().st_mode))
    git(copy, "reset", "-q", "--mixed", "HEAD")
    subprocess.run([*GIT, "add", "--", *files], cwd=copy, check=True, capture_output=True)
    return git(copy, "write-tree").strip()


@pytest.mark.parametrize("kind", KINDS)
def test_the_branch_holds_what_git_add_stores(project, tmp_path, kind):
    owners_state(project, kind)
    box = sandbox.create(project)
    change(Path(box.worktree), kind)
    experiment = accepted(box)
    before = look(project)
    proposal = writeback.propose(box, [experiment], "faster")
    assert look(project) == before
    files = writeback.propose(box, [experiment]).files
    wanted = by_the_owner(project, box, files, tmp_path / "copy")
    writeback.apply(box, proposal, approved_digest=proposal.digest, how="digest")
    assert git(project, "rev-parse", "faster^{tree}").strip() == wanted, git(project, "diff", wanted, "faster")
    assert {path: facts for path, facts in look(project).items() if not path.endswith("heads/faster")} == before
    shown = git(project, "diff", "--numstat", "HEAD", "faster", "--", "train.py").split()
    assert shown[:2] == ["1", "1"], "one line is another, whatever the endings"
    git(project, "checkout", "-q", "-f", "faster")
    assert (project / "train.py").read_bytes() == Path(box.worktree, "train.py").read_bytes() or kind == "identity"


def test_without_it_every_line_would_change(project, monkeypatch):
    monkeypatch.setattr(making, "as_stored", lambda box, parent, committed: committed)
    owners_state(project, "line endings by attributes")
    box = sandbox.create(project)
    Path(box.worktree, "new.py").write_bytes(b"n = 1\r\n")
    proposal = writeback.propose(box, [accepted(box)], "faster")
    writeback.apply(box, proposal, approved_digest=proposal.digest, how="digest")
    assert git(project, "cat-file", "blob", "faster:new.py") == "n = 1\r\n"
    Path(box.worktree, "train.py").write_bytes(Path(box.worktree, "train.py").read_bytes() + b"more\r\n")
    with pytest.raises(Rejected):
        writeback.propose(box, [accepted(box)], "other")


def test_where_the_owners_edits_are_in_no_commit_both_are_told_apart_by_what_is_stored(project):
    """The edit of another place stays out of the branch, although every line of the file differs on disk from what is stored."""
    owners_state(project, "line endings by attributes")
    put(project / "train.py", "\r\n", line1="path = 'local-path'", line28="not committed")
    box = sandbox.create(project)
    tree = Path(box.worktree, "train.py")
    tree.write_bytes(tree.read_bytes().replace(b"line 5\r\n", b"line five\r\n"))
    proposal = writeback.propose(box, [accepted(box)], "faster")
    writeback.apply(box, proposal, approved_digest=proposal.digest, how="digest")
    assert git(project, "diff", "--numstat", "HEAD", "faster").split() == ["1", "1", "train.py"]


def test_a_filter_that_fails_and_files_of_lfs_are_refused_with_the_mend(project):
    owners_state(project, "filter")
    box = sandbox.create(project)
    change(Path(box.worktree), "filter")
    experiment, before = accepted(box), look(project)
    git(project, "config", "filter.local.clean", "false")
    with pytest.raises(UsageError, match="git add refuses the change") as caught:
        writeback.propose(box, [experiment], "faster")
    assert "leave --branch away" in caught.value.mend
    (project / ".git" / "info").mkdir(exist_ok=True)
    (project / ".git" / "info" / "attributes").write_text("*.py filter=lfs\n")
    with pytest.raises(UsageError, match=r"\.py is stored by git LFS") as caught:
        writeback.propose(box, [experiment], "faster")
    assert "leave --branch away" in caught.value.mend
    changed = {path for path, facts in look(project).items() if before.get(path) != facts and not os.path.isdir(path)}
    assert {Path(path).name for path in changed} == {"config", "attributes"}
