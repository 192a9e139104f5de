"""A program as its owner has it: a folder with a git repository of its own, diagnosed by a command that is asked for JSON."""

import json
import os
import signal
import subprocess
import time
from pathlib import Path


def make_repository(folder: Path) -> None:
    """The owner's project: one commit of everything."""
    identity = ["-c", "user.name=owner", "-c", "user.email=owner@example.org", "-c", "commit.gpgsign=false"]
    (folder / ".gitignore").write_text("__pycache__/\ncheckpoints/\n")
    for command in (["init", "-q"], ["add", "-A"], [*identity, "commit", "-q", "-m", "start"]):
        subprocess.run(["git", *command], cwd=folder, check=True, capture_output=True)


def last_document(text: str) -> dict:
    """The JSON document on stdout, whether it is one line or several."""
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return json.loads(text.strip().splitlines()[-1])


def answer(command: list[str], folder: Path, environment: dict[str, str], limit_s: float, holds: str = "findings") -> dict:
    """The document that `command` prints in `folder`, with its `exit` and `wall_s`; or an `error`, also where it lacks what it `holds`."""
    began = time.perf_counter()
    process = subprocess.Popen(
        command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        out, err = process.communicate(timeout=limit_s)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        return {"error": f"no answer within {limit_s:.0f} s"}
    wall = round(time.perf_counter() - began, 1)
    try:
        document = last_document(out)
    except (json.JSONDecodeError, IndexError):
        return {"error": f"exit {process.returncode}, no JSON: {err[-1500:]}", "wall_s": wall}
    if document.get("status") == "error" or holds not in document:
        return {"error": f"exit {process.returncode}: {document.get('error') or err[-1500:]}", "wall_s": wall}
    return {**document, "exit": process.returncode, "wall_s": wall}
