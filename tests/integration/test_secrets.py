"""No secret of a command, of its environment or of what a program prints lies in a file of ours, also when all is killed in mid-run."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from secret_kinds import SECRETS, line_of

from trainflash import redact
from trainflash.workflow import vault

LAUNCHER = """
import json, sys
from pathlib import Path
from trainflash import launch, sandbox
from trainflash.schema import Command
box = sandbox.load(Path(sys.argv[1]))
command = Command(**json.loads(sys.stdin.read()))
launch.run(box, "baseline", command, Path(box.directory, "runs", "one"), capture="diagnose")
"""
# Prints what it is told, once whole and once in parts, trains for ever, and says where that it does.
PROGRAM = """
import os, sys, time
import torch
from torch import nn
told = open(sys.argv[1]).read()
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(10**6):
    optimizer.zero_grad()
    model(torch.ones(2, 4)).mean().backward()
    optimizer.step()
    time.sleep(0.01)
    if step == 3:
        print(told, flush=True)
        for place in range(0, len(told), 7):
            sys.stdout.write(told[place : place + 7])
            sys.stdout.flush()
        print("\\nall told", flush=True)
"""
PRINTING = """
import sys, time
told = open(sys.argv[1]).read()
for line in told.splitlines(keepends=True):
    for place in range(0, len(line), 7):
        sys.stdout.write(line[place : place + 7])
        sys.stdout.flush()
    print("line told", flush=True)
print("all told", flush=True)
time.sleep(1000)
"""


@pytest.fixture
def told(tmp_path) -> Path:
    """A file beside the project that holds all secrets: what the program prints."""
    path = tmp_path / "told"
    path.write_text("".join(f"{line_of(kind)[0]}\n" for kind in SECRETS))
    return path


def leaks(*folders: Path) -> list[str]:
    """Files with a secret in them, but for the vault, which keeps those of the command on purpose."""
    secrets = {kind: line_of(kind)[1].encode() for kind in SECRETS}
    found = []
    for path in (path for folder in folders for path in folder.rglob("*") if path.is_file() and not path.is_symlink()):
        data = path.read_bytes() if path.name != vault.NAME else b""
        found += [f"{path}: {kind}" for kind, secret in secrets.items() if secret in data]
    return found


def wait_for(condition) -> None:
    end = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < end, "in vain"
        time.sleep(0.05)


def log_of(state: Path) -> str:
    """All logs below `state`; folders may go while it is read."""
    logs = [Path(folder) / "output.log" for folder, _, files in os.walk(state) if "output.log" in files]
    return "".join(path.read_text(errors="replace") for path in logs)


def flags() -> list[str]:
    """All secrets as a command line would hold them."""
    named = [word for number, kind in enumerate(SECRETS) for word in ("--api-key", line_of(kind)[1]) if number % 2]
    return [*named, *(f"--db.password={line_of(kind)[1]}" for number, kind in enumerate(SECRETS) if not number % 2)]


def test_there_are_enough_kinds():
    assert len(SECRETS) >= 15


def test_a_killed_launcher_leaves_no_secret(user, told):
    """The log while the program runs, and after SIGKILL; the output came seven characters at a time."""
    assert user.trainflash("sandbox", "create", ".").code == 0
    box = next((Path(user.environment["XDG_STATE_HOME"])).rglob("sandbox.json")).parent
    command = {"argv": [sys.executable, "-S", "-c", PRINTING, str(told), *flags()], "env": {"HF_TOKEN": line_of("hugging face")[1]}}
    child = subprocess.Popen([sys.executable, "-c", LAUNCHER, str(box)], env=user.environment, stdin=subprocess.PIPE, text=True)
    child.stdin.write(json.dumps(command))
    child.stdin.close()
    try:
        wait_for(lambda: "all told" in log_of(box))
        assert leaks(box) == []
    finally:
        child.kill()
        child.wait()
    assert leaks(box) == []
    log = log_of(box)
    assert log.count("line told") == len(told.read_text().splitlines()) and log.count(redact.REDACTED) >= len(SECRETS)


@pytest.mark.full
@pytest.mark.parametrize("killed", [True, False])
def test_no_command_leaves_a_secret(user, told, killed):
    """`diagnose` of a program that trains: killed in mid-run, and ended in order."""
    (user.project / "train.py").write_text(PROGRAM)
    steps = [] if killed else ["--steps", "300"]
    words = user.command("diagnose", *steps, "--", sys.executable, "train.py", str(told), *flags())
    environment = {**user.environment, "WANDB_API_KEY": line_of("wandb variable")[1], "HF_TOKEN": line_of("hugging face")[1]}
    child = subprocess.Popen(
        words, cwd=user.project, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    state = Path(environment["XDG_STATE_HOME"])
    try:
        wait_for(lambda: "all told" in log_of(state) or child.poll() is not None)
        assert leaks(state) == []
        if killed:
            os.killpg(child.pid, signal.SIGKILL)
        out, err = child.communicate(timeout=200)
    finally:
        child.kill()
    assert leaks(state) == []
    assert "all told" in log_of(state), err
    headers = [json.loads(path.read_text()) for path in state.rglob("process-*.json")]
    assert headers and all(header["argv"].count("--api-key") == len(SECRETS) // 2 for header in headers)
    assert all(redact.REDACTED in header["argv"] for header in headers)
    if not killed:
        assert child.returncode == 0, err
        assert not any(line_of(kind)[1] in text for kind in SECRETS for text in (out, err))
