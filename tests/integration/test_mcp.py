"""The server as hosts start it, over real pipes and a real port, by a client that may say anything."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from mcp_wire import ENDLESS, Wire, events, gone, newest_run, pids, until

pytest.importorskip("mcp.server.mcpserver")

SERVER = [sys.executable, "-m", "trainflash", "mcp"]
SEVEN = {
    "get_trainflash_capabilities", "get_trainflash_system_snapshot", "start_trainflash_session", "record_trainflash_phase_event",
    "ingest_trainflash_phase_trace", "get_trainflash_summary", "stop_trainflash_session",
}  # fmt: skip


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A project, a state folder, and something outside of both."""
    folder = tmp_path_factory.mktemp("mcp")
    for name in ("home", "project", "outside"):
        (folder / name).mkdir()
    (folder / "project" / "train.py").write_text(ENDLESS)
    (folder / "outside" / "events.jsonl").write_text('{"phase": "Fwd", "event": "start", "ts": 1.0}\n')
    (folder / "project" / "escape").symlink_to(folder / "outside")
    return folder


@pytest.fixture(scope="module")
def env(place):
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("TRAINFLASH", "GIT_"))}
    return {**kept, "HOME": str(place / "home"), "XDG_STATE_HOME": str(place / "home" / "state"), "OMP_NUM_THREADS": "1"}


@pytest.fixture(scope="module")
def wire(place, env):
    made = Wire(SERVER, place / "project", env)
    made.hello()
    yield made
    assert made.close() == 0


def test_the_seven_tools_and_the_workflow_are_there(wire):
    tools = {tool["name"]: tool for tool in wire.result("tools/list")["tools"]}
    assert set(tools) >= SEVEN
    assert {"sandbox_create", "diagnose", "optimize_try", "verify", "profile_summarize", "writeback", "log"} <= set(tools)
    for tool in tools.values():
        assert tool["description"]
        assert {"schema", "status"} <= set(tool["outputSchema"]["properties"])
        assert all("description" in each for each in tool["inputSchema"]["properties"].values()), tool["name"]


@pytest.mark.parametrize(
    "line",
    [
        b"{not json",
        b"[]",
        b"\xff\xfe\x00",
        b'{"jsonrpc": "2.0", "id": 77}',
        b'{"jsonrpc": "2.0", "id": 77, "method": "tools/call", "params": 3}',
        b'{"jsonrpc": "2.0", "id": 77, "method": "tools/call", "params": {"name": 5}}',
        b'{"jsonrpc": "2.0", "id": 77, "method": "no/such"}',
        b'{"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 4711}}',
        b'{"jsonrpc": "2.0", "id": 77, "method": "ping", "params": ' + b"[" * 5000 + b"]" * 5000 + b"}",
        b"[" * 100_000,
        b'{"jsonrpc": "2.0", "id": 77, "result": {}}',
    ],
)
def test_malformed_messages_leave_the_server_alive(wire, line):
    wire.send(line)
    assert wire.tool("explain", name="input_cpu")["status"] == "ok"


def test_unknown_tools_and_arguments_are_refused(wire):
    answer = wire.hear(wire.ask("tools/call", {"name": "no_such_tool", "arguments": {}}))
    assert "error" in answer or answer["result"]["isError"]
    for arguments, said in (
        ({"stepz": 3}, "stepz"),
        ({"steps": 0}, "steps"),
        ({"steps": "many"}, "steps"),
        ({"command": "python"}, "command"),
    ):
        answer = wire.result("tools/call", {"name": "diagnose", "arguments": arguments})
        assert answer["isError"]
        assert said in answer["structuredContent"]["error"]["message"]
        assert answer["structuredContent"]["error"]["mend"]


def test_paths_stay_inside_the_roots(wire, place):
    session = wire.tool("start_trainflash_session", label="paths")["session_id"]
    for path in (place / "outside" / "events.jsonl", "escape/events.jsonl", "../outside/events.jsonl", "/etc/passwd"):
        refused = wire.tool("ingest_trainflash_phase_trace", session_id=session, trace_path=str(path))
        assert "outside of the server's roots" in refused["error"]["message"]
        assert refused["status"] == "error"
    for arguments in ({"project": str(place / "outside")}, {"project": "escape"}, {"sandbox": str(place / "outside")}):
        assert "outside" in wire.tool("sandbox_status", **arguments)["error"]["message"]


