"""Phase events of clients: what is refused, how disorder is repaired and said, and that the findings are those of the probe's own files."""

from __future__ import annotations

import json
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from probe_events import write_run

from trainflash import trace
from trainflash.diagnosis import diagnose
from trainflash.errors import UsageError
from trainflash.summary import summarize
from trainflash.trace import marked
from trainflash.workflow.phases import events as phase_events
from trainflash.workflow.phases import summary as phase_summary
from trainflash.workflow.phases.sessions import PhaseSession, PhaseSessions

STEP = (("Data", 6.0), ("Fwd", 2.0), ("Bwd", 1.5), ("Opt", 0.5))


def steps(count: int, *, at: float = 100.0, numbered: bool = True, rank: int = 0, phases=STEP) -> list[dict]:
    found = []
    for number in range(count):
        for phase, ms in phases:
            for event in ("start", "end"):
                at += ms / 1e3 if event == "end" else 0.0
                found.append({"phase": phase, "event": event, "ts": at, "rank": rank, **({"step": number} if numbered else {})})
    return found


def loaded(tmp_path, events) -> marked.Marked:
    path = tmp_path / "events.bin"
    path.write_bytes(b"".join(phase_events.from_list(events)))
    return marked.load(path, label="test", device="cpu")


@pytest.mark.parametrize("numbered", [True, False])
def test_steps_phases_and_shares(tmp_path, numbered):
    (rank,) = loaded(tmp_path, steps(50, numbered=numbered)).trace.ranks
    assert rank.steps == 50
    assert rank.wall_ns.tolist() == pytest.approx([10e6] * 50, abs=2)
    for phase, ms in STEP:
        assert rank.phase_ns[phase].tolist() == pytest.approx([ms * 1e6] * 50, abs=2)
    assert rank.phase_ns["Other"].sum() == 0


def test_a_step_is_an_update_where_nobody_numbers_them(tmp_path):
    accumulated = (*STEP[:3], *STEP)
    assert loaded(tmp_path, steps(20, numbered=False, phases=accumulated)).trace.ranks[0].steps == 20


def test_step_numbers_that_begin_again_each_epoch(tmp_path):
    epochs = [event for epoch in range(3) for event in steps(10, at=100 + epoch * 0.1)]
    assert loaded(tmp_path, epochs).trace.ranks[0].steps == 30


def test_an_incomplete_last_step_does_not_count(tmp_path):
    events = steps(20)
    assert loaded(tmp_path, events[:-1]).trace.ranks[0].steps == 19


def test_ranks_are_kept_apart(tmp_path):
    both = steps(20) + steps(20, rank=1, phases=(("Data", 1.0), ("Fwd", 9.0), ("Opt", 0.5)))
    found = loaded(tmp_path, both)
    assert found.ranks == (0, 1)
    first, second = found.trace.ranks
    assert (first.rank, second.rank, first.world_size) == (0, 1, 2)
    assert (int(first.phase_ns["Data"][0]), int(second.phase_ns["Data"][0])) == pytest.approx((6e6, 1e6), abs=2)


def test_any_order_of_arrival_gives_the_same_trace(tmp_path):
    events = steps(30)
    plain = loaded(tmp_path, events)
    shuffled = [dict(event, ts=event["ts"] + index * 1e-8) for index, event in enumerate(events)]  # no two at the same moment
    random.Random(3).shuffle(shuffled)
    found = loaded(tmp_path, shuffled)
    assert found.faults.late > 0
    assert found.trace.ranks[0].steps == plain.trace.ranks[0].steps
    assert found.trace.ranks[0].phase_ns["Data"].tolist() == pytest.approx(plain.trace.ranks[0].phase_ns["Data"].tolist(), abs=1000)


def test_starts_that_never_end_take_no_time_from_others(tmp_path):
    events = steps(30)
    lost = {"phase": "Eval", "event": "start", "ts": events[0]["ts"], "step": 0}
    found = loaded(tmp_path, [events[0], lost, *events[1:], {"phase": "Log", "event": "end", "ts": 100.05, "step": 5}])
    assert (found.faults.never_ended, found.faults.never_started) == ({"Eval": 1}, {"Log": 1})
    (rank,) = found.trace.ranks
    assert rank.phase_ns["Eval"].sum() == 0
    assert rank.phase_ns["Data"].tolist() == pytest.approx([6e6] * 30, abs=2)


def test_an_end_of_another_step_is_no_pair(tmp_path):
    events = [event for event in steps(30) if not (event["step"] == 3 and event["phase"] == "Bwd" and event["event"] == "end")]
    found = loaded(tmp_path, events)
    assert found.faults.never_ended == {"Bwd": 1}
    assert found.trace.ranks[0].phase_ns["Bwd"][3] == 0


def test_overlapping_phases_are_cut_and_said(tmp_path):
    events = []
    for number in range(20):
        at = 100 + number * 0.01
        for phase, start, end in (("Data", 0, 6), ("Fwd", 4, 8), ("Opt", 8, 10)):
            events += [{"phase": phase, "event": "start", "ts": at + start / 1e3, "step": number}]
            events += [{"phase": phase, "event": "end", "ts": at + end / 1e3, "step": number}]
    found = loaded(tmp_path, events)
    (rank,) = found.trace.ranks
    assert found.faults.overlapping == 20
    assert (int(rank.phase_ns["Data"][5]), int(rank.phase_ns["Fwd"][5])) == pytest.approx((4e6, 4e6), abs=2)


