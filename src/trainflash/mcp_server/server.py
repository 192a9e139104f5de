"""The server put together, and served over stdio."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import CallToolResult, InputRequiredResult, Tool
from pydantic import ValidationError

from trainflash import __version__
from trainflash.mcp_server import approval, library, phase_tools, tools
from trainflash.mcp_server.jobs import Jobs
from trainflash.mcp_server.roots import Roots
from trainflash.mcp_server.verbs import VERBS
from trainflash.workflow.phases.sessions import PhaseSessions

NAME = "trainflash"
INSTRUCTIONS = (
    "Makes a PyTorch training program faster and proves it. Order: sandbox_create, diagnose, optimize_plan, optimize_try (or optimize_auto "
    "for the whole loop), verify, writeback. Where no knob fits, optimize_brief is the task for a patch of yours, which optimize_try "
    "judges. All work happens in a sandbox; only writeback changes the project, after the owner has approved exactly the diff "
    "shown. Never claim a speed-up without an accepted verdict. Programs that cannot be started here send phase events: "
    "start_trainflash_session, ingest_trainflash_phase_trace, get_trainflash_summary. Every answer is a document with `schema` and "
    "`status`; a long one is cut and names the whole in `whole`. null means not measured."
)


class Server(MCPServer):
    """Lists each tool with the schema of its document; schemas are made when they are first asked for, so that starting stays quick.

    Arguments that a tool does not have, or of another type, are refused with a document, like all other bad input.
    """

    shapes: dict[str, str]  # the name of each tool's document
    arguments: dict[str, tuple[str, ...]]

    async def list_tools(self) -> list[Tool]:
        """All tools."""
        return await anyio.to_thread.run_sync(self._with_schemas, await super().list_tools())

    async def call_tool(self, name: str, arguments: dict[str, Any], context: Context | None = None) -> CallToolResult | InputRequiredResult:
        """Call a tool by name; raises `ToolError` for an unknown one."""
        if not self.arguments:
            self.arguments = {each.name: tuple(each.input_schema.get("properties", {})) for each in await super().list_tools()}
        takes = self.arguments.get(name)
        strange = [] if takes is None else sorted(set(arguments) - set(takes))
        if strange:
            return tools.refused(name, f"{name} has no argument {strange[0]!r}", f"arguments: {', '.join(takes or ()) or 'none'}")
        try:
            return await super().call_tool(name, arguments, context)
        except ToolError as bad:
            if not isinstance(bad.__cause__, ValidationError):
                raise
            first = bad.__cause__.errors(include_url=False, include_input=False)[0]
            where = ".".join(str(part) for part in first["loc"])
            return tools.refused(name, f"{where}: {first['msg']}", "see the tool's input schema")

    def _with_schemas(self, listed: list[Tool]) -> list[Tool]:
        from trainflash.mcp_server.schemas import output_schema

        found = []
        for each in listed:
            closed = {**each.input_schema, "additionalProperties": False}
            found.append(each.model_copy(update={"input_schema": closed, "output_schema": output_schema(self.shapes[each.name])}))
        return found


def build(roots: Roots, sessions: PhaseSessions | None = None) -> Server:
    """A server of all tools, resources and prompts."""
    kept = sessions or PhaseSessions()

    @asynccontextmanager
    async def life(_: Any) -> AsyncIterator[None]:
        try:
            yield
        finally:
            await anyio.to_thread.run_sync(kept.close)

    server = Server(NAME, title="TrainFlash", version=__version__, instructions=INSTRUCTIONS, lifespan=life, log_level="WARNING")
    server.arguments = {}
    server.shapes = {verb.name: verb.shape for verb in VERBS} | {"writeback": "writeback"}
    server.shapes |= phase_tools.register(server, kept, roots)
    tools.register(server, Jobs(roots))
    approval.register(server, roots)
    library.register(server, roots)
    return server


def serve_stdio(roots: Roots) -> None:
    """Serve one client on standard input and output, until its input ends."""
    build(roots).run("stdio")
