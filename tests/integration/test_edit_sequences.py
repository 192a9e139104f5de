"""Random sequences of an owner's edits: the sandbox holds exactly the working state, a write-back exactly the diff, undo gives all back.

The expected state comes from git itself (`git ls-files`, `git apply`), not from code of ours.
"""

from __future__ import annotations

import itertools
import multiprocessing
import os
import random
import shutil
import subprocess
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest

from trainflash import sandbox, writeback
from trainflash.errors import TrainFlashError, UsageError
from trainflash.schema import Command, Experiment, Verdict

SEQUENCES = 1000
BLOCK = 25  # sequences that one process does before it takes the next ones
NAMES = (
    "train.py",
    "pkg/model.py",
    "pkg/deep/er/data.py",
    "run.sh",
    "sp ace.txt",
    "ünïcode.md",
    "-dash",
    "new\nline.py",
    'q"uote.cfg',
    "crlf.txt",
)
IDENTITY = (
    "-c",
    "user.name=Owner",
    "-c",
    "user.email=owner@example.org",
    "-c",
    "init.defaultBranch=main",
    "-c",
    "core.hooksPath=/dev/null",
)
ACCEPT = Verdict("accept", None, None, 6, ("faster and the same",))


def git(where: Path, *arguments: str, given: bytes | None = None) -> bytes:
    environment = {**os.environ, "GIT_OPTIONAL_LOCKS": "0"}
    return subprocess.run(["git", *IDENTITY, *arguments], cwd=where, env=environment, input=given, check=True, capture_output=True).stdout


def visible(root: Path) -> set[str]:
    """What git does not ignore and is there, as git lists it."""
    listed = git(root, "ls-files", "-z", "-c", "-o", "--exclude-standard").split(b"\0")
    return {name for name in map(os.fsdecode, listed) if name and os.path.lexists(root / name) and not _below_link(root, name)}


def _below_link(root: Path, name: str) -> bool:
    return any((root / parent).is_symlink() for parent in Path(name).parents if str(parent) != ".")


def content(root: Path, names: set[str]) -> dict[str, tuple]:
    """Type, bytes and executable bit."""
    seen = {}
    for name in names:
        path = root / name
        if path.is_symlink():
            seen[name] = ("link", os.readlink(path))
        else:
            seen[name] = ("file", path.read_bytes(), bool(path.stat().st_mode & 0o100))
    return seen


def everything(root: Path) -> dict[str, tuple]:
    """Bytes, modes and times of the whole project, and of its `.git` but for objects, our worktrees and our refs."""
    seen = {}
    for at, folders, files in os.walk(root):
        inside = os.path.relpath(at, root)
        if inside == ".git":
            folders[:] = [name for name in folders if name not in ("objects", "worktrees")]
        if inside == os.path.join(".git", "refs"):
            folders[:] = [name for name in folders if name != "trainflash"]
        for name in files + [name for name in folders if os.path.islink(os.path.join(at, name))]:
            path = Path(at, name)
            facts = path.lstat()
            seen[os.path.normpath(os.path.join(inside, name))] = (
                os.readlink(path) if path.is_symlink() else path.read_bytes(),
                facts.st_mode,
                facts.st_mtime_ns,
            )
    return seen


