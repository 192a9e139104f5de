"""Streamable HTTP for clients on this machine: a loopback address only, a token in every request, and no page of another origin."""

from __future__ import annotations

import hmac
import ipaddress
import secrets
import socket
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import uvicorn
from mcp.server.transport_security import TransportSecuritySettings

from trainflash.errors import UsageError
from trainflash.mcp_server.jobs import GONE
from trainflash.mcp_server.roots import Roots
from trainflash.mcp_server.server import build

PATH = "/mcp"
TOKEN_VARIABLE = "TRAINFLASH_MCP_TOKEN"
LEAST_TOKEN = 16
BODY_BYTES = 16 << 20  # a hundred thousand inline events; more come as a file
END_S = 5
BACKLOG = 128  # connections that wait while the application is made

App = Callable[[dict[str, Any], Callable[..., Awaitable[Any]], Callable[..., Awaitable[Any]]], Awaitable[None]]


def serve(roots: Roots, host: str, port: int, token: str | None) -> None:
    """Serve until interrupted. Without a token one is made and told on standard error. Raises `UsageError` for a public address."""
    host = loopback(host)
    if token is not None and len(token) < LEAST_TOKEN:
        raise UsageError(f"a token has at least {LEAST_TOKEN} characters", f"leave {TOKEN_VARIABLE} out, and one is made")
    secret = token or secrets.token_urlsafe(32)
    listener = _bound(host, port)
    port = listener.getsockname()[1]
    address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    print(f"trainflash mcp: http://{address}{PATH}", file=sys.stderr)
    if token is None:
        print(f"trainflash mcp: send the header Authorization: Bearer {secret}", file=sys.stderr)
    sys.stderr.flush()
    app = guarded(application(roots, address, port), secret)
    config = uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=END_S, server_header=False)
    uvicorn.Server(config).run(sockets=[listener])


def application(roots: Roots, address: str, port: int) -> Any:
    """The SDK's application; Host and Origin must name this very server."""
    names = sorted({address, f"127.0.0.1:{port}", f"localhost:{port}", f"[::1]:{port}"})
    security = TransportSecuritySettings(allowed_hosts=names, allowed_origins=[f"http://{name}" for name in names])
    return build(roots).streamable_http_app(streamable_http_path=PATH, transport_security=security, max_request_body_size=BODY_BYTES)


def guarded(app: App, token: str) -> App:
    """`app` behind the token; each request carries an event that is set when its client has gone."""
    expected = f"Bearer {token}".encode()

    async def check(scope: dict[str, Any], receive: Callable[..., Awaitable[Any]], send: Callable[..., Awaitable[Any]]) -> None:
        if scope["type"] != "http":
            await app(scope, receive, send)
            return
        given = [value for name, value in scope["headers"] if name == b"authorization"]
        if len(given) != 1 or not hmac.compare_digest(given[0], expected):
            await _refuse(send)
            return
        left = anyio.Event()

        async def watched() -> Any:
            message = await receive()
            if message["type"] == "http.disconnect":
                left.set()
            return message

        await app({**scope, GONE: left}, watched, send)

    return check


async def _refuse(send: Callable[..., Awaitable[Any]]) -> None:
    body = b'{"error": "a token is needed: send the header Authorization: Bearer TOKEN"}'
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode()), (b"www-authenticate", b"Bearer")]
    await send({"type": "http.response.start", "status": 401, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def loopback(host: str) -> str:
    """The address of `host`. Raises `UsageError` unless it can be reached from this machine only."""
    if host == "localhost":
        return "127.0.0.1"
    try:
        local = ipaddress.ip_address(host).is_loopback
    except ValueError:
        local = False
    if not local:
        raise UsageError(f"{host} can be reached from other machines", "serve on 127.0.0.1 or ::1, and use an SSH tunnel from elsewhere")
    return host


def _bound(host: str, port: int) -> socket.socket:
    listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen(BACKLOG)
    except (OSError, OverflowError) as bad:
        listener.close()
        raise UsageError(f"port {port} cannot be used: {bad}", "name another one with --port; 0 takes a free one") from None
    return listener
