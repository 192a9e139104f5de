"""Event files → steps: exclusive accounting, boundaries, broken files."""

from __future__ import annotations

import json
import os
import random
import struct
import time

import numpy as np
import pytest
from probe_events import BASE_NS, MS, plain_step, word, write_run

from trainflash.errors import ProgramFailed, UsageError
from trainflash.launch import steps_so_far
from trainflash.schema.runs import PHASES, Location
from trainflash.trace import load
from trainflash.trace.facts import Facts


def phases_ms(rank, step: int) -> dict[str, float]:
    return {name: values[step] / MS for name, values in rank.phase_ns.items() if values[step]}


def only_rank(directory):
    return load(directory).ranks[0]


def test_a_plain_step_is_split_into_its_phases(tmp_path):
    rank = only_rank(write_run(tmp_path, plain_step(1) + plain_step(11)))
    assert rank.steps == 2
    assert phases_ms(rank, 1) == {"Data": 4, "Fwd": 3, "Bwd": 1, "Opt": 1, "Other": 1}
    assert rank.step_start_ns.tolist() == [BASE_NS + at * MS for at in (1, 11, 21)]


def test_the_way_out_of_a_call_belongs_to_it_and_longer_gaps_do_not(tmp_path):
    def one(at):
        gaps = [
            (at, "data_of+1"),
            (at + 4, "/Data"),
            (at + 4.02, "Fwd"),
            (at + 8, "/Fwd"),
            (at + 8.2, "Bwd"),
            (at + 9, "/Bwd"),
            (at + 10, "step"),
        ]
        return gaps

    rank = only_rank(write_run(tmp_path, [event for number in range(4) for event in one(1 + 10 * number)]))
    assert {name: round(value, 3) for name, value in phases_ms(rank, 1).items()} == {"Data": 4.02, "Fwd": 3.98, "Bwd": 0.8, "Other": 1.2}


def test_a_span_inside_another_is_taken_out_of_it(tmp_path):
    events = [(1, "Opt"), (2, "Fwd"), (5, "/Fwd"), (5, "Bwd"), (6, "/Bwd"), (8, "/Opt"), (9, "step")]
    rank = only_rank(write_run(tmp_path, events))
    assert phases_ms(rank, 0) == {"Opt": 3, "Fwd": 3, "Bwd": 1, "Other": 1}
    assert rank.occurrences["Opt"].exclusive_ns.tolist() == [3 * MS]
    assert (rank.occurrences["Opt"].end_ns - rank.occurrences["Opt"].start_ns).tolist() == [7 * MS]


def test_inside_an_evaluation_only_checkpoint_and_log_stand_out(tmp_path):
    evaluation = [(11, "Eval"), (12, "data_of+1"), (14, "/Data"), (14, "Fwd"), (15, "/Fwd")]
    saving = [(15, "Ckpt"), (17, "Log"), (18, "/Log"), (18, "/Ckpt"), (20, "/Eval"), (21, "step")]
    rank = only_rank(write_run(tmp_path, plain_step(1) + evaluation + saving))
    assert phases_ms(rank, 1) == {"Eval": 6, "Ckpt": 2, "Log": 1, "Other": 1}
    assert len(rank.occurrences["Fwd"].start_ns) == 1  # the one of the first step: the evaluation's forward is none
    assert rank.occurrences["Eval"].exclusive_ns.tolist() == [6 * MS]
    assert rank.occurrences["Eval"].step.tolist() == [1]