class Owner:
    """Edits at random; each edit is one that a person could make."""

    def __init__(self, root: Path, chance: random.Random) -> None:
        self.root, self.chance = root, chance
        root.mkdir(parents=True)
        for name in chance.sample(NAMES, 7):
            self._write(name)
        (root / ".gitignore").write_text("*.log\ncache/\n")
        (root / "cache").mkdir()
        (root / "cache" / "ignored.bin").write_bytes(b"\0" * 10)
        git(root, "init", "-q")
        if chance.random() < 0.9:
            git(root, "add", "-A")
            git(root, "commit", "-q", "-m", "first")

    def act(self) -> None:
        self.chance.choice(
            (
                self.edit,
                self.edit,
                self.make,
                self.delete,
                self.rename,
                self.mode,
                self.link,
                self.stage,
                self.unstage,
                self.ignore,
                self.swap,
            )
        )()

    def edit(self) -> None:
        path = self._some()
        if path is not None and not path.is_symlink():
            lines = path.read_bytes().splitlines(keepends=True) or [b""]
            place = self.chance.randrange(len(lines))
            lines[place] = self.chance.choice((b"", b"changed\n", b"crlf\r\n", b"\xff\x00binary", b"no end"))
            path.write_bytes(b"".join(lines))

    def make(self) -> None:
        self._write(self.chance.choice((*NAMES, f"made{self.chance.randrange(9)}.py", "noise.log", "cache/more", "a/b/c.py")))

    def delete(self) -> None:
        path = self._some()
        if path is not None:
            path.unlink()

    def rename(self) -> None:
        path = self._some()
        target = self.root / self.chance.choice(("moved.py", "pkg/moved.py", "other/moved.log", "-moved"))
        if path is not None and not os.path.lexists(target):
            target.parent.mkdir(parents=True, exist_ok=True)
            path.rename(target)

    def mode(self) -> None:
        path = self._some()
        if path is not None and not path.is_symlink():
            path.chmod(self.chance.choice((0o644, 0o755, 0o600, 0o744)))

    def link(self) -> None:
        path = self.root / self.chance.choice(("link", "pkg/link", "train.py"))
        if path.parent.is_dir() and not path.is_dir():
            path.unlink(missing_ok=True)
            path.symlink_to(self.chance.choice(("train.py", "../outside", "nowhere", "pkg")))

    def swap(self) -> None:
        """A folder becomes a file, or a file a folder."""
        folder = self.root / "a"
        if folder.is_dir() and not folder.is_symlink():
            shutil.rmtree(folder)
            folder.write_text("now a file\n")
        elif folder.is_file():
            folder.unlink()
            self._write("a/b/c.py")

    def stage(self) -> None:
        git(self.root, "add", "-A", "--", self.chance.choice((".", "pkg" if (self.root / "pkg").is_dir() else ".")))

    def unstage(self) -> None:
        if subprocess.run(["git", "rev-parse", "-q", "--verify", "HEAD"], cwd=self.root, capture_output=True).returncode == 0:
            git(self.root, "reset", "-q")

    def ignore(self) -> None:
        with open(self.root / ".gitignore", "a") as file:
            file.write(self.chance.choice(("*.md\n", "pkg/deep/\n", "!keep.log\n", "made*\n")))

    def _some(self) -> Path | None:
        names = sorted(name for name in visible(self.root) if name != ".gitignore")
        return self.root / self.chance.choice(names) if names else None

    def _write(self, name: str) -> None:
        path = self.root / name
        blocked = any(os.path.lexists(parent) and not parent.is_dir() for parent in path.parents if parent != self.root.parent)
        if blocked or path.is_dir() or path.is_symlink() or any(parent.is_symlink() for parent in path.parents if parent != self.root):
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(f"{name!r} line {number} {self.chance.random()}\n" for number in range(self.chance.randrange(1, 12))))


class Candidate(Owner):
    """The same hand in a sandbox's worktree, where there is a repository already."""

    def __init__(self, root: Path, chance: random.Random) -> None:
        self.root, self.chance = root, chance

    def act(self) -> None:
        self.chance.choice((self.edit, self.edit, self.make, self.delete, self.mode, self.rename))()


def accepted(box, commit: str) -> Experiment:
    return Experiment(
        n=1, parent=None, knob="knob", value="1", finding=None, location=None, risk="same", why="test", commit=commit,
        parent_commit=box.base_ref, diff_digest="", files=(), command=Command(("python", "train.py")),
        created_utc="2025-01-01T00:00:00+00:00", verdict=ACCEPT, decision="accepted",
    )  # fmt: skip


