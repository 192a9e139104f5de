"""Files, directories, archives and W&B runs: what belongs together is read, and what was left out is said."""

from __future__ import annotations

import gzip
import io
import json
import random
import sys
import tarfile
import types
from pathlib import Path

import numpy as np
import profile_traces as made
import pytest

from trainflash.errors import UsageError
from trainflash.profile.analysis.build import summarize
from trainflash.profile.analysis.columns import ANALYSED
from trainflash.profile.events import Kind, content_digest
from trainflash.profile.export import Counter, Part, Process, Track
from trainflash.profile.sources import Request, load
from trainflash.profile.sources.directories import choose
from trainflash.profile.sources.kineto_header import rank_in_name
from trainflash.profile.sources.timeline import profile_of
from trainflash.profile.sources.wandb_runs import run_target
from trainflash.schema import to_plain


def written(directory: Path, files: dict[str, bytes]) -> Path:
    for name, data in files.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return directory


def kineto(rank: int) -> bytes:
    return made.text(made.kineto(steps=1, rank=rank))


def test_ranks_in_any_order_are_sorted_by_rank(tmp_path):
    names = {f"worker{rank}.{1694128201545 + rank}.pt.trace.json.gz": gzip.compress(kineto(rank)) for rank in (2, 0, 10)}
    profile = load(Request(profile_dir=written(tmp_path, names)))
    assert [trace.identity.rank for trace in profile.traces] == [0, 2, 10]
    files = tuple(tmp_path / name for name in names)
    assert content_digest(load(Request(trace_file=files)).traces) == content_digest(profile.traces)


def test_xplane_is_preferred_and_the_newest_recording_taken(tmp_path):
    session = "plugins/profile/2026_01_0{}/host.xplane.pb"
    files = {session.format(day): made.xspace(day) for day in (1, 2)}
    files |= {"plugins/profile/2026_01_02/perfetto_trace.json.gz": gzip.compress(kineto(0)), "plugins/profile/2026_01_02/notes.txt": b"x"}
    profile = load(Request(profile_dir=written(tmp_path, files)))
    assert [trace.source for trace in profile.traces] == ["xplane"] and len(profile.traces[0].events) == 4
    assert any("XPlane" in note for note in profile.notes) and any("2026_01_01" in note for note in profile.notes)


def test_what_belongs_together():
    assert choose(["a/perfetto_trace.json.gz", "a/host.trace.json.gz"], "x").names == ("a/perfetto_trace.json.gz",)
    handler = ["n1_10.1700000000001.pt.trace.json", "n1_10.1700000000002.pt.trace.json", "n1_11.1700000000001.pt.trace.json"]
    assert choose(handler, "x").names == tuple(handler[1:])
    assert choose(["t.trace.json", "t.trace.json.gz", "config.json"], "x").names == ("t.trace.json",)
    assert choose(["rank0.json", "rank1.json"], "x").names == ("rank0.json", "rank1.json")
    with pytest.raises(UsageError, match="holds no trace"):
        choose(["a.png", "b.txt"], "x")


@pytest.mark.parametrize(
    "name, rank",
    [("rank3.json", 3), ("trace_rank_12.json.gz", 12), ("worker4_step_12.1694.pt.trace.json", 4), ("host_17.1.pt.trace.json", None),
     ("frank7.json", None), ("rank-0.x.json", 0)],
)  # fmt: skip
def test_ranks_in_names(name, rank):
    assert rank_in_name(name) == rank


def archive(packed: bool) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz" if packed else "w") as tar:
        for rank in range(4):
            data = kineto(rank)
            info = tarfile.TarInfo(f"run/rank{rank}.pt.trace.json")
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return out.getvalue()


@pytest.mark.parametrize("packed", [False, True])
def test_a_tar_of_ranks(tmp_path, packed):
    path = tmp_path / "ranks"
    path.write_bytes(archive(packed))
    profile = load(Request(trace_file=(path,)))
    assert [trace.identity.rank for trace in profile.traces] == [0, 1, 2, 3] and profile.notes == ()
    rng = random.Random(3)
    whole = path.read_bytes()
    for cut in [rng.randrange(300, len(whole) - (20 if packed else 10_000)) for _ in range(20)]:
        path.write_bytes(whole[:cut])
        try:
            found = load(Request(trace_file=(path,)))
        except UsageError as refused:
            assert "\n" not in refused.message
            continue
        assert found.notes or any(trace.quality.truncated for trace in found.traces) or len(found.traces) == 4, cut


