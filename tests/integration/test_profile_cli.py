"""The commands of `trainflash profile` on small traces written here: answers as JSON, files that appear whole, one line for bad input."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from trainflash.cli import main

PNG = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x06\x00\x00\x00\x1f\x15\xc4\x89"


def write_trace(path: Path, loading: int = 30_000, steps: int = 6, rank: int | None = None) -> Path:
    """A Kineto trace of a loop that loads, computes and reduces."""
    events, at, correlation = [], 1_700_000_000_000_000, 1
    for number in range(steps):
        begin = at

        def host(category, name, start, duration, **arguments):
            events.append({"ph": "X", "cat": category, "name": name, "pid": 10, "tid": 10, "ts": start, "dur": duration, "args": arguments})

        def device(category, name, start, duration, **arguments):
            events.append({"ph": "X", "cat": category, "name": name, "pid": 0, "tid": 7, "ts": start, "dur": duration,
                           "args": {"device": 0, "stream": 7, **arguments}})  # fmt: skip

        host("cpu_op", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", at + 5, loading, **{"External id": 5 * number + 1})
        at += loading + 10
        host("cpu_op", "aten::mm", at, 50, **{"External id": 5 * number + 2, "Input Dims": [[8, 16], [16, 4]]})
        host("cuda_runtime", "cudaLaunchKernel", at + 5, 10, correlation=correlation)
        device("kernel", "ampere_sgemm_128x64_tn", at + 30, 20_000, correlation=correlation)
        host("user_annotation", "nccl:all_reduce", at + 60, 30)
        host("cuda_runtime", "cudaLaunchKernel", at + 65, 10, correlation=correlation + 1)
        device("kernel", "ncclDevKernel_AllReduce_Sum_f32_RING_LL", at + 20_040, 5_000, correlation=correlation + 1)
        correlation += 2
        at += 26_000
        host("user_annotation", f"ProfilerStep#{number}", begin, at - begin)
    events.append(
        {
            "ph": "X",
            "cat": "Trace",
            "name": "PyTorch Profiler (0)",
            "pid": "Spans",
            "tid": "PyTorch Profiler",
            "ts": 1_700_000_000_000_000,
            "dur": at - 1_700_000_000_000_000,
        }
    )
    document = {"schemaVersion": 1, "traceEvents": events, "deviceProperties": [{"id": 0, "name": "NVIDIA H100"}]}
    if rank is not None:
        document["distributedInfo"] = {"backend": "nccl", "rank": rank, "world_size": 2}
    text = json.dumps(document).encode()
    path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)
    return path


def run(capsys, *words):
    code = main([*map(str, words), "--json"])
    captured = capsys.readouterr()
    return code, json.loads(captured.out), captured.err


@pytest.fixture
def summaries(tmp_path, capsys):
    made = {}
    for name, loading in (("before", 30_000), ("after", 100)):
        made[name] = tmp_path / f"{name}.json"
        trace = write_trace(tmp_path / f"{name}.pt.trace.json.gz", loading)
        assert run(capsys, "profile", "summarize", "--trace-file", trace, "--output", made[name])[0] == 0
    return made


def test_summarize_writes_one_document_with_the_promised_keys(tmp_path, capsys):
    trace = write_trace(tmp_path / "t.json")
    code, made, _ = run(capsys, "profile", "summarize", trace, "--breakdown-mode", "exclusive_per_track", "--warmup-steps", 2)
    assert code == 0 and made["schema"] == made["schema_version"] == "profile_summary.v1" and made["status"] == "ok"
    for key in ("trace_overview", "step_time", "time_breakdown", "hot_ops", "semantic_families", "communication_ops", "gap_before_ops",
                "hierarchical_regions", "gap_region_contexts", "optimization_candidates", "trace_provenance", "run_metadata"):  # fmt: skip
        assert key in made
    assert made["time_breakdown"]["duration_basis"] == "exclusive_per_track" and made["step_time"]["warmup_steps_ignored"] == 2
    assert {"payload_op", "marker_op"} <= set(made["gap_before_ops"][0])
    assert made["trace_overview"]["suspected_truncation"] is False and made["trace_overview"]["quality_warnings"] == []


def test_a_file_plain_or_packed_or_in_a_directory_is_one_trace(tmp_path, capsys):
    folder = tmp_path / "plugins" / "profile" / "2026_01_01"
    folder.mkdir(parents=True)
    ways = [(write_trace(tmp_path / "t.json"),), ("--trace-file", write_trace(tmp_path / "t.json.gz"))]
    write_trace(folder / "host.trace.json.gz")
    ways.append(("--profile-dir", tmp_path / "plugins" / ".." / "plugins"))
    digests = {run(capsys, "profile", "summarize", *way)[1]["digest"] for way in ways}
    assert len(digests) == 1


def test_ranks_are_named_one_after_the_other(tmp_path, capsys):
    traces = [write_trace(tmp_path / f"rank{rank}.json", rank=rank) for rank in (0, 1)]
    _, made, _ = run(capsys, "profile", "summarize", "--trace-file", traces[0], "--trace-file", traces[1])
    assert [each["rank"] for each in made["ranks"]] == [0, 1] and made["alignment"]["collectives"] == 6


def test_a_trace_is_given_back_slimmed_with_the_same_figures(tmp_path, capsys):
    path, slim = write_trace(tmp_path / "trace.json"), tmp_path / "slim.json.gz"
    code, document, _ = run(capsys, "profile", "export", path, "--output", slim)
    assert code == 0 and (document["schema"], document["source"], len(document["files"])) == ("profile_export.v1", str(path), 1)
    before, after = (run(capsys, "profile", "summarize", each)[1] for each in (path, slim))
    for key in ("step_time", "time_breakdown", "idle", "hot_ops", "communication_ops"):
        assert before[key] == after[key]
    assert slim.stat().st_size < path.stat().st_size / 4
    assert run(capsys, "profile", "export", path)[0] == 2 and run(capsys, "profile", "export", path, "--output", tmp_path)[0] == 2


def test_query_report_compare_track_history_bundle_publish(summaries, tmp_path, capsys):
    before, after = summaries["before"], summaries["after"]
    code, answer, _ = run(capsys, "profile", "query", "--summary", before, "--question", "What should we try next?")
    assert code == 0 and answer["schema"] == "profile_query.v1" and answer["results"][0]["finding"] == "input_cpu"
    code, rows, _ = run(capsys, "profile", "query", "--summary", before, "--select", "ops", "--sort", "exclusive", "--limit", 1)
    assert code == 0 and len(rows["results"]) == 1 and rows["results"][0]["name"] == "ampere_sgemm_128x64_tn"
    for name in ("report.md", "report.html"):
        code, told, _ = run(capsys, "profile", "report", "--summary", before, "--output", tmp_path / name)
        assert code == 0 and told["output"] == str(tmp_path / name) and "waits for batches" in (tmp_path / name).read_text()
    code, changed, _ = run(capsys, "profile", "compare", "--before", before, "--after", after, "--strict-provenance")
    assert code == 0 and changed["schema"] == "profile_compare.v1" and changed["findings_gone"] == ["data_loading"]
    history = tmp_path / "history.jsonl"
    code, judged, _ = run(capsys, "profile", "track", "--before", before, "--after", after, "--label", "a", "--history", history)
    assert code == 0 and judged["result"] == "warn" and judged["label"] == "a", "the share of communication grew as the step shrank"
    code, judged, _ = run(capsys, "profile", "track", "--before", after, "--after", before, "--label", "b", "--history", history)
    assert code == 4 and judged["result"] == "fail" and judged["status"] == "rejected"
    code, found, _ = run(capsys, "profile", "history", "--history", history)
    assert code == 0 and found["num_records"] == 2 and [each["label"] for each in found["trend"]] == ["a", "b"]
    out = tmp_path / "bundle"
    for _ in range(2):  # an earlier bundle is replaced
        code, made, _ = run(capsys, "profile", "bundle", "--before-summary", before, "--after-summary", after, "--output-dir", out)
        assert code == 0 and sorted(path.name for path in out.iterdir()) == sorted(["bundle.json", *made["files"].values()])
    code, plan, _ = run(
        capsys, "profile", "publish", "--summary", before, "--report", tmp_path / "report.md", "--alias", "best", "--dry-run"
    )
    assert code == 0 and plan["mode"] == "dry-run" and plan["aliases"] == ["best"] and len(plan["files"]) == 2
    assert not [path for path in tmp_path.rglob("*") if path.name.startswith(".") and path.suffix != ".lock"], (
        "nothing half-written is left"
    )


def test_text_for_people(summaries, capsys):
    for words in (
        ["query", "--summary", summaries["before"], "--question", "Why is the device idle?"],
        ["report", "--summary", summaries["before"]],
        ["compare", "--before", summaries["before"], "--after", summaries["after"]],
        ["track", "--before", summaries["before"], "--after", summaries["after"]],
    ):
        assert main(["profile", *map(str, words)]) == 0
        assert "data" in capsys.readouterr().out


def bad(tmp_path: Path) -> dict[str, list]:
    (tmp_path / "empty.json").write_text("")
    (tmp_path / "picture.png").write_bytes(PNG)
    (tmp_path / "folder").mkdir()
    (tmp_path / "other.json").write_text('{"schema": "profile_summary.v9"}')
    (tmp_path / "broken.json").write_text('{"schema": "profile_summary.v1", "digest"')
    (tmp_path / "partial.json").write_text('{"schema": "profile_summary.v1", "digest": "a"}')
    (tmp_path / "bytes.json").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "held").mkdir()
    (tmp_path / "held" / "thesis.txt").write_text("mine")
    trace = write_trace(tmp_path / "good.json")
    summarize, query = ["profile", "summarize"], ["profile", "query", "--question", "top ops", "--summary"]
    return {
        "empty file": [*summarize, "--trace-file", tmp_path / "empty.json"],
        "directory without traces": [*summarize, "--profile-dir", tmp_path / "folder"],
        "picture": [*summarize, tmp_path / "picture.png"],
        "missing": [*summarize, tmp_path / "gone.json"],
        "no source": summarize,
        "two sources": [*summarize, trace, "--profile-dir", tmp_path],
        "picture as XPlane": [*summarize, "--xplane-file", tmp_path / "picture.png"],
        "no place for the output": [*summarize, trace, "--output", tmp_path],
        "other version": [*query, tmp_path / "other.json"],
        "broken summary": [*query, tmp_path / "broken.json"],
        "half a summary": [*query, tmp_path / "partial.json"],
        "bytes": [*query, tmp_path / "bytes.json"],
        "a trace is no summary": [*query, trace],
        "directory": [*query, tmp_path],
        "no question": ["profile", "query", "--summary", trace],
        "no history": ["profile", "history", "--history", tmp_path / "gone.jsonl"],
        "directory with a thesis": [
            "profile",
            "bundle",
            "--before-trace-file",
            trace,
            "--after-trace-file",
            trace,
            "--output-dir",
            tmp_path / "held",
        ],
        "one side": ["profile", "bundle", "--before-trace-file", trace, "--output-dir", tmp_path / "new"],
        "bare run without project": [*summarize, "--run-target", "abc123"],
    }


CASES = (
    "empty file", "directory without traces", "picture", "missing", "no source", "two sources", "picture as XPlane",
    "no place for the output", "other version", "broken summary", "half a summary", "bytes", "a trace is no summary", "directory",
    "no question", "no history", "directory with a thesis", "one side", "bare run without project",
)  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_bad_input_is_one_clear_line_and_code_2(case, tmp_path, capsys, monkeypatch):
    for name in ("WANDB_ENTITY", "WANDB_PROJECT", "WANDB_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    words = bad(tmp_path)[case]
    before = sorted(tmp_path.rglob("*"))
    code, told, err = run(capsys, *words)
    assert code == 2 and told["status"] == "error" and told["error"]["message"] and told["error"]["mend"], told
    assert "\n" not in told["error"]["message"] and "Traceback" not in err
    assert sorted(tmp_path.rglob("*")) == before, "nothing was written"


def test_every_bad_case_is_run(tmp_path):
    assert set(CASES) == set(bad(tmp_path))


def test_one_trace_twice_is_refused_when_strict(summaries, capsys):
    code, told, _ = run(
        capsys, "profile", "compare", "--before", summaries["before"], "--after", summaries["before"], "--strict-provenance"
    )
    assert code == 2 and "one and the same" in told["error"]["message"]


def test_the_script_of_a_checkout(tmp_path):
    script = Path(__file__).resolve().parents[2] / "scripts" / "profile.py"
    trace = write_trace(tmp_path / "t.json")
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    done = subprocess.run(
        [sys.executable, str(script), "summarize", str(trace), "--json"], cwd=tmp_path, env=environment, capture_output=True, check=True
    )
    assert json.loads(done.stdout)["schema"] == "profile_summary.v1"