def test_a_session_survives_the_server_and_two_do_not_mix(wire, place, env):
    first = wire.tool("start_trainflash_session", label="first")["session_id"]
    second = wire.tool("start_trainflash_session", label="second", metadata={"device": "cpu"})["session_id"]
    (place / "project" / "trace.jsonl").write_text("".join(json.dumps(each) + "\n" for each in events(30)))
    sent = wire.tool("ingest_trainflash_phase_trace", session_id=first, trace_path="trace.jsonl")
    assert (sent["imported_event_count"], sent["phase_event_count"]) == (240, 240)
    assert wire.tool("record_trainflash_phase_event", session_id=second, phase="Eval", event="start")["phase_event_count"] == 1

    other = Wire(SERVER, place / "project", env)  # another server, as after a restart, and beside the first one
    other.hello()
    other.tool("ingest_trainflash_phase_trace", session_id=first, events=[{**each, "ts": each["ts"] + 0.3} for each in events(30)])
    found = other.tool("stop_trainflash_session", session_id=first)
    assert other.close() == 0
    assert found["phase_event_count"] == 480
    assert found["label"] == "first"
    assert found["findings"][0]["kind"].startswith("input")
    assert found["hints"] == [finding["summary"] for finding in found["findings"]]
    assert "was stopped" in wire.tool("record_trainflash_phase_event", session_id=first, phase="Fwd", event="start")["error"]["message"]
    assert wire.tool("get_trainflash_summary", session_id=second)["phase_event_count"] == 1


def test_resources_and_prompts(wire):
    prompts = {prompt["name"] for prompt in wire.result("prompts/list")["prompts"]}
    assert {"trainflash", "trainflash-diagnose", "trainflash-verify"} <= prompts
    text = wire.result("prompts/get", {"name": "trainflash-diagnose", "arguments": {"command": "python train.py"}})
    assert "python train.py" in json.dumps(text["messages"])
    templates = {each["uriTemplate"] for each in wire.result("resources/templates/list")["resourceTemplates"]}
    assert {"trainflash://findings/{name}", "trainflash://sandboxes/{name}/log"} <= templates
    read = wire.result("resources/read", {"uri": "trainflash://findings/input_cpu"})["contents"][0]
    assert json.loads(read["text"])["status"] == "ok"
    for uri in ("trainflash://findings/nonsense", "trainflash://sandboxes/..%2F..%2Fetc/log", "file:///etc/passwd"):
        assert "error" in wire.hear(wire.ask("resources/read", {"uri": uri}))


@pytest.mark.parametrize(
    "how", ["cancelled", pytest.param("vanished", marks=pytest.mark.full), pytest.param("killed", marks=pytest.mark.full)]
)
def test_work_is_stopped_with_its_process_tree_and_kept(place, env, tmp_path, how):
    env = {**env, "XDG_STATE_HOME": str(tmp_path)}
    wire = Wire(SERVER, place / "project", env)
    wire.hello()
    command = [sys.executable, "train.py"]
    asked = {"name": "diagnose", "arguments": {"command": command}, "_meta": {"progressToken": "t"}}
    number = wire.ask("tools/call", asked)
    until(lambda: pids(newest_run(env)), "the program to start")
    run = newest_run(env)
    tree = pids(run)
    assert wire.tool("explain", name="h2d")["status"] == "ok"  # the server is not blocked meanwhile
    if how == "cancelled":
        wire.message("notifications/cancelled", {"requestId": number, "reason": "enough"})
    elif how == "vanished":
        wire.close()
    else:
        os.killpg(wire.process.pid, signal.SIGKILL)
    until(lambda: all(gone(pid) for pid in tree), "the program's processes to end")
    until((run / "run.json").exists, "the run to be written down")
    assert json.loads((run / "run.json").read_text())["status"] == "interrupted"
    if how == "cancelled":
        progress = [each["params"] for each in wire.notifications if each.get("method") == "notifications/progress"]
        assert any("diagnose" in each["message"] for each in progress)
        values = [each["progress"] for each in progress]
        assert values == sorted(set(values))
        assert wire.tool("log")["entries"]  # the sandbox can be used and read
        assert wire.close() == 0


def test_the_thin_package_starts_the_same_server(place, env):
    """As a host does it: `python -m trainflash_mcp` in the package's own folder."""
    package = Path(__file__).resolve().parents[2] / "tools" / "trainflash_mcp"
    wire = Wire([sys.executable, "-m", "trainflash_mcp", "--root", str(place / "project")], package, env)
    assert wire.hello()["serverInfo"]["name"] == "trainflash"
    capabilities = wire.tool("get_trainflash_capabilities")
    assert capabilities["roots"] == [str(place / "project")]
    assert capabilities["phases"] == ["Data", "H2D", "Fwd", "Bwd", "Opt", "Eval", "Ckpt", "Log"]
    assert wire.close() == 0