@pytest.mark.parametrize(
    "request_of, said",
    [
        (lambda at: Request(), "no trace was named"),
        (lambda at: Request(trace_file=(at / "a",), profile_dir=at), "exclude each other"),
        (lambda at: Request(trace_file=(at / "absent.json",)), "does not exist"),
        (lambda at: Request(profile_dir=at / "absent"), "does not exist"),
        (lambda at: Request(profile_dir=at), "holds no trace"),
        (lambda at: Request(trace_file=(at,)), "is a directory"),
        (lambda at: Request(xplane_file=(written(at, {"x.pb": b"text"}) / "x.pb",)), "no plane"),
        (lambda at: Request(profile_dir=written(at, {"a.trace.json": b"{}"})), "no trace that can be read"),
        (lambda at: Request(trace_file=(written(at, {"a.json": kineto(0)}) / "a.json",), xplane_output_dir=at / "t"), "need an XPlane"),
        (lambda at: Request(artifact="nonsense"), "is no artifact"),
        (lambda at: Request(run_target="abc123"), "says not whose"),
    ],
)
def test_bad_input_gets_one_line_and_code_2(tmp_path, request_of, said):
    with pytest.raises(UsageError) as refused:
        load(request_of(tmp_path))
    assert said in refused.value.message and "\n" not in refused.value.message and refused.value.exit_code == 2


@pytest.mark.parametrize(
    "text, entity, project",
    [("e/p/r1", None, None), ("r1", "e", "p"), ("https://wandb.ai/e/p/runs/r1?nw=x", None, None), ("https://w.example/e/p/r1", None, None)],
)
def test_forms_of_a_run(text, entity, project):
    assert run_target(text, entity, project).path == "e/p/r1"


@pytest.mark.parametrize("text", ["e/p", "https://wandb.ai/e", "https://wandb.ai/e/p/sweeps/s1", "a/b/c/d", "e/../r"])
def test_what_is_no_run(text):
    with pytest.raises(UsageError):
        run_target(text, None, None)


def test_an_offline_run_needs_no_server(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "wandb", None)
    directory = written(tmp_path / "offline-run-1", {"files/media/rank0.pt.trace.json": kineto(0)})
    profile = load(Request(run_target=str(directory)))
    assert len(profile.traces) == 1 and profile.provenance["wandb_offline"]


class FakeArtifact:
    """What wandb's artifact gives; W&B's server cannot be had in a test."""

    type, name, aliases, created_at, qualified_name = "jax_profile", "run-1-profiler:v0", ["latest"], "2026-01-01", "e/p/run-1-profiler:v0"

    def download(self, root):
        return str(written(Path(root), {"plugins/profile/1/h.xplane.pb": made.xspace(3)}))

    def logged_by(self):
        return types.SimpleNamespace(path=["e", "p", "run-1"], name="quick-fox")


class WandbError(Exception):
    """What wandb's own errors are."""


def fake_wandb(monkeypatch, **api):
    module = types.ModuleType("wandb")
    module.api = types.SimpleNamespace(api_key=None)
    module.errors = types.SimpleNamespace(Error=WandbError)
    module.Api = lambda timeout: types.SimpleNamespace(**api)
    monkeypatch.setitem(sys.modules, "wandb", module)
    monkeypatch.setenv("WANDB_API_KEY", "x" * 40)


def test_an_artifact_is_fetched_below_the_download_root(tmp_path, monkeypatch):
    fake_wandb(monkeypatch, artifact=lambda reference: FakeArtifact())
    profile = load(Request(artifact="e/p/run-1-profiler:v0", download_root=tmp_path))
    assert profile.traces[0].source == "xplane" and profile.origin == "e/p/run-1-profiler:v0"
    assert profile.provenance["wandb_run"] == "e/p/run-1" and any(tmp_path.rglob("h.xplane.pb"))


def test_a_run_gives_its_newest_profile(tmp_path, monkeypatch):
    old = FakeArtifact()
    old.created_at, old.download = "2025-01-01", None
    run = types.SimpleNamespace(logged_artifacts=lambda: [old, FakeArtifact()], path=["e", "p", "run-1"], name="quick-fox", id="run-1")
    fake_wandb(monkeypatch, run=lambda path: run)
    assert load(Request(run_target="e/p/run-1", download_root=tmp_path)).traces


@pytest.mark.parametrize("kind", [ValueError, ConnectionError, WandbError])
def test_what_wandb_refuses_is_one_line(monkeypatch, kind):
    def refuse(path):
        raise kind("Could not find run <Run e/p/gone>\nmore")

    fake_wandb(monkeypatch, run=refuse)
    with pytest.raises(UsageError, match="does not give e/p/gone: Could not find run") as refused:
        load(Request(run_target="e/p/gone"))
    assert "\n" not in refused.value.message
    monkeypatch.delenv("WANDB_API_KEY")
    monkeypatch.delenv("WANDB_IDENTITY_TOKEN_FILE", raising=False)
    with pytest.raises(UsageError, match="no credentials"):
        load(Request(run_target="e/p/gone"))
    monkeypatch.setitem(sys.modules, "wandb", None)
    with pytest.raises(UsageError, match="package wandb"):
        load(Request(artifact="e/p/a:v0"))


