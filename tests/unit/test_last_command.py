"""Which command a verb means that was given none: that of the settings, else the last one of the sandbox."""

from __future__ import annotations

import pytest

from trainflash.config import Settings
from trainflash.errors import UsageError
from trainflash.schema import Command
from trainflash.workflow import inputs, session


@pytest.fixture
def last(monkeypatch):
    """Makes a project's sandbox one whose last command had these words."""

    def said(*words: str) -> None:
        monkeypatch.setattr(session, "last_command", lambda project, sandbox: Command(words) if words else None)

    return said


def test_what_is_typed_goes_before_the_settings_and_those_before_the_sandbox(last, tmp_path):
    last("python", "last.py")
    settings = Settings(command=("python", "settings.py"))
    assert inputs.command(["python", "typed.py"], settings, tmp_path).argv == ("python", "typed.py")
    assert inputs.command([], settings, tmp_path).argv == ("python", "settings.py")
    assert inputs.command([], Settings(), tmp_path).argv == ("python", "last.py")


def test_a_verb_that_names_no_project_takes_no_last_command(last):
    last("python", "last.py")
    with pytest.raises(UsageError, match="no training command"):
        inputs.command([], Settings())


@pytest.mark.parametrize("word", ["--api-key=[redacted]", "[redacted 0123456789abcdef]"])
def test_a_command_whose_secret_was_not_kept_is_asked_for(last, tmp_path, word):
    last("python", "train.py", word)
    with pytest.raises(UsageError, match="secret"):
        inputs.command([], Settings(), tmp_path)


def test_without_a_sandbox_the_command_is_asked_for(last, tmp_path):
    last()
    with pytest.raises(UsageError, match="no training command"):
        inputs.command([], Settings(), tmp_path)