@pytest.mark.full
def test_the_inspector_reads_the_tools(place, env):
    """The protocol's own inspector, whose exit code says nothing: its JSON does."""
    if shutil.which("npx") is None:
        pytest.skip("no npx here")
    inspector = ["npx", "-y", "@modelcontextprotocol/inspector@0.15.0", "--cli", *SERVER]

    def said(*arguments: str) -> dict:
        done = subprocess.run([*inspector, *arguments], cwd=place / "project", env=env, capture_output=True, text=True, timeout=280)
        return json.loads(done.stdout)

    assert {tool["name"] for tool in said("--method", "tools/list")["tools"]} >= SEVEN
    answered = said("--method", "tools/call", "--tool-name", "explain", "--tool-arg", "name=input_cpu")
    assert answered["structuredContent"]["schema"] == "explain.v1"
    refused = said("--method", "tools/call", "--tool-name", "get_trainflash_summary", "--tool-arg", "session_id=../../etc")
    assert refused["isError"] and "no session id" in refused["structuredContent"]["error"]["message"]


@pytest.mark.full
def test_a_diagnosis_over_the_protocol_is_the_command_lines(tmp_path, env, user):
    """The same run diagnosed through both doors: one document."""
    wire = Wire(SERVER, user.project, user.environment)
    wire.hello()
    asked = wire.tool("diagnose", command=[sys.executable, "train.py"], steps=60, sample_hz=0)
    assert asked["status"] == "ok", asked
    told = user.trainflash("diagnose", "--run", asked["run"], "--json").document
    mine = wire.tool("diagnose_run", run=asked["run"])
    whole = json.loads(Path(mine["whole"]).read_text()) if "whole" in mine else mine
    assert whole == told
    plan = wire.tool("optimize_plan", command=[sys.executable, "train.py"])
    assert plan["schema"] == "optimize_plan.v1" and plan["candidates"], plan
    brief = wire.tool("optimize_brief", command=[sys.executable, "train.py"])
    assert brief["schema"] == "optimize_brief.v1" and brief["code"] and brief["markdown"].startswith("# Make this training faster"), brief
    summary = wire.tool("profile_summarize", run=asked["run"])
    assert summary["status"] == "ok", summary
    assert wire.tool("profile_query", summary=summary["output"], question="What should we try next?")["status"] == "ok"
    assert Path(wire.tool("profile_report", summary=summary["output"])["output"]).stat().st_size > 1000
    assert Path(wire.tool("profile_export", run=asked["run"])["path"]).stat().st_size > 1000
    assert Path(wire.tool("report")["report"]).stat().st_size > 1000
    assert "tuning_log" in wire.tool("log_note", text="seen")["path"]
    assert wire.tool("gate_env", command=[sys.executable, "train.py"])["machine_profile"]
    assert wire.tool("doctor")["checks"]
    assert wire.tool("writeback_preview")["error"]["mend"]
    assert wire.tool("verify", experiment=1)["error"]["message"]
    assert wire.tool("sandbox_discard")["status"] == "ok"
    assert wire.close() == 0


@pytest.mark.parametrize("mode", ["auto", pytest.param("legacy", marks=pytest.mark.full)])
def test_the_sdks_client_over_real_pipes(place, env, tmp_path, mode):
    """The official client checks every answer against the tool's schema by itself."""
    import anyio
    from mcp import StdioServerParameters
    from mcp.client import Client
    from mcp.client.stdio import stdio_client

    progress: list[str | None] = []
    env = {**env, "XDG_STATE_HOME": str(tmp_path)}

    async def heard(value: float, total: float | None, message: str | None) -> None:
        progress.append(message)

    async def talk() -> None:
        server = StdioServerParameters(command=SERVER[0], args=[*SERVER[1:], "--root", str(place / "project")], env=env, cwd=place)
        async with Client(stdio_client(server), mode=mode) as client:
            await client.list_tools()
            session = (await client.call_tool("start_trainflash_session", {"label": mode})).structured_content["session_id"]
            assert not (await client.call_tool("ingest_trainflash_phase_trace", {"session_id": session, "events": events(20)})).is_error
            summary = await client.call_tool("stop_trainflash_session", {"session_id": session})
            assert summary.structured_content["steps"] > 0
            made = await client.call_tool("sandbox_create", {}, progress_callback=heard)
            assert made.structured_content["protection"] in {"mount", "landlock", "manifest"}
            for name in ("sandbox_status", "sandbox_diff", "log", "explain", "get_trainflash_system_snapshot"):
                answer = await client.call_tool(name, {})
                assert not answer.is_error, answer
                assert json.loads(answer.content[0].text) == answer.structured_content

    anyio.run(talk)
    assert "making a sandbox" in progress
