"""The command line's own part: which words are ours, and one document in every case."""

from __future__ import annotations

import json

import pytest

from trainflash.cli import cli, main
from trainflash.cli.output import Output


def parsed(*words: str) -> dict:
    name, *rest = words
    command = cli.commands[name]
    if rest and rest[0] in getattr(command, "commands", {}):
        command, rest = command.commands[rest[0]], rest[1:]
    return command.make_context(name, list(rest)).params


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("tune", "--", "python", "train.py", "--json"), {"cmd": ("python", "train.py", "--json"), "as_json": False}),
        (("tune", "here", "--json", "--", "python", "a", "--", "b"), {"cmd": ("python", "a", "--", "b"), "as_json": True}),
        (("optimize", "try", "--patch", "x.diff", "--", "python", "train.py"), {"knob": None, "cmd": ("python", "train.py")}),
        (("optimize", "try", "pin_memory=1", "--", "python"), {"knob": "pin_memory=1", "cmd": ("python",)}),
        (("diagnose", "python", "train.py"), {"cmd": ("python", "train.py")}),
        (("verify", "--experiment", "1"), {"cmd": ()}),
    ],
)
def test_what_follows_the_dashes_is_the_owners(words, expected):
    found = parsed(*words)
    assert {name: found[name] for name in expected} == expected
    assert str(found.get("project", ".")) in {".", "here"}


def failing(error: BaseException):
    def callback(**_):
        raise error

    return callback


@pytest.mark.parametrize(
    ("error", "code"), [(KeyboardInterrupt(), 130), (OSError(28, "No space left on device", "/full"), 1), (UnicodeError("x"), None)]
)
def test_every_way_out_is_one_document(monkeypatch, capsys, error, code):
    monkeypatch.setattr(cli.commands["optimize"].commands["auto"], "callback", failing(error))
    arguments = ["optimize", "auto", "--json", "--", "python"]
    if code is None:  # a fault of ours keeps its traceback
        with pytest.raises(UnicodeError):
            main(arguments)
        return
    assert main(arguments) == code
    document = json.loads(capsys.readouterr().out)
    assert (document["schema"], document["status"]) == ("optimize_auto.v1", "error")
    assert document["error"]["message"] and document["error"]["mend"]


@pytest.mark.parametrize(
    "words",
    [
        ["sandbox", "create", ""],
        ["sandbox", "status", "--sandbox", ""],
        ["tune", "", "--", "python"],
        ["install", ""],
        ["profile", "summarize", ""],
        ["gate", "bench", "--out", "", "--", "python"],
    ],
)
def test_an_empty_path_is_no_name_for_the_current_folder(words, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(words) == 2
    assert "the path is empty; name it" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_no_sandbox_is_told_so(tmp_path, capsys):
    assert main(["sandbox", "status", "--sandbox", str(tmp_path)]) == 2
    assert f"{tmp_path} is no sandbox" in capsys.readouterr().err


def test_an_infinite_tolerance_is_none(capsys):
    assert main(["verify", "--tolerance", "inf", "--", "python"]) == 2
    assert "tolerance" in capsys.readouterr().err


def test_a_log_of_long_work_says_how_much_time_is_left(capsys):
    now = [0.0]
    with Output(as_json=True).progress() as plain:
        plain._clock = lambda: now[0]
        for now[0], done in ((0.0, 0), (10.0, 1), (40.0, 4), (300.0, 10), (330.0, 12)):
            plain("starts", done, 12)
    assert capsys.readouterr().err.splitlines() == [
        "starts: 0/12",
        "starts: 4/12, about 80 s left",
        "starts: 10/12, about 60 s left",
        "starts: 12/12",
    ]
