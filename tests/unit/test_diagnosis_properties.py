"""Whatever a summary says, a diagnosis comes out of it, in order, within bounds, and survives its file."""

from __future__ import annotations

import dataclasses
import typing
from dataclasses import replace

import compute_scenarios as c
import machine_scenarios as m
import scenarios as s
from hypothesis import given, settings
from hypothesis import strategies as st

from trainflash.diagnosis import DEFAULT, diagnose
from trainflash.diagnosis.overlaps import rivals, settle
from trainflash.diagnosis.ranking import ranked
from trainflash.diagnosis.rules import RULES
from trainflash.diagnosis.signals import read
from trainflash.schema import (
    PHASES,
    Attention,
    Collections,
    Communication,
    Compilation,
    DeviceTime,
    Diagnosis,
    InputTail,
    Memory,
    Numerics,
    Operators,
    PhaseStat,
    RankStat,
    Recompute,
    Spread,
    Summary,
    SyncPoint,
    Telemetry,
    Updates,
    WhatIf,
    dump_json,
    from_plain,
    to_plain,
)

PROGRAMS = (
    s.healthy(), s.stalled(), s.slow_getitem(), s.slow_disk(), s.hand_made_batches(), s.late_batches(), s.slow_collate(),
    s.restarted_workers(), s.evaluating(grad=True), s.saving(), s.printing(), s.anomaly(), s.many_threads(), s.busy_callback(), s.padded(),
    s.short_run(), c.heavy_update(), c.tiny_micro_batches(), c.handmade_attention(), c.checkpointed_blocks(), c.compiling(by_shape=True),
    c.tiny_operators(), c.changing_layout(), m.reading_tensors(), m.collecting(), m.late_rank(0, phase="Data"), m.talking_ranks(),
    m.hot_gpu(), m.emptying_the_cache(), m.launching(), m.half_precision_cnn(), m.searching_algorithms(), m.stopped_by_quota(),
    replace(s.slow_getitem(), repeated=(s.repeated(0.5), s.repeated(0.2, role="worker"))),
)  # fmt: skip
MIXED = [each.name for each in dataclasses.fields(Summary) if each.name not in {"phases", "coverage", "steps", "step_ms"}]
SHARES = st.floats(0.0, 1.0)
MEASURED = (
    Attention, Collections, Communication, Compilation, DeviceTime, InputTail, Memory, Numerics, Operators, RankStat, Recompute,
    SyncPoint, Telemetry, Updates, WhatIf,
)  # fmt: skip


def values(annotation: object) -> st.SearchStrategy:
    """Plausible and extreme values of one field's type: finite and not negative, as all measurements are."""
    arguments = typing.get_args(annotation)
    if typing.get_origin(annotation) is typing.Literal:
        return st.sampled_from(arguments)
    if typing.get_origin(annotation) is tuple and arguments[-1] is Ellipsis:
        return st.lists(values(arguments[0]), max_size=2).map(tuple)
    if typing.get_origin(annotation) is tuple:
        return st.tuples(*map(values, arguments))
    if typing.get_origin(annotation) is dict:
        keys = st.sampled_from(PHASES) if arguments[1] is float else st.text(max_size=3)
        return st.dictionaries(keys, values(arguments[1]), max_size=4)
    if arguments:
        return st.one_of(*map(values, arguments))
    if annotation is type(None):
        return st.none()
    if annotation is float:
        return st.floats(0.0, 1.0) | st.floats(0.0, 1e9) | st.sampled_from([5e-324, 1e-300, 1e9])  # ratios of these overflow
    if annotation is int:
        return st.integers(0, 50) | st.integers(0, 10**12)
    if annotation is str:
        return st.sampled_from(["", "Data", "Fwd", "Bwd", "Eval", "Other", "float32", "float64", "bfloat16", "train.py", "input_cpu"])
    if annotation is bool:
        return st.booleans()
    return built(annotation)


def built(kind: type) -> st.SearchStrategy:
    hints = typing.get_type_hints(kind)
    return st.builds(kind, **{each.name: values(hints[each.name]) for each in dataclasses.fields(kind)})


@st.composite
def phases(draw) -> dict[str, PhaseStat]:
    names = draw(st.sets(st.sampled_from(PHASES))) | {"Other"}
    sizes = {name: draw(SHARES) * (0.3 if name == "Other" else 1.0) for name in sorted(names)}
    whole = sum(sizes.values()) or 1.0
    found = {}
    for name, size in sizes.items():
        usual = draw(st.none() | st.floats(0.0, 1.0))
        found[name] = s.phase(size / whole, p50_of_mean=1.0 if usual is None else usual)
        if usual is None:
            found[name] = replace(found[name], p50_ms=None, p95_ms=None, p99_ms=None, per_occurrence=None)
    return found


@st.composite
def summaries(draw) -> Summary:
    """A program that has parts of several others, with measurements of any size."""
    hints = typing.get_type_hints(Summary)
    parts = {name: draw(st.sampled_from([getattr(program, name) for program in PROGRAMS])) for name in MIXED}
    for kind in draw(st.sets(st.sampled_from(MEASURED), max_size=3)):
        for name, annotation in hints.items():
            if kind in (annotation, *typing.get_args(annotation)):
                parts[name] = draw(values(annotation))
    shares = draw(phases())
    steps = draw(st.just(s.STEPS) | st.integers(0, 30))
    return Summary(
        steps=steps,
        phases=shares,
        coverage=1.0 - shares["Other"].share,
        step_ms=draw(built(Spread) | st.just(s.spread(s.STEP_MS))),
        **parts,
    )


@settings(max_examples=150, deadline=None)
@given(summaries())
def test_a_diagnosis_comes_out_of_any_summary(summary):
    found = diagnose(summary)
    assert found.abstained is not None or found.findings
    for finding in found.findings:
        assert 0.0 <= finding.share <= 1.0
        assert finding.summary
        assert finding.ceiling is None or finding.ceiling.how == "measured" or finding.ceiling.speedup >= 1.0
        assert finding.kind not in finding.tied_with or finding.kind in {"sync_point", "repeated_work", "throttling"}
    if found.together is not None:
        assert found.together.speedup >= 1.0
    assert from_plain(Diagnosis, to_plain(found)) == found
    assert dump_json(found)


@settings(max_examples=150, deadline=None)
@given(summaries())
def test_the_order_follows_the_weights_and_loses_nothing(summary):
    signals = read(summary, DEFAULT)
    claims = settle(signals, [made for rule in RULES for made in rule(signals, DEFAULT)], DEFAULT)
    order = [claim for claim in ranked(signals, claims, DEFAULT) if claim.finding.kind != "compute"]
    assert len(order) == len(claims)
    leaders = [claim.weight for claim in rivals(order)]
    if len(order) > 1:
        assert order[0].weight >= order[1].weight - DEFAULT.tie - 1e-6
    assert all(leaders[0] >= weight - 1e-6 for weight in leaders)
    healthy = ranked(signals, claims, DEFAULT)[0].finding.kind == "compute"
    assert healthy == (not leaders or (leaders[0] < DEFAULT.dominant - 1e-9 and sum(leaders) < DEFAULT.dominant_together))
