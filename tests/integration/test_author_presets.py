"""The presets against the real programs, where they are installed: every flag stands in their own help, and they start in a room.

`npm install @anthropic-ai/claude-code @openai/codex @google/gemini-cli @github/copilot opencode-ai acpx` and
`pip install aider-chat mini-swe-agent` give all but Cursor's, which has an installer of its own.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys

import pytest

from trainflash import author, sandbox, view
from trainflash.author.presets import ACP, PRESETS

SUBCOMMANDS = {"codex": ["exec"], "opencode": ["run"], "acp": []}
WITHOUT_LOGIN = ("claude", "gemini", "copilot", "mini")  # those that say at once, and without a network, that nobody is logged in
pytestmark = pytest.mark.full


def installed(preset):
    if shutil.which(preset.argv[0]) is None:
        pytest.skip(f"{preset.argv[0]} is not installed: {preset.get}")


def help_of(*command, home):
    """What a program says of its options; it is asked in an empty home, so that no settings of the machine's user speak."""
    environment = {**os.environ, "HOME": str(home), "COLUMNS": "200", "NO_COLOR": "1"}
    done = subprocess.run([*command, "--help"], capture_output=True, text=True, timeout=300, env=environment, stdin=subprocess.DEVNULL)
    return done.stdout + done.stderr


def missing(words, told):
    """The options among `words`, and their values where the help lists them, that the help does not have."""
    gone = []
    for at, word in enumerate(words):
        if word.startswith("--") and not re.search(rf"(?<![\w-]){re.escape(word)}(?![\w-])", told):
            gone.append(word)
        listed = word in {"acceptEdits", "auto_edit", "json"}
        if listed and not re.search(rf"(?<!\w){word}(?!\w)", told):
            gone.append(f"{words[at - 1]} {word}")
    return gone


@pytest.mark.parametrize("preset", [*PRESETS, ACP], ids=lambda preset: preset.name)
def test_every_flag_stands_in_the_programs_own_help(preset, tmp_path):
    installed(preset)
    told = help_of(preset.argv[0], *SUBCOMMANDS.get(preset.name, []), home=tmp_path)
    if preset is ACP:
        told += help_of(preset.argv[0], "codex", "exec", home=tmp_path)
    assert len(told) > 200, told
    assert missing(preset.argv, told) == []


def test_a_flag_that_is_gone_would_be_told():
    told = "  --output-format <format>  (choices: text, json)\n  --permission-mode-x"
    words = ("x", "--output-format", "json", "--permission-mode", "acceptEdits")
    assert missing(words, told) == ["--permission-mode", "--permission-mode acceptEdits"]


@pytest.fixture
def box(tmp_path, monkeypatch):
    home, project = tmp_path / "home", tmp_path / "project"
    home.mkdir()
    project.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    for name in [name for name in os.environ if name.endswith(("_API_KEY", "_TOKEN"))]:
        monkeypatch.delenv(name)
    (project / "train.py").write_text("x = 1\ny = 2\n")
    return sandbox.create(project, protect=view.protection)


@pytest.mark.parametrize("name", WITHOUT_LOGIN)
def test_the_program_starts_in_a_room_and_its_missing_login_is_understood(name, box, tmp_path):
    installed(next(preset for preset in PRESETS if preset.name == name))
    task = author.Task("Set y to 3 in train.py.\n", "{}", ("train.py",))
    given = author.write(box, author.named(name), task, tmp_path / "record", author.Limits(minutes=3.0))
    assert given.outcome == "ended" and given.reason.startswith("its login is missing: "), given


AGENT = """
import json, sys


def send(**message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


for line in sys.stdin:
    told = json.loads(line)
    if told.get("method") == "initialize":
        send(id=told["id"], result={"protocolVersion": 1, "agentCapabilities": {}})
    elif told.get("method") == "session/new":
        folder = told["params"]["cwd"]
        send(id=told["id"], result={"sessionId": "one"})
    elif told.get("method") == "session/prompt":
        prompt, brief = told["id"], told["params"]["prompt"][0]["text"].strip()
        options = [{"optionId": name, "name": name, "kind": kind} for name, kind in (("yes", "allow_once"), ("no", "reject_once"))]
        call = {"toolCallId": "edit", "title": "edit"}
        send(id=7, method="session/request_permission", params={"sessionId": "one", "toolCall": call, "options": options})
    elif told.get("id") == 7:
        allowed = told["result"]["outcome"]["optionId"]
        content = f"x = 1\\ny = 3  # {brief}: {allowed}\\n"
        send(id=8, method="fs/write_text_file", params={"sessionId": "one", "path": folder + "/train.py", "content": content})
    elif told.get("id") == 8:
        said = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "y is three"}}
        send(method="session/update", params={"sessionId": "one", "update": said})
        send(id=prompt, result={"stopReason": "end_turn"})
"""


def test_an_agent_of_the_agent_client_protocol_gets_the_brief_and_may_edit(box, tmp_path):
    """The real client with an agent of ours: its flags do what the preset takes them for."""
    installed(ACP)
    agent = tmp_path / "agent.py"
    agent.write_text(AGENT)
    words = [word for word in ACP.argv if word != "{agent}"]
    at = words.index("exec")
    words[at:at] = ["--agent", shlex.join([sys.executable, str(agent)])]
    task = author.Task("Set y to three\n", "{}", ("train.py",))
    given = author.write(box, author.named(shlex.join(words)), task, tmp_path / "record", author.Limits(minutes=3.0))
    assert given.outcome == "patch" and "+y = 3  # Set y to three: yes" in given.diff
    assert given.words == "y is three"
