"""A client of the Model Context Protocol made of pipes and JSON lines only: what the SDK's own client would never send can be sent."""

from __future__ import annotations

import json
import queue
import subprocess
import threading
import time
from pathlib import Path
from typing import Any

PATIENCE_S = 120.0
VERSION = "2025-11-25"
ENDLESS = """
import os, subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(3600)"])
print("pids", os.getpid(), child.pid, "end", flush=True)
time.sleep(3600)
"""


class Wire:
    """A server's process. Answers and notifications are read by a thread, so that nothing blocks for ever."""

    def __init__(self, command: list[str], cwd: Path, env: dict[str, str]) -> None:
        self.process = subprocess.Popen(
            command, cwd=cwd, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True
        )
        self._heard: queue.Queue[dict[str, Any] | None] = queue.Queue()
        self.notifications: list[dict[str, Any]] = []
        self._number = 0
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._heard.put(json.loads(line))
        self._heard.put(None)

    def send(self, line: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line + b"\n")
        self.process.stdin.flush()

    def message(self, method: str, params: dict[str, Any] | None = None, **more: Any) -> None:
        self.send(json.dumps({"jsonrpc": "2.0", "method": method, "params": params or {}, **more}).encode())

    def ask(self, method: str, params: dict[str, Any] | None = None) -> int:
        """Send a request; its number."""
        self._number += 1
        self.message(method, params, id=self._number)
        return self._number

    def hear(self, number: int) -> dict[str, Any]:
        """The answer to a request; what comes meanwhile is kept in `notifications`."""
        while True:
            heard = self.next()
            if heard.get("id") == number and "method" not in heard:
                return heard
            self.notifications.append(heard)

    def next(self) -> dict[str, Any]:
        heard = self._heard.get(timeout=PATIENCE_S)
        assert heard is not None, "the server has ended"
        return heard

    def result(self, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        answer = self.hear(self.ask(method, params))
        assert "result" in answer, answer
        return answer["result"]

    def tool(self, name: str, /, **arguments: Any) -> dict[str, Any]:
        """The structured document that a tool answers with."""
        return self.result("tools/call", {"name": name, "arguments": arguments})["structuredContent"]

    def hello(self, **capabilities: Any) -> dict[str, Any]:
        """The handshake."""
        said = {"protocolVersion": VERSION, "capabilities": capabilities, "clientInfo": {"name": "wire", "version": "1"}}
        answer = self.result("initialize", said)
        self.message("notifications/initialized")
        return answer

    def close(self) -> int:
        """End the server's input, as a host does, and wait until it has ended."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        return self.process.wait(PATIENCE_S)


def until(true: Any, what: str) -> None:
    """Wait for a condition with a generous deadline."""
    deadline = time.monotonic() + PATIENCE_S
    while not true():
        assert time.monotonic() < deadline, f"waited in vain: {what}"
        time.sleep(0.05)


def events(steps: int, **more):
    """Steps of 4 ms Data, 3 ms Fwd, 2 ms Bwd and 1 ms Opt."""
    at, found = 1000.0, []
    for step in range(steps):
        for phase, ms in (("Data", 4), ("Fwd", 3), ("Bwd", 2), ("Opt", 1)):
            for event in ("start", "end"):
                at += ms / 1e3 if event == "end" else 0.0
                found.append({"phase": phase, "event": event, "step": step, "ts": at, **more})
    return found


def newest_run(env) -> Path | None:
    runs = Path(env["XDG_STATE_HOME"]).glob("trainflash/*/runs/*-[0-9]*")
    return max(runs, key=lambda path: (path.stat().st_mtime, path.name), default=None)


def pids(run: Path | None) -> list[int]:
    """What the program of a run printed about itself, once it is whole."""
    printed = (run / "output.log").read_text().split() if run is not None and (run / "output.log").exists() else []
    return [int(word) for word in printed[1:3]] if printed[-1:] == ["end"] else []


def gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except OSError:
        return True