def one_sequence(base: Path, seed: int) -> str:
    """Runs one sequence; says what came of the write-back."""
    chance = random.Random(seed)
    root = base / "project"
    owner = Owner(root, chance)
    for _ in range(chance.randrange(1, 14)):
        owner.act()
    before, wanted = everything(root), content(root, visible(root))
    box = sandbox.create(root, base / "box")
    for side in ("baseline", "worktree"):
        checkout = Path(getattr(box, side))
        found = {os.path.relpath(os.path.join(at, name), checkout) for at, names, files in os.walk(checkout) for name in files + [
            each for each in names if os.path.islink(os.path.join(at, each))]} - {".git"}  # fmt: skip
        assert content(checkout, found) == wanted, (seed, side)
    assert everything(root) == before, (seed, "create")
    candidate = Candidate(Path(box.worktree), chance)
    for _ in range(chance.randrange(1, 5)):
        candidate.act()
    outcome = write_back(box, root, seed, before)
    sandbox.discard(box, everything=True)
    assert everything(root) == before, (seed, "discard")
    assert not git(root, "for-each-ref", "refs/trainflash")
    return outcome


def write_back(box, root: Path, seed: int, before: dict) -> str:
    if not sandbox.dirty(box):
        return "no edit"
    try:
        commit = sandbox.commit_worktree(box, "one")
    except UsageError as refused:
        assert "a link out of the project" in refused.message and _leads_out(Path(box.worktree), root), (seed, refused.message)
        assert everything(root) == before, (seed, "refused")
        return "link refused"
    proposal = writeback.propose(box, [accepted(box, commit)])
    if not proposal.approvable:
        assert everything(root) == before, (seed, "propose")
        return "refused"
    copy = root.parent / "copy"
    shutil.copytree(root, copy, symlinks=True)
    git(copy, "apply", "--whitespace=nowarn", "-", given=proposal.diff.encode("utf-8", "surrogateescape"))
    writeback.apply(box, proposal, approved_digest=proposal.digest, how="digest")
    assert _files(root) == _files(copy), (seed, "apply")
    writeback.undo(box)
    assert everything(root) == before, (seed, "undo")
    return "written and undone"


def _leads_out(tree: Path, owners: Path) -> bool:
    """Whether the candidate put a link at a place where it leads out of the project, and where the owner has none."""
    links = [path for path in tree.rglob("*") if path.is_symlink()]
    new = [path for path in links if not (owners / path.relative_to(tree)).is_symlink()]
    return any(os.path.relpath(os.path.normpath(path.parent / os.readlink(path)), tree).startswith("..") for path in new)


def _files(root: Path) -> dict[str, tuple]:
    names = {name for name in everything(root) if not name.startswith(".git/")}
    return content(root, names)


def sequences(tmp_path: Path, seeds: range) -> dict[str, int]:
    counts: dict[str, int] = {}
    for seed in seeds:
        base = tmp_path / str(seed)
        try:
            outcome = one_sequence(base, seed)
        except TrainFlashError as problem:
            raise AssertionError(f"seed {seed}: {problem.message}") from problem
        counts[outcome] = counts.get(outcome, 0) + 1
        shutil.rmtree(base)
    return counts


@pytest.fixture(autouse=True)
def state(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")


def test_a_few_sequences(tmp_path):
    counts = sequences(tmp_path, range(6))
    assert counts.get("written and undone", 0) >= 2


@pytest.mark.full
@pytest.mark.timeout(1800)
def test_a_thousand_sequences(tmp_path):
    """On all processors: nearly all of the time goes into starts of git."""
    blocks = [range(start, start + BLOCK) for start in range(1000, 1000 + SEQUENCES, BLOCK)]
    with ProcessPoolExecutor(len(os.sched_getaffinity(0)), mp_context=multiprocessing.get_context("fork")) as pool:
        found = sum((Counter(counts) for counts in pool.map(sequences, itertools.repeat(tmp_path), blocks)), Counter())
    assert found.total() == SEQUENCES and found["written and undone"] >= SEQUENCES // 2, found
