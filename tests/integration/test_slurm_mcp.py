"""A client of the server sends a diagnosis to the cluster; the SDK's own client checks the answer against the tool's schema."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from owner import User, fingerprint
from slurm_cluster import Cluster, cluster

pytest.importorskip("mcp.server.mcpserver")

__all__ = ["cluster"]
pytestmark = [pytest.mark.full, pytest.mark.timeout(600)]


def connected(user: User, cluster: Cluster):
    """The SDK's client of a server that runs in the user's project and knows the cluster."""
    from mcp import StdioServerParameters
    from mcp.client import Client
    from mcp.client.stdio import stdio_client

    environment = user.environment | cluster.environment
    server = StdioServerParameters(command=sys.executable, args=["-m", "trainflash", "mcp"], env=environment, cwd=user.project)
    return Client(stdio_client(server))


def test_a_diagnosis_as_a_job_over_the_protocol(user: User, cluster: Cluster):
    import anyio

    progress: list[str] = []
    before = fingerprint(user.project)

    async def heard(value: float, total: float | None, message: str | None) -> None:
        progress.append(str(message))

    async def talk() -> None:
        async with connected(user, cluster) as client:
            asked = {"command": ["python", "train.py"], "steps": 40, "on": "slurm", "slurm": {"partition": "main", "comment": "client"}}
            found = await client.call_tool("diagnose", asked, progress_callback=heard, read_timeout_seconds=400)
            assert not found.is_error, found
            told = found.structured_content
            assert told["status"] == "ok" and told["steps"] > 0 and told["protection"] != "in_place"
            again = await client.call_tool("diagnose_run", {"run": told["run"]})
            assert (again.structured_content["run"], again.structured_content["steps"]) == (told["run"], told["steps"])
            refused = await client.call_tool("diagnose", {**asked, "slurm": {"partition": "nowhere"}})
            assert refused.is_error and "Invalid partition" in refused.structured_content["error"]["message"]

    anyio.run(talk)
    assert any("is submitted" in line for line in progress) and any("runs on n" in line for line in progress), progress
    assert cluster.jobs() == {}
    assert fingerprint(user.project) == before


def test_a_benchmark_and_a_profile_as_jobs_over_the_protocol(user: User, cluster: Cluster):
    import anyio

    before = fingerprint(user.project)

    async def talk() -> None:
        async with connected(user, cluster) as client:
            asked = {"command": ["python", "train.py"], "on": "slurm", "slurm": {"partition": "main"}}
            window = {"wait": 2, "warmup": 1, "active": 3, "shapes": True}
            traced = await client.call_tool("profile_capture", asked | window, read_timeout_seconds=400)
            assert not traced.is_error, traced
            assert len(traced.structured_content["traces"]) == 1 and Path(traced.structured_content["traces"][0]).stat().st_size > 1000
            measured = {"warmup": 5, "steps": 20, "stalls": False}
            benched = await client.call_tool("gate_bench", asked | measured, read_timeout_seconds=400)
            assert not benched.is_error, benched
            written = json.loads(Path(benched.structured_content["metrics"]).read_text())
            assert len(written["repeats"][0]["step_ms"]) == 20 and min(written["repeats"][0]["step_ms"]) > 0
            refused = await client.call_tool("gate_compare", {"on": "slurm", "metrics_file": benched.structured_content["metrics"]})
            assert refused.is_error and "compared here" in refused.structured_content["error"]["message"]

    anyio.run(talk)
    assert cluster.jobs() == {}
    assert fingerprint(user.project) == before


def test_a_cancelled_call_cancels_its_job(user: User, cluster: Cluster):
    import anyio

    async def talk() -> None:
        async with connected(user, cluster) as client:
            async with anyio.create_task_group() as group:
                asked = {"command": ["python", "train.py"], "steps": 100000, "on": "slurm"}
                group.start_soon(client.call_tool, "diagnose", asked)
                await anyio.to_thread.run_sync(cluster.wait_for, "RUNNING")
                group.cancel_scope.cancel()
            with anyio.fail_after(60):
                while await anyio.to_thread.run_sync(cluster.jobs):
                    await anyio.sleep(0.5)

    anyio.run(talk)
