"""The server over HTTP: who may talk to it, two clients of the SDK at once, and a client that goes away."""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

pytest.importorskip("mcp.server.mcpserver")

import anyio
import httpx2
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp_wire import ENDLESS, VERSION, gone, newest_run, pids, until

TOKEN = "a-token-of-the-tests"
HELLO = {"protocolVersion": VERSION, "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}}


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """Port and state folder of a server."""
    folder = tmp_path_factory.mktemp("http")
    (folder / "project").mkdir()
    (folder / "project" / "train.py").write_text(ENDLESS)
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("TRAINFLASH", "GIT_"))}
    env = {**kept, "HOME": str(folder), "XDG_STATE_HOME": str(folder / "state"), "TRAINFLASH_MCP_TOKEN": TOKEN, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "trainflash", "mcp", "--transport", "streamable-http", "--port", "0"]
    with subprocess.Popen(command, cwd=folder / "project", env=env, stderr=subprocess.PIPE, text=True) as server:
        try:
            address = server.stderr.readline().split()[-1]
            threading.Thread(target=server.stderr.read, daemon=True).start()
            assert address.startswith("http://127.0.0.1:")
            yield int(address.rsplit(":", 1)[1].partition("/")[0]), env
        finally:
            server.terminate()


def post(port: int, body: dict, **headers: str) -> tuple[int, http.client.HTTPResponse]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    given = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    given |= {name.replace("_", "-"): value for name, value in headers.items()}
    connection.request("POST", "/mcp", json.dumps(body).encode(), given)
    answer = connection.getresponse()
    return answer.status, answer


def call(method: str, params: dict, number: int = 1) -> dict:
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 401),
        ({"Authorization": "Bearer another"}, 401),
        ({"Authorization": f"Bearer {TOKEN}x"}, 401),
        ({"Authorization": f"Bearer {TOKEN}", "Origin": "http://evil.example"}, 403),
        ({"Authorization": f"Bearer {TOKEN}", "Origin": "null"}, 403),
        ({"Authorization": f"Bearer {TOKEN}", "Host": "evil.example"}, 421),
        ({"Authorization": f"Bearer {TOKEN}"}, 200),
    ],
)
def test_token_origin_and_host_are_checked(served, headers, status):
    got, answer = post(served[0], call("initialize", HELLO), **headers)
    assert got == status
    if status != 200:
        assert b"serverInfo" not in answer.read()


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.1", "example.org"])
def test_public_addresses_are_refused(host):
    from trainflash.errors import UsageError
    from trainflash.mcp_server.web import loopback

    with pytest.raises(UsageError):
        loopback(host)
    assert loopback("localhost") == "127.0.0.1"


@pytest.mark.parametrize("mode", ["auto", pytest.param("legacy", marks=pytest.mark.full)])
def test_two_clients_at_once_do_not_mix(served, mode):
    port, _ = served
    found: dict[str, dict] = {}

    async def one(name: str, phase: str) -> None:
        http_client = httpx2.AsyncClient(headers={"Authorization": f"Bearer {TOKEN}"}, timeout=120)
        async with Client(streamable_http_client(f"http://127.0.0.1:{port}/mcp", http_client=http_client), mode=mode) as client:
            session = (await client.call_tool("start_trainflash_session", {"label": name})).structured_content["session_id"]
            for at in range(20):
                for event in ("start", "end"):
                    arguments = {"session_id": session, "phase": phase, "event": event, "step": at, "ts": at + (event == "end") * 0.5}
                    assert not (await client.call_tool("record_trainflash_phase_event", arguments)).is_error
            found[name] = (await client.call_tool("stop_trainflash_session", {"session_id": session})).structured_content

    async def both() -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(one, "left", "Fwd")
            group.start_soon(one, "right", "Data")

    anyio.run(both)
    assert {name: (each["label"], list(each["occurrences"]), each["phase_event_count"]) for name, each in found.items()} == {
        "left": ("left", ["Fwd"], 40),
        "right": ("right", ["Data"], 40),
    }
    assert found["left"]["occurrences"]["Fwd"]["mean_ms"] == pytest.approx(500)


@pytest.mark.full
def test_work_of_a_client_that_goes_away_is_stopped(served):
    port, env = served
    status, answer = post(port, call("initialize", HELLO), Authorization=f"Bearer {TOKEN}")
    headers = {"Authorization": f"Bearer {TOKEN}", "Mcp_Session_Id": answer.headers["mcp-session-id"], "MCP_Protocol_Version": VERSION}
    answer.read()
    assert status == 200
    post(port, {"jsonrpc": "2.0", "method": "notifications/initialized"}, **headers)[1].read()
    asked = call("tools/call", {"name": "diagnose", "arguments": {"command": [sys.executable, "train.py"]}}, 2)
    _, open_answer = post(port, asked, **headers)
    until(lambda: pids(newest_run(env)), "the program to start")
    run = newest_run(env)
    tree = pids(run)
    open_answer.close()
    until(lambda: all(gone(pid) for pid in tree), "the program's processes to end")
    until((run / "run.json").exists, "the run to be written down")
    assert json.loads((Path(run) / "run.json").read_text())["status"] == "interrupted"


def test_a_large_body_is_refused(served):
    """By its announced length, before it is sent: a body that is sent meets a connection that the server may have closed already."""
    connection = http.client.HTTPConnection("127.0.0.1", served[0], timeout=120)
    connection.putrequest("POST", "/mcp")
    for name, value in (("Authorization", f"Bearer {TOKEN}"), ("Content-Type", "application/json"), ("Content-Length", str(17 << 20))):
        connection.putheader(name, value)
    connection.endheaders()
    assert connection.getresponse().status == 413