def test_a_time_of_another_clock_is_left_out(tmp_path):
    found = loaded(tmp_path, [{"phase": "Fwd", "event": "start", "ts": 1.7e9, "step": 0}, *steps(20)])
    assert found.faults.far == 1
    assert found.trace.ranks[0].steps == 20


@pytest.mark.parametrize(
    ("event", "said"),
    [
        ({"phase": "Forward", "event": "start"}, "no phase"),
        ({"phase": "Other", "event": "start"}, "no phase"),
        ({"event": "start"}, "no phase"),
        ({"phase": ["Fwd"], "event": "start"}, "no phase"),
        ({"phase": "Fwd", "event": "begin"}, "event is"),
        ({"phase": "Fwd"}, "event is"),
        ({"phase": "Fwd", "event": "start", "step": -1}, "step"),
        ({"phase": "Fwd", "event": "start", "step": 1.5}, "step"),
        ({"phase": "Fwd", "event": "start", "step": True}, "step"),
        ({"phase": "Fwd", "event": "start", "step": 2**31}, "step"),
        ({"phase": "Fwd", "event": "start", "rank": 70000}, "rank"),
        ({"phase": "Fwd", "event": "start", "metadata": {"rank": -1}}, "rank"),
        ({"phase": "Fwd", "event": "start", "metadata": [1]}, "metadata"),
        ({"phase": "Fwd", "event": "start", "ts": float("nan")}, "ts"),
        ({"phase": "Fwd", "event": "start", "ts": float("inf")}, "ts"),
        ({"phase": "Fwd", "event": "start", "ts": "now"}, "ts"),
        ({"phase": "Fwd", "event": "start", "ts": 1.7e12}, "ts"),
        ({"phase": "Fwd", "event": "start", "timestamp": 3}, "timestamp"),
    ],
)
def test_bad_events_are_refused_with_the_mend(event, said):
    with pytest.raises(UsageError) as refused:
        phase_events.packed(event)
    assert said in refused.value.message
    assert refused.value.mend


@pytest.mark.parametrize(
    "line", ['{"phase": "Fwd"', "[1]", '{"phase": "Fwd", "event": "start", "ts": NaN}', "[" * 2000, '"x"' + " " * 70000]
)
def test_bad_lines_are_refused_with_their_number(tmp_path, line):
    path = tmp_path / "trace.jsonl"
    path.write_text('{"phase": "Fwd", "event": "start", "ts": 1}\n\n' + line + "\n")
    with pytest.raises(UsageError, match=r"trace\.jsonl:3"):
        list(phase_events.from_file(path))


def test_only_files_are_read(tmp_path):
    for path in (tmp_path, tmp_path / "none", "/dev/zero"):
        with pytest.raises(UsageError):
            list(phase_events.from_file(type(tmp_path)(path)))


EVENTS = st.fixed_dictionaries(
    {
        "phase": st.sampled_from(phase_events.PHASES),
        "event": st.sampled_from(("start", "end")),
        "ts": st.one_of(st.floats(0, 1), st.floats(0, phase_events.LATEST_TS_S)),
        "rank": st.integers(0, 2),
    },
    optional={"step": st.integers(0, 5)},
)


@given(st.lists(EVENTS, max_size=60))
@settings(deadline=None, max_examples=40)
def test_no_events_break_the_accounting(tmp_path_factory, events):
    found = loaded(tmp_path_factory.mktemp("any"), events)
    assert found.events == len(events)
    pairs = sum(len(lengths) for lengths in found.durations_ms.values())
    faults = found.faults
    assert 2 * pairs + sum(faults.never_ended.values()) + sum(faults.never_started.values()) + faults.far == len(events)
    assert all((lengths >= 0).all() for lengths in found.durations_ms.values())
    for rank in found.trace.ranks if found.trace else ():
        assert sum(column.sum() for column in rank.phase_ns.values()) == rank.wall_ns.sum()
        assert all((column >= 0).all() for column in rank.phase_ns.values())


def test_the_hints_are_the_findings_of_diagnose(tmp_path):
    """The same phases, once as the probe's files and once as a client's events."""
    run, events = tmp_path / "run", []
    run.mkdir()
    words = []
    for number in range(60):
        at = number * 20.0
        spans = [("Data", 0, 9), ("Fwd", 9, 13), ("Bwd", 13, 16), ("Opt", 16, 17)] + ([("Log", 17, 19.5)] if number % 2 else [])
        for phase, start, end in spans:
            words += [(at + start, phase), (at + end, f"/{phase}")]
            events += [{"phase": phase, "event": "start", "ts": 50 + (at + start) / 1e3, "step": number}]
            events += [{"phase": phase, "event": "end", "ts": 50 + (at + end) / 1e3, "step": number}]
        words.append((at + 20, "step"))
    probed = diagnose(summarize(trace.load(write_run(run, words)), run="r", project="p"))
    sessions = PhaseSessions(tmp_path / "sessions")
    session = PhaseSession("0" * 32, "label", "2026-01-01T00:00:00Z", 0)
    (tmp_path / "sessions" / session.id).mkdir(parents=True)
    sessions.events_path(session.id).write_bytes(b"".join(phase_events.from_list(events)))
    told = phase_summary.summary(sessions, session)
    assert [each["kind"] for each in told["findings"]] == [finding.kind for finding in probed.findings]
    assert [each["share"] for each in told["findings"]] == pytest.approx([finding.share for finding in probed.findings], abs=0.01)
    assert told["coverage"] == pytest.approx(probed.coverage, abs=0.01)
    assert len(told["findings"]) >= 2
    json.dumps(told, allow_nan=False)
