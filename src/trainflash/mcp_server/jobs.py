"""Long work beside the server: one process per job, with progress, stopped when the request is cancelled or its client is gone."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
from anyio.abc import Process
from anyio.streams.buffered import BufferedByteReceiveStream

from trainflash import mcp_server
from trainflash.errors import TrainFlashError
from trainflash.mcp_server.roots import Roots

AT_ONCE = 4  # jobs of all clients; each keeps cores busy, and comparisons suffer from company
STOP_S = 60.0  # an interrupted job ends its process tree, writes down what was measured and closes the view
LONGEST_LINE = 256 << 20
GONE = "trainflash.gone"  # in the scope of an HTTP request: the event that is set when its client has gone

Report = Callable[[str, int, int], Awaitable[None]]


class Jobs:
    """Starts jobs, a few at a time."""

    def __init__(self, roots: Roots) -> None:
        self.roots = roots
        self._room = anyio.CapacityLimiter(AT_ONCE)

    async def run(self, verb: str, arguments: dict[str, Any], report: Report, gone: anyio.Event | None = None) -> dict[str, Any]:
        """The document that `verb` answers with. Raises `TrainFlashError` when the job died, or when `gone` was set and it was stopped."""
        if self._room.available_tokens == 0:
            await report("waiting for other work of this server", 0, 0)
        document: dict[str, Any] | None = None
        async with self._room, anyio.create_task_group() as group:
            if gone is not None:
                group.start_soon(_cancel_when, gone, group.cancel_scope)
            document = await self._talk({"verb": verb, "arguments": arguments, "roots": [str(each) for each in self.roots.places]}, report)
            group.cancel_scope.cancel()
        if document is None:
            if gone is not None and gone.is_set():
                raise TrainFlashError("the client has gone, so the work was stopped; what was measured is kept", "ask again")
            raise TrainFlashError("the work ended without an answer; the server's standard error says more", "ask again")
        return document

    async def _talk(self, job: dict[str, Any], report: Report) -> dict[str, Any] | None:
        process = await anyio.open_process(
            [sys.executable, "-m", "trainflash.mcp_server.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=None,
            cwd=Path(mcp_server.__file__).resolve().parents[2],  # never the client's: modules of that name there must not be imported
            start_new_session=True,
        )
        try:
            assert process.stdin is not None and process.stdout is not None
            await process.stdin.send(json.dumps(job).encode() + b"\n")
            lines = BufferedByteReceiveStream(process.stdout)
            while True:
                try:
                    message = json.loads(await lines.receive_until(b"\n", LONGEST_LINE))
                except (anyio.EndOfStream, anyio.IncompleteRead):
                    return None
                if "answer" in message:
                    return message["answer"]
                await report(*message["progress"])
        finally:
            with anyio.CancelScope(shield=True):
                await _end(process)


async def _cancel_when(gone: anyio.Event, scope: anyio.CancelScope) -> None:
    await gone.wait()
    scope.cancel()


async def _end(process: Process) -> None:
    """Let the process end by itself: the end of its input is its Ctrl-C."""
    assert process.stdin is not None
    with anyio.move_on_after(STOP_S):
        await process.stdin.aclose()
        await process.wait()
    if process.returncode is None:
        process.kill()
    await process.aclose()