def test_a_run_of_the_probe_is_a_profile():
    steps = Track("steps", (Part(("step",), [0, 100], [100, 200], numbered=True),))
    phases = Track("phases", (Part(("Fwd",), [0, 100], [40, 140]), Part(("mark",), [50])))
    device = Track("device", (Part(("Fwd", "Bwd"), [10, 60], [50, 90], [0, 1]),))
    profile = profile_of(
        [(0, [Process(11, "rank 0", (steps, phases, device))])], [Counter("memory", "MB", [5], [7.0])], "run-1", {"run": "run-1"}
    )
    trace = profile.traces[0]
    assert trace.column("step").values.tolist() == [0, 1] and len(trace.rows(Kind.ANNOTATION)) == len(trace.rows(Kind.HOST_OP)) == 2
    assert len(trace.rows(Kind.DEVICE_ANNOTATION)) == 2 and len(trace.marks.t_ns) == 1 and trace.counters[0].value.tolist() == [7]


TRACES = Path(__file__).resolve().parents[3] / "shared" / "traces"
needs_traces = pytest.mark.skipif(not TRACES.is_dir(), reason="the real traces are not here")


def union_ms(trace) -> float:
    rows = trace.rows(Kind.KERNEL, Kind.MEMCPY, Kind.MEMSET)
    covered, reached = 0, -(1 << 62)
    spans = np.stack([trace.events.start_ns[rows], trace.events.start_ns[rows] + trace.events.duration_ns[rows]], 1)
    for start, end in sorted(map(tuple, spans.tolist())):
        covered += max(0, end - max(start, reached))
        reached = max(reached, end)
    return covered / 1e6


@needs_traces
@pytest.mark.parametrize(
    "name, complete, kernels, kernel_ms, busy_ms, span_ms",
    [
        ("resnet50_v100_workers0", 44_666, 8_772, 591.532, 603.558, 996.477),
        ("resnet50_v100_workers4", 41_906, 8_868, 594.868, 614.413, 801.55),
        ("a100_nccl_3steps", None, 2_700, 162.532, 157.500, 660.551),
        ("h100_bert_small", None, 60, 0.307, None, None),
        ("torch_compile_triton", None, 12, 12.549, 12.549, 12.549),
    ],
)
def test_figures_of_real_traces(name, complete, kernels, kernel_ms, busy_ms, span_ms):
    trace = load(Request(trace_file=(TRACES / "kineto" / f"{name}.json.gz",))).traces[0]
    rows = trace.rows(Kind.KERNEL)
    assert complete is None or len(trace.events) == complete
    assert len(rows) == kernels
    assert trace.events.duration_ns[rows].sum() / 1e6 == pytest.approx(kernel_ms, abs=6e-4)
    assert busy_ms is None or union_ms(trace) == pytest.approx(busy_ms, abs=6e-4)
    work = trace.rows(Kind.KERNEL, Kind.MEMCPY, Kind.MEMSET)
    starts, ends = trace.events.start_ns[work], trace.events.start_ns[work] + trace.events.duration_ns[work]
    assert span_ms is None or (ends.max() - starts.min()) / 1e6 == pytest.approx(span_ms, abs=6e-4)
    assert trace.quality.unparsed == trace.quality.unmatched == 0 and not trace.quality.truncated


@needs_traces
def test_real_ranks_in_an_archive():
    profile = load(Request(trace_file=(TRACES / "kineto" / "dlrm_8rank_v100.tar.gz",)))
    nccl_ms = []
    for trace in profile.traces:
        rows = trace.rows(Kind.KERNEL)
        rows = rows[np.isin(trace.events.name[rows], trace.ids(lambda name: "nccl" in name))]
        nccl_ms.append(trace.events.duration_ns[rows].sum() / 1e6)
    assert [trace.identity.rank for trace in profile.traces] == list(range(8))
    assert nccl_ms == pytest.approx([5.798, 11.336, 3.492, 9.774, 6.587, 6.251, 3.558, 1.746], abs=6e-4)


@needs_traces
def test_a_real_xplane():
    profile = load(Request(profile_dir=TRACES / "xplane"))
    trace = profile.traces[0]
    assert (len(trace.events), len(trace.rows(Kind.KERNEL))) == (3782, 54)
    assert len(trace.column("correlation")) == 108 and trace.quality.unparsed == 0
    assert json.dumps(dict(trace.provenance))


def test_a_summary_reads_only_what_it_asks_for_and_is_the_same(tmp_path):
    path = written(tmp_path, {"rank0.json": kineto(0)}) / "rank0.json"
    whole, asked = load(Request(trace_file=(path,))), load(Request(trace_file=(path,), columns=ANALYSED))
    assert "grid" in whole.traces[0].side and not set(asked.traces[0].side) - ANALYSED
    plain, same = (to_plain(summarize(profile)) for profile in (whole, asked))
    for identity in ("digest", "trace_provenance"):  # of what was read
        plain.pop(identity), same.pop(identity)
    assert plain == same
    with pytest.raises(KeyError, match="'grid' was not read"):
        asked.traces[0].column("grid")


def test_steps_counted_by_twos_have_times(tmp_path):
    """Numbers that never follow one another, kept in few bytes."""
    events = [event for event in made.kineto(steps=3)["traceEvents"] if "ProfilerStep#4" not in str(event.get("name"))]
    path = written(tmp_path, {"rank0.json": made.text({**made.kineto(steps=1), "traceEvents": events})}) / "rank0.json"
    assert summarize(load(Request(trace_file=(path,)))).step_time.all_steps.count == 2
