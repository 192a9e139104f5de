"""Baselines: written with where they came from, refused by the name of the field when they were edited or belong to something else."""

from __future__ import annotations

import json
import math

import pytest
from gate_documents import OTHER_PROFILE, PROFILE, evaluation, metrics, saved

from trainflash.errors import UsageError
from trainflash.gate import baselines
from trainflash.gate.comparison import CompareBaseline, no_baseline


@pytest.fixture
def folder(tmp_path):
    """Both baselines of one machine profile."""
    place = tmp_path / "bench" / "baselines"
    for name, document in (("metrics", metrics()), ("eval", evaluation())):
        baselines.write(baselines.load(saved(tmp_path / f"{name}.json", document)), place, by="main branch", branch="main")
    return place


def edit(path, change):
    plain = json.loads(path.read_text())
    change(plain)
    path.write_text(json.dumps(plain))


def test_a_baseline_says_where_it_came_from(folder):
    for kind in ("metrics", "eval"):
        found = baselines.stored(folder, PROFILE, kind)
        assert (found.provenance.commit, found.provenance.branch, found.provenance.by) == ("1" * 40, "main", "main branch")
        assert found.document == (metrics() if kind == "metrics" else evaluation())
    assert [path.name for path in sorted(folder.iterdir())] == [f"{PROFILE}.eval.json", f"{PROFILE}.metrics.json"]


def test_a_machine_without_a_baseline_is_told_how_to_make_one(folder):
    assert baselines.stored(folder, OTHER_PROFILE, "metrics") is None
    measured = baselines.Loaded("metrics", metrics(profile=OTHER_PROFILE), "metrics.json")
    result = no_baseline(measured, folder)
    assert (result.result, result.compared) == ("inconclusive", False)
    assert PROFILE in result.reasons[0] and "update-baseline --metrics metrics.json" in result.mend


@pytest.mark.parametrize(
    ("kind", "field", "value"),
    [
        ("metrics", "tokens_per_sec_p50", 1.0),
        ("metrics", "step_time_p50_ms", 99.0),
        ("metrics", "memory_peak_bytes", None),
        ("metrics", "repeats", []),
        ("metrics", "commit", "2" * 40),
        ("eval", "perplexity", 99.0),
        ("eval", "probes", []),
        ("eval", "shard_sha256", "00"),
    ],
)
def test_an_edit_by_hand_is_named(folder, kind, field, value):
    path = folder / f"{PROFILE}.{kind}.json"
    edit(path, lambda plain: plain[kind].update({field: value}))
    with pytest.raises(UsageError, match=rf"{kind}\.{field} was edited by hand") as refused:
        baselines.stored(folder, PROFILE, kind)
    assert refused.value.exit_code == 2 and "update-baseline" in refused.value.mend


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (lambda plain: plain["metrics"].pop("world_size"), "metrics.world_size"),
        (lambda plain: plain["metrics"].update(extra=1), "metrics.extra"),
        (lambda plain: plain.update(machine_profile=OTHER_PROFILE), "machine_profile"),
        (lambda plain: plain.update(document="gate_metrics.v9"), "gate_metrics.v9"),
        (lambda plain: plain.update(schema="gate_baseline.v9"), "gate_baseline.v9"),
        (lambda plain: plain.pop("seals"), "seals"),
        (lambda plain: plain.pop("metrics"), "kind is 'metrics'"),
        (lambda plain: plain.update(kind="speed"), "kind is 'speed'"),
        (lambda plain: plain.pop("provenance"), "provenance"),
        (lambda plain: plain["provenance"].update(by="me"), "by"),
    ],
)
def test_whatever_is_wrong_with_a_baseline_is_named(folder, change, named):
    path = folder / f"{PROFILE}.metrics.json"
    edit(path, change)
    with pytest.raises(UsageError) as refused:
        baselines.stored(folder, PROFILE, "metrics")
    assert named in refused.value.message and str(path) in refused.value.message


def test_a_baseline_under_another_name_is_refused(folder):
    (folder / f"{PROFILE}.metrics.json").rename(folder / f"{OTHER_PROFILE}.metrics.json")
    with pytest.raises(UsageError, match="machine_profile"):
        baselines.stored(folder, OTHER_PROFILE, "metrics")
    (folder / f"{PROFILE}.eval.json").rename(folder / f"{PROFILE}.metrics.json")
    with pytest.raises(UsageError, match="kind is eval"):
        baselines.stored(folder, PROFILE, "metrics")


def test_a_measured_document_is_no_baseline(folder):
    saved(folder / f"{PROFILE}.metrics.json", metrics())
    with pytest.raises(UsageError, match="does not say where it came from"):
        baselines.stored(folder, PROFILE, "metrics")


@pytest.mark.parametrize(
    ("edited", "named"),
    [
        ({"repeats": []}, "repeats hold no measured step"),
        ({"repeats": [{"step_ms": []}]}, "repeats hold no measured step"),
        ({"repeats": [{"step_ms": [1.0, 0.0]}]}, "took no time"),
        ({"measure_steps": 0}, "measure_steps"),
        ({"tokens_per_sec_p50": -1.0}, "tokens_per_sec_p50"),
        ({"step_time_p50_ms": math.nan}, "step_time_p50_ms is nan"),
        ({"repeats": [{"step_ms": [1.0, math.inf]}]}, "repeats[0].step_ms[1] is inf"),
        ({"tokens_per_sec_p50": "fast"}, "tokens_per_sec_p50"),
        ({"world_size": ...}, "world_size"),
        ({"schema": "gate_metrics.v7"}, "gate_metrics.v7"),
        ({"schema": ...}, "of no schema"),
    ],
)
def test_a_measured_document_that_cannot_be_is_refused_by_field(tmp_path, edited, named):
    path = saved(tmp_path / "metrics.json", metrics(), **edited)
    with pytest.raises(UsageError) as refused:
        CompareBaseline().compare(path, path)
    assert named in refused.value.message and refused.value.mend


@pytest.mark.parametrize("edited", [{"perplexity": 0.0}, {"probes": [{"name": "p", "accuracy": 130.0, "correct": 1, "total": 1}]}])
def test_an_evaluation_that_cannot_be_is_refused(tmp_path, edited):
    with pytest.raises(UsageError, match=next(iter(edited))):
        baselines.load(saved(tmp_path / "eval.json", evaluation(), **edited))


@pytest.mark.parametrize("content", [b"", b"{", b"[1]", b"\xff\xfe\x00", b'"x"', b"[" * 100_000])
def test_a_file_that_is_none_is_refused(tmp_path, content):
    path = tmp_path / "metrics.json"
    path.write_bytes(content)
    with pytest.raises(UsageError, match=r"metrics\.json"):
        baselines.load(path)
    with pytest.raises(UsageError, match=r"gone\.json"):
        baselines.load(tmp_path / "gone.json")


def test_a_profile_that_leads_elsewhere_is_refused(tmp_path):
    for profile in ("../etc/passwd", "", ".hidden"):
        with pytest.raises(UsageError, match="machine profile"):
            baselines.path_of(tmp_path, profile, "metrics")
