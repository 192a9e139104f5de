"""Write-back over the protocol: exactly the diff that the person was shown, asked by elicitation, in both eras of the protocol."""

from __future__ import annotations

import functools
import subprocess
from pathlib import Path

import pytest

pytest.importorskip("mcp.server.mcpserver")

import anyio
from mcp.client import Client
from mcp_types import ElicitResult

from trainflash import sandbox
from trainflash.mcp_server.roots import chosen
from trainflash.mcp_server.server import build
from trainflash.schema import Command, Experiment, Verdict
from trainflash.workflow import session

ERAS = pytest.mark.parametrize("era", ["legacy", "auto"])


@pytest.fixture
def project(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    root = tmp_path / "project"
    root.mkdir()
    (root / "train.py").write_text("workers = 0\n")
    for arguments in (("init", "-q"), ("add", "."), ("commit", "-q", "-m", "first")):
        subprocess.run(["git", "-c", "user.name=O", "-c", "user.email=o@localhost", *arguments], cwd=root, check=True, capture_output=True)
    return root


@pytest.fixture
def work(project):
    """A session with one accepted experiment."""
    found = session.create(project)
    accept(found, "workers = 2\x1b[8m\n")
    return found


def accept(found: session.Session, text: str) -> None:
    Path(found.sandbox.worktree, "train.py").write_text(text)
    parent, n = found.tip(), len(found.experiments()) + 1
    commit = sandbox.commit_worktree(found.sandbox, f"experiment {n}")
    verdict = Verdict("accept", None, None, 6, ("faster and the same",))
    found.save(
        Experiment(
            n=n, parent=None, knob="knob", value="2", finding=None, location=None, risk="same", why="", commit=commit, parent_commit=parent,
            diff_digest="", files=("train.py",), command=Command(("python", "train.py")), created_utc="2026-01-01T00:00:00Z",
            verdict=verdict, decision="accepted",
        )
    )  # fmt: skip


def write_back(project: Path, era: str, person=None) -> tuple[bool, dict]:
    """What the tool answers when `person` is the client's owner; None: a client that cannot ask."""

    async def talk() -> tuple[bool, dict]:
        async with Client(build(chosen([project])), mode=era, elicitation_callback=person) as client:
            answer = await client.call_tool("writeback", {})
            return answer.is_error, answer.structured_content

    return anyio.run(talk)


def person(action: str, approve: bool | None, asked: list[str], then=lambda: None):
    async def answer(context, params) -> ElicitResult:
        asked.append(params.message)
        await anyio.to_thread.run_sync(then)
        return ElicitResult(action=action, content=None if approve is None else {"approve": approve})

    return answer


def decisions(found) -> list[tuple[str, str]]:
    return [(entry.decision, entry.by) for entry in found.log_entries() if entry.kind == "writeback"]


@ERAS
def test_an_approved_diff_is_written(project, work, era):
    asked: list[str] = []
    failed, document = write_back(project, era, person("accept", True, asked))
    assert not failed
    assert (document["status"], document["schema"]) == ("ok", "writeback.v1")
    assert (project / "train.py").read_text() == "workers = 2\x1b[8m\n"
    assert len(asked) == 1
    assert "-workers = 0\n+workers = 2\\x1b[8m" in asked[0]  # what a terminal would hide is shown
    assert str(project) in asked[0]
    assert decisions(work) == [("approved", "owner (elicitation)")]


@ERAS
@pytest.mark.parametrize(
    ("action", "approve"), [("accept", False), ("decline", None), pytest.param("cancel", None, marks=pytest.mark.full)]
)
def test_anything_but_a_yes_changes_nothing(project, work, era, action, approve):
    asked: list[str] = []
    failed, document = write_back(project, era, person(action, approve, asked))
    assert failed
    assert (document["status"], document["schema"]) == ("needs_approval", "writeback.v1")
    assert (project / "train.py").read_text() == "workers = 0\n"
    assert len(asked) == 1
    assert decisions(work) == [("refused", "owner (elicitation)")]


@ERAS
def test_a_client_that_cannot_ask_changes_nothing(project, work, era):
    failed, document = write_back(project, era)
    assert failed
    assert document["status"] == "needs_approval"
    assert "trainflash writeback" in document["error"]["mend"]
    assert (project / "train.py").read_text() == "workers = 0\n"
    assert decisions(work) == [("refused", "owner (no elicitation)")]


@ERAS
def test_a_diff_that_changed_while_the_person_read_is_not_written(project, work, era):
    asked: list[str] = []
    another = functools.partial(_revise_once, work, asked)
    write_back(project, era, person("accept", True, asked, then=another))
    written = (project / "train.py").read_text()
    # legacy: the yes was to the first diff, so nothing is written; later: the person is asked again, about the second one
    assert written == "workers = 0\n" if len(asked) == 1 else ("workers = 4" in asked[-1] and written == "workers = 4\n")


def _revise_once(found: session.Session, asked: list[str]) -> None:
    """While the first question is open, the sandbox accepts something else instead."""
    if len(asked) == 1:
        (found.experiment_dir(1) / "experiment.json").unlink()
        sandbox.checkout(found.sandbox, "candidate", found.sandbox.base_ref)
        accept(found, "workers = 4\n")


def test_nothing_accepted_is_said_without_asking(project):
    session.create(project)
    asked: list[str] = []
    failed, document = write_back(project, "auto", person("accept", True, asked))
    assert failed
    assert document["status"] == "error"
    assert asked == []
