"""What the integration tests share."""

from __future__ import annotations

import signal

import pytest
from owner import SLOW_INPUT, User


@pytest.fixture(scope="session", autouse=True)
def interruptible():
    """A shell starts jobs in the background with SIGINT ignored, and programs inherit that; here Ctrl-C has to work."""
    before = signal.getsignal(signal.SIGINT)
    if before is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def user(tmp_path):
    """A user with a committed project whose input is slow."""
    home, project = tmp_path / "home", tmp_path / "work" / "project"
    home.mkdir()
    project.mkdir(parents=True)
    (project / "train.py").write_text(SLOW_INPUT)
    person = User(home, project)
    person.git("init", "--quiet")
    person.git("add", "--all")
    person.git("commit", "--quiet", "--message", "start")
    return person
