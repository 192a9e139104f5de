"""SIGKILL at random moments of create, run, commit, write-back and discard: the original is as it was, and the next command works."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from torture_ground import DEADLINE_S, git, look, make_project

from trainflash import sandbox, writeback

VERBS = ("create", "run", "commit", "write", "branch", "discard")
KILLS = 200

# One command as the verbs of the CLI do it: with the session's lock, which mends what an earlier kill left.
COMMAND = """
import sys
from pathlib import Path
from trainflash import launch, sandbox, writeback
from trainflash.schema import Command, Experiment, Verdict
from trainflash.workflow import session
verb, project = sys.argv[1], Path(sys.argv[2])
PROGRAM = "import os, pathlib; [pathlib.Path(n).write_text('x') for n in ('train.py', 'data/x.bin', 'out')]; print(os.getcwd())"

def accepted(box, commit):
    return Experiment(n=1, parent=None, knob="knob", value="1", finding=None, location=None, risk="same", why="test", commit=commit,
        parent_commit=box.base_ref, diff_digest="", files=(), command=Command(("python", "train.py")),
        created_utc="2025-01-01T00:00:00+00:00", verdict=Verdict("accept", None, None, 6, ("same",)), decision="accepted")

def commit(found):
    found.rest()
    tree = Path(found.sandbox.worktree)
    (tree / "pkg" / "__init__.py").write_text("faster = 1\\n")
    (tree / "pkg" / "old.py").unlink()
    (tree / "fresh").mkdir(exist_ok=True)
    (tree / "fresh" / "new.py").write_text("n = 1\\n")
    return sandbox.commit_worktree(found.sandbox, "faster")

def write(found, branch):
    box = found.sandbox
    if any(not one.undone for one in writeback.approvals(box)):
        writeback.undo(box)
    proposal = writeback.propose(box, [accepted(box, commit(found))], branch)
    writeback.apply(box, proposal, approved_digest=proposal.digest, how="digest")
    writeback.undo(box)

print("ready", flush=True)
if verb == "create":
    if sandbox.newest(project) is None:
        session.create(project)
    sys.exit()
if sandbox.newest(project) is None and verb == "discard":  # the killed one was at its end
    sys.exit()
found = session.existing_session(project)
with found.locked():
    if verb == "run":
        record = launch.run(found.sandbox, "candidate", Command((sys.executable, "-S", "-c", PROGRAM)), found.new_run("diagnose"),
                            capture="diagnose", timeout=100)
        launch.require_success(record)
    elif verb == "commit":
        commit(found)
        found.rest()
    elif verb in ("write", "branch"):
        write(found, "faster" if verb == "branch" else None)
    elif verb == "discard":
        found.discard(everything=False)
"""


class Owner:
    """The project, what it looks like, and commands on it that are killed or not."""

    def __init__(self, base: Path, seed: int) -> None:
        self.chance = random.Random(seed)
        self.project = make_project(base / "project")
        self.before, self.refs = self.look(), git(self.project, "for-each-ref")
        self.usual_s: dict[str, float] = {}

    def start(self, verb: str) -> subprocess.Popen:
        child = subprocess.Popen(
            [sys.executable, "-c", COMMAND, verb, str(self.project)],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True, start_new_session=True,
        )  # fmt: skip
        assert child.stdout.readline() == "ready\n", child.communicate()[1]
        return child

    def works(self, verb: str) -> None:
        """The command does its work, and says how long it takes here."""
        child = self.start(verb)
        begun = time.monotonic()
        said = child.communicate(timeout=DEADLINE_S)[1]
        assert child.returncode == 0, (verb, said)
        self.usual_s[verb] = time.monotonic() - begun

    def kill(self, verb: str) -> None:
        """Kill the command somewhere in its work: all its processes, or itself alone, as the machine may."""
        child = self.start(verb)
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(self.chance.uniform(0, self.usual_s[verb]))
        if self.chance.random() < 0.7:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
        child.kill()
        child.communicate(timeout=DEADLINE_S)

    def look(self) -> dict[str, tuple]:
        """All files; a write-back that was taken back has changed the times of their folders."""
        return {path: facts for path, facts in look(self.project).items() if len(facts) > 3}

    def untouched(self) -> bool:
        return self.look() == self.before


def all_or_none(owner: Owner) -> bool:
    """After the rollback that the next command makes: as it was, or the whole change."""
    box = sandbox.newest(owner.project)
    assert box is not None and writeback.recover(box) == ()
    if owner.untouched():
        return True
    here = owner.project
    whole = (here / "fresh" / "new.py").exists() and not (here / "pkg" / "old.py").exists()
    return (whole and "faster" in (here / "pkg" / "__init__.py").read_text()) or bool(git(here, "branch", "--list", "faster"))


def kill_and_go_on(owner: Owner, times: int) -> None:
    owner.works("create")
    for verb in (*VERBS[1:], "create"):
        owner.works(verb)
    for number in range(times):
        verb = VERBS[number % len(VERBS)]
        if verb == "create":
            owner.works("discard")
        else:
            owner.works("create")
        owner.kill(verb)
        if verb in ("write", "branch"):
            assert all_or_none(owner), (number, verb)
        else:
            assert owner.untouched(), (number, verb)
        owner.works(verb)
        assert owner.untouched(), (number, verb, "afterwards")
        assert not list((owner.project / ".git").rglob("*.lock")), (number, verb)
    owner.works("create")
    owner.works("discard")
    assert owner.untouched()
    assert git(owner.project, "for-each-ref") == owner.refs
    assert git(owner.project, "worktree", "list").count("\n") == 1
    assert not (owner.project / ".git" / "worktrees").exists()


@pytest.fixture(autouse=True)
def state(tmp_path, monkeypatch):
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.mark.full
def test_a_few_kills(tmp_path):
    kill_and_go_on(Owner(tmp_path, 1), len(VERBS))


@pytest.mark.full
@pytest.mark.timeout(1800)
def test_two_hundred_kills(tmp_path):
    kill_and_go_on(Owner(tmp_path, 2025), KILLS)
