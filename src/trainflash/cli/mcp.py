"""`trainflash mcp`: the same verbs for programs that speak the Model Context Protocol."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path

import click

from trainflash.cli.options import PathName
from trainflash.errors import UsageError


@click.command(short_help="The same verbs over the Model Context Protocol.")
@click.option(
    "--transport", type=click.Choice(["stdio", "streamable-http"]), default="stdio", show_default=True, help="How clients reach it."
)
@click.option(
    "--root",
    "roots",
    type=PathName(),
    multiple=True,
    help="Clients may name paths below this directory; may be repeated. Default: TRAINFLASH_MCP_ROOTS, else the working directory.",
)
@click.option("--host", default="127.0.0.1", show_default=True, help="For streamable-http: an address of this machine only.")
@click.option("--port", type=click.IntRange(0, 65535), default=8765, show_default=True, help="For streamable-http; 0: a free one.")
def mcp(transport: str, roots: tuple[Path, ...], host: str, port: int) -> None:
    """Serve trainflash's tools, resources and prompts to an assistant's host or another program.

    \b
    trainflash mcp                                    over standard input and output; hosts start it themselves
    trainflash mcp --root ~/projects/train            clients may name paths below this directory
    trainflash mcp --transport streamable-http        at http://127.0.0.1:8765/mcp, with a token

    Over HTTP every request needs the token of TRAINFLASH_MCP_TOKEN; without one, a token is made and printed on stderr.
    A write-back asks the person at the client; a client that cannot ask changes nothing.
    """
    require_sdk()
    from trainflash.mcp_server.roots import VARIABLE, chosen

    allowed = chosen(roots, os.environ.get(VARIABLE, ""))
    if transport == "stdio":
        from trainflash.mcp_server.server import serve_stdio

        serve_stdio(allowed)
        return
    from trainflash.mcp_server.web import TOKEN_VARIABLE, serve

    serve(allowed, host, port, os.environ.get(TOKEN_VARIABLE) or None)


def require_sdk() -> None:
    """Raises `UsageError` where the protocol's SDK is not installed, or is too old."""
    try:
        found = find_spec("mcp.server.mcpserver") is not None
    except ModuleNotFoundError:
        found = False
    if not found:
        raise UsageError("the MCP server needs the package mcp, version 2", "pip install 'mcp>=2.3,<3'")