def test_random_nesting_adds_up_and_agrees_with_a_stack(tmp_path):
    source = random.Random(5)
    names = ["Data", "H2D", "Fwd", "Bwd", "Opt", "Ckpt", "Log"]
    events, stack, at, expected, steps = [(1, "Data"), (2, "/Data")], [], 2, [dict.fromkeys(PHASES, 0)], 0
    expected[0]["Data"] = 1
    for _ in range(4000):
        advance = source.randint(1, 4)
        expected[steps][stack[-1] if stack else "Other"] += advance
        at += advance
        choice = source.random()
        if stack and choice < 0.5:
            events.append((at, "/" + stack.pop()))
        elif len(stack) < 6 and choice < 0.9:
            stack.append(source.choice(names))
            events.append((at, stack[-1]))
        elif not stack:
            events.append((at, "step"))
            steps += 1
            expected.append(dict.fromkeys(PHASES, 0))
        else:
            expected[steps][stack[-1]] -= advance
            at -= advance
    rank = only_rank(write_run(tmp_path, events))
    assert rank.steps == steps > 3
    for step in range(steps):
        assert {name: rank.phase_ns[name][step] // MS for name in PHASES} == expected[step]
    assert np.array_equal(sum(rank.phase_ns.values()), rank.wall_ns)


def test_a_step_whose_update_is_done_counts_without_its_boundary(tmp_path):
    events = plain_step(1) + plain_step(11)[:-1]
    assert only_rank(write_run(tmp_path, events, steps=2)).steps == 2
    assert only_rank(write_run(tmp_path, events, steps=1)).steps == 1
    assert steps_so_far(tmp_path) == 1


def test_a_tail_of_garbage_is_dropped(tmp_path):
    clean = plain_step(1) + plain_step(11)
    for garbage in (b"\xff" * 24, b"\x01\x02\x03", struct.pack("<Q", word(1.0e9, "Fwd")), struct.pack("<Q", (30 * MS << 12) | 77)):
        rank = only_rank(write_run(tmp_path, clean, tail=garbage))
        assert rank.steps == 2 and rank.end_ns == BASE_NS + 21 * MS


def test_holes_and_a_late_slot_do_no_harm(tmp_path):
    events = plain_step(1)
    late = [*events[:3], 0, events[4], events[3], *events[5:]]
    assert phases_ms(only_rank(write_run(tmp_path, late)), 0)["Fwd"] == 3


def test_a_phase_that_began_while_the_process_had_no_core_cuts_nothing_off(tmp_path):
    """The begin is written where the boundary was, which may lie seconds before a sample that another thread took meanwhile."""
    first, second = plain_step(1), plain_step(11)
    stretched = [(at + 5_000, name) for at, name in second[1:]]
    rank = only_rank(write_run(tmp_path, [*first, (4_990, "sample_of+6"), second[0], *stretched, *plain_step(5_021)]))
    assert rank.steps == 3 and rank.step_start_ns.tolist() == [BASE_NS + at * MS for at in (1, 11, 5_021, 5_031)]


def test_marks_that_do_not_nest_are_repaired(tmp_path):
    events = [(1, "/Log"), (1, "Data"), (2, "/Data"), (2, "Fwd"), (3, "Bwd"), (4, "/Fwd"), (5, "step")]
    rank = only_rank(write_run(tmp_path, events))
    assert phases_ms(rank, 0) == {"Data": 1, "Fwd": 2, "Other": 1}


def test_samples_get_the_phase_and_the_time_since_the_last(tmp_path):
    facts = [{"k": "place", "id": 1, "at": ["/home/me/project/a/data.py", 12, "load"]}]
    events = sorted([*plain_step(1), (2, "sample_of+1"), (5, "sample_of+0"), (9, "sample_of+1")], key=lambda event: event[0])
    samples = only_rank(write_run(tmp_path, events, facts=facts)).samples
    assert samples.locations == (Location("a/data.py", 12, "load"),)
    assert samples.place.tolist() == [0, -1, 0]
    assert [PHASES[index] for index in samples.phase] == ["Data", "Fwd", "Bwd"]
    assert samples.weight_ns.tolist()[1:] == [3 * MS, 4 * MS]


def test_a_sample_that_a_long_call_held_up_has_the_phase_in_which_it_was_due(tmp_path):
    facts = [{"k": "place", "id": 1, "at": ["/home/me/project/train.py", 12, "keep"]}]
    timer = {"k": "sampling", "armed_ns": BASE_NS, "interval_ns": 2 * MS}
    events = sorted([*plain_step(1), (2.1, "sample_of+1"), (5.9, "sample_of+1")], key=lambda event: event[0])
    for name in ("known", "old"):
        (tmp_path / name).mkdir()
    known = only_rank(write_run(tmp_path / "known", events, facts=[*facts, timer])).samples
    assert [PHASES[index] for index in known.phase] == ["Data", "Data"] and known.weight_ns.tolist()[1] == round(3.8 * MS)
    assert [PHASES[index] for index in only_rank(write_run(tmp_path / "old", events, facts=facts)).samples.phase] == ["Data", "Fwd"]


def test_a_worker_belongs_to_the_loader_that_started_it(tmp_path):
    write_run(tmp_path, plain_step(1), facts=[{"k": "iter", "loader": 3, "workers": [8, 9]}], pid=7)
    fetch = [(1, "fetch"), (4, "collate"), (5, "fetched"), (2 * MS << 12) | 3, (6, "fetch"), (7, "fetched"), (0 << 12) | 3]
    write_run(tmp_path, fetch, pid=9, ppid=7, role="worker")
    worker = load(tmp_path).workers[0]
    assert (worker.parent, worker.loader) == (7, 3)
    assert worker.fetches.getitem_ns.tolist() == [3 * MS] and worker.fetches.collate_ns.tolist() == [MS]
    assert worker.fetches.cpu_ns.tolist() == [2 * MS]


def test_equal_work_in_two_processes_is_repeated_work(tmp_path):
    def calls(result: str) -> list:
        place = {"k": "function", "id": 0, "at": ["/home/me/project/data.py", 5, "parse"]}
        return [place, {"k": "calls", "where": "fetch", "window_ns": 9, "rows": [[0, "a", result, 4, -1, "fetch", True, False, 64]]}]

    write_run(tmp_path, plain_step(1), facts=calls("same"), pid=7)
    write_run(tmp_path, plain_step(1), facts=calls("same"), pid=8, rank=1)
    first, second = load(tmp_path).ranks
    assert first.repeated == ()
    assert [(call.qualname, call.repeats, call.inclusive_ns, call.window_ns) for call in second.repeated] == [("parse", 1, 4, 9)]
    write_run(tmp_path, plain_step(1), facts=calls("other"), pid=8, rank=1)
    assert load(tmp_path).ranks[1].repeated == ()


def test_in_a_collation_only_samples_seen_before_can_repeat(tmp_path):
    def window(chosen: list[str], texts: list[str]) -> dict:
        rows = [[0, text, f"ids of {text}", 4, -1, "collate", True, False, 64] for text in texts]
        return {"k": "calls", "where": "collate", "window_ns": 20, "batch": len(texts), "chosen": chosen, "rows": rows}

    function = {"k": "function", "id": 0, "at": ["/home/me/project/data.py", 5, "tokenize"]}
    facts = [function, window(["8:0"], ["a", "b", "c", "d"]), window(["8:0"], ["e", "a", "f", "g"])]
    write_run(tmp_path, plain_step(1), facts=facts, pid=7)
    (call,) = load(tmp_path).ranks[0].repeated
    assert (call.calls, call.comparable, call.repeats) == (8, 1, 1)


def test_no_training_says_why(tmp_path):
    with pytest.raises(UsageError):
        load(tmp_path / "absent")
    with pytest.raises(ProgramFailed, match="torch was not imported, or the probe could not enter"):
        load(tmp_path)
    (tmp_path / "notice.jsonl").write_text('{"notice": "torch 2.13.0"}\n')
    with pytest.raises(ProgramFailed, match="nothing was trained"):
        load(tmp_path)
    write_run(tmp_path, [(1, "Data"), (2, "/Data")])
    with pytest.raises(ProgramFailed, match="no update was completed"):
        load(tmp_path)


def test_another_version_is_refused(tmp_path):
    write_run(tmp_path, plain_step(1), schema="trainflash-probe.v9")
    with pytest.raises(UsageError, match="another version"):
        load(tmp_path)


def test_files_cut_short_anywhere_are_read_as_far_as_they_go(tmp_path):
    whole = write_run(tmp_path, plain_step(1) + plain_step(11)) / "events-7.bin"
    raw, header = whole.read_bytes(), (tmp_path / "process-7.json").read_text()
    seen = set()
    for length in range(len(raw)):
        whole.write_bytes(raw[:length])
        try:
            seen.add(only_rank(tmp_path).steps)
        except ProgramFailed as bad:
            seen.add(str(bad).partition(":")[0])
    assert seen == {"no training step seen", 1, 2}
    whole.write_bytes(raw)
    (tmp_path / "process-7.json").write_text(header[: len(header) // 2])
    with pytest.raises(ProgramFailed, match="nothing was trained"):
        load(tmp_path)


def test_a_disk_that_was_full_from_the_start_is_named(tmp_path):
    notices = ("torch 2.13.0", "the probe could not write events: [Errno 28] No space left on device")
    (tmp_path / "notice.jsonl").write_text("".join(json.dumps({"notice": text}) + "\n" for text in notices))
    with pytest.raises(ProgramFailed, match="No space left on device") as failed:
        load(tmp_path)
    assert "make room" in failed.value.mend


def test_of_two_trainings_in_one_run_the_longer_is_taken_and_the_other_named(tmp_path):
    write_run(tmp_path, plain_step(1), pid=7, argv=["warm_up.py"])
    write_run(tmp_path, plain_step(3) + plain_step(13), pid=8, argv=["train.py", "--lr", "1"])
    write_run(tmp_path, plain_step(1), pid=9, argv=["ranks.py"], world_size=2)
    found = load(tmp_path)
    assert [(rank.pid, rank.steps) for rank in found.ranks] == [(8, 2)]
    assert sorted(found.others) == [
        f"another training in the same run is left out: {name}, 1 steps, 0.0 s" for name in ("ranks.py", "warm_up.py")
    ]
    for pid, rank in ((7, 1), (8, 0)):
        write_run(tmp_path, plain_step(pid), pid=pid, rank=rank, world_size=2)
    (tmp_path / "process-9.json").unlink()
    found = load(tmp_path)
    assert [(rank.pid, rank.rank) for rank in found.ranks] == [(8, 0), (7, 1)] and found.others == ()


def test_reading_is_vectorised(tmp_path):
    """100,000 events a second is the floor; a reader that loops over events in Python is far below what this allows."""
    step = plain_step(0)
    events = [(at * 10 + ms + 1, name) for at in range(20_000) for ms, name in step]
    write_run(tmp_path, events)
    began = time.process_time()
    assert only_rank(tmp_path).steps == 20_000
    assert time.process_time() - began < len(events) / 100_000 * 5  # five times the floor's time, for a busy machine
    assert os.path.getsize(tmp_path / "events-7.bin") > 1_000_000


def test_a_place_without_a_line_is_none():
    facts = Facts("/p", {})
    assert facts.location(["/p/train.py", None, "main"]) is None
    assert facts.location(["/p/train.py", 3, "main"]) == Location("train.py", 3, "main")


def looping(forwards_before: dict[int, int], steps: int = 20) -> list:
    """Steps of one forward and one backward; in front of some a number of forwards that no backward follows."""
    events, at = [], 0.0
    for step in range(steps):
        for _ in range(forwards_before.get(step, 0) + 1):
            events += [(at, "data_of+0"), (at + 1, "/Data"), (at + 1, "Fwd"), (at + 3, "/Fwd")]
            at += 3
        events += [(at, "Bwd"), (at + 1, "/Bwd"), (at + 1, "Opt"), (at + 2, "/Opt"), (at + 2, "step")]
        at += 2
    return events


def test_forwards_that_no_backward_ever_follows_are_an_evaluation(tmp_path):
    (rank,) = load(write_run(tmp_path, looping({8: 10, 16: 10}))).ranks
    evaluations = rank.occurrences["Eval"]
    assert evaluations.step.tolist() == [8, 16]
    assert rank.phase_ns["Eval"][[8, 16]].tolist() == [30 * MS, 30 * MS]
    assert rank.phase_ns["Fwd"].tolist() == [2 * MS] * 20
    assert [(each.batches, each.grad_enabled) for each in rank.evaluations] == [(10, True), (10, True)]
    assert (sum(rank.phase_ns.values()) == rank.wall_ns).all()


@pytest.mark.parametrize("before", [{step: (7 * step) % 30 for step in range(20)}, {8: 2}, {0: 30}, {step: 10 for step in range(0, 20, 2)}])
def test_episodes_of_changing_length_are_no_evaluations(tmp_path, before):
    (rank,) = load(write_run(tmp_path, looping(before))).ranks
    assert not rank.phase_ns["Eval"].any()
