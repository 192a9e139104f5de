"""Verbs as tools of the protocol: their arguments' schema from the functions' annotations, their answers as structured documents."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from functools import partial
from typing import Annotated, Any, get_args, get_origin

import anyio
from mcp.server.mcpserver import Context, MCPServer
from mcp_types import CallToolResult, TextContent, ToolAnnotations
from pydantic import Field

from trainflash.errors import TrainFlashError, UsageError
from trainflash.mcp_server import fitting
from trainflash.mcp_server.jobs import GONE, Jobs
from trainflash.mcp_server.verbs import VERBS, answer, guarded
from trainflash.mcp_server.verbs.arguments import Verb
from trainflash.workflow.phases.sessions import state_folder
from trainflash.workflow.session import silent


def register(server: MCPServer, jobs: Jobs) -> None:
    """Add every verb to the server."""
    for verb in VERBS:
        add(server, verb.function, verb.name, verb.title, _calling(verb, jobs), reads_only=verb.reads_only)


def add(
    server: MCPServer, described: Callable[..., Any], name: str, title: str, call: Callable[..., Any], *, reads_only: bool, skip: int = 1
) -> None:
    """Add `call` under `name`, with the docstring of `described` and its parameters but the first `skip` of them."""
    signature = inspect.signature(described, eval_str=True)
    parameters = [
        each.replace(annotation=_for_pydantic(each.annotation), kind=inspect.Parameter.KEYWORD_ONLY)
        for each in list(signature.parameters.values())[skip:]
    ]
    context = inspect.Parameter("context", inspect.Parameter.KEYWORD_ONLY, annotation=Context)
    call.__signature__ = inspect.Signature([*parameters, context], return_annotation=CallToolResult)  # type: ignore[attr-defined]
    call.__annotations__ = {**{each.name: each.annotation for each in parameters}, "context": Context, "return": CallToolResult}
    call.__name__ = name
    hints = ToolAnnotations(title=title, read_only_hint=reads_only, destructive_hint=False, open_world_hint=False)
    server.add_tool(call, name=name, title=title, description=inspect.getdoc(described), annotations=hints)


def result(document: dict[str, Any]) -> CallToolResult:
    """A document as the answer of a tool: structured, and the same as text; one with `error` is a tool's error."""
    sent = fitting.fit(document, state_folder() / "answers")
    text = json.dumps(sent, ensure_ascii=False, separators=(",", ":"))
    return CallToolResult(content=[TextContent(type="text", text=text)], structured_content=sent, is_error="error" in sent)


def refused(name: str, message: str, mend: str) -> CallToolResult:
    """The answer to a call that cannot be understood."""
    return result(guarded(name, partial(_raise, UsageError(message, mend))))


def _calling(verb: Verb, jobs: Jobs) -> Callable[..., Any]:
    async def call(*, context: Context, **arguments: Any) -> CallToolResult:
        if verb.long:
            try:
                document = await jobs.run(verb.name, arguments, reporter(context), gone(context))
            except TrainFlashError as problem:
                document = guarded(verb.name, partial(_raise, problem))
        else:
            document = await anyio.to_thread.run_sync(partial(answer, verb.name, arguments, jobs.roots, silent))
        return result(document)

    return call


def reporter(context: Context) -> Callable[[str, int, int], Any]:
    """Progress notifications of one request: the value only grows, stage and figures stand in the message."""
    sent = 0

    async def report(label: str, done: int, total: int) -> None:
        nonlocal sent
        sent += 1
        await context.report_progress(sent, None, f"{label}: {done}/{total}" if total else f"{label}: {done}" if done else label)

    return report


def gone(context: Context) -> anyio.Event | None:
    """The event that is set when the client of an HTTP request has gone; None where the connection says so by itself."""
    request = context.request_context.request
    return request.scope.get(GONE) if request is not None and hasattr(request, "scope") else None


def _raise(problem: TrainFlashError) -> dict[str, Any]:
    raise problem


def _for_pydantic(annotation: Any) -> Any:
    """`Annotated[type, "sentence", (least, most)]` as pydantic says it."""
    if get_origin(annotation) is not Annotated:
        return annotation
    kind, *said = get_args(annotation)
    words = next((each for each in said if isinstance(each, str)), None)
    least, most = next((each for each in said if isinstance(each, tuple)), (None, None))
    return Annotated[kind, Field(description=words, ge=least, le=most)]
