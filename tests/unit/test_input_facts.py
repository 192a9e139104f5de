"""How batches are made: fetches, single samples, the parts of making a batch, late batches, repeated work."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import traces as t
from probe_events import MS, plain_step, write_run

from trainflash.schema import Location, SlowSample
from trainflash.summary import summarize
from trainflash.trace import Fetches, SampleTimes, load
from trainflash.trace.facts import Facts
from trainflash.trace.input_facts import joined


def summary_of(rank, *workers):
    return summarize(t.trace(rank, *workers), run="r", project="p")


def value(number: int) -> int:
    return (number << 12) | 3


def test_a_fetch_says_how_long_it_had_no_core_and_older_files_do_not(tmp_path):
    fetches = [(11, "fetch"), (14, "collate"), (15, "fetched"), value(2 * MS), value(MS), (16, "fetch"), (17, "collate"), (18, "fetched")]
    write_run(tmp_path, [*plain_step(1), *fetches, value(MS)], pid=9, role="worker")
    write_run(tmp_path, plain_step(1), pid=7)
    made = load(tmp_path).workers[0].fetches
    assert (made.cpu_ns.tolist(), made.runq_ns.tolist()) == ([2 * MS, MS], [MS, -1])


def test_samples_lie_in_the_part_of_making_a_batch_that_they_were_taken_in(tmp_path):
    facts = [{"k": "place", "id": 1, "at": ["/home/me/project/data.py", 12, "load"]}]
    marks = [(2, "fetch"), (5, "collate"), (8, "fetched"), value(1), value(0)]
    taken = [(1, "sample_of+1"), (3, "sample_of+1"), (6, "sample_of+1"), (9, "sample_of+1")]
    events = [taken[0], marks[0], taken[1], marks[1], taken[2], *marks[2:], taken[3]]
    write_run(tmp_path, events, facts=facts, pid=9, role="worker")
    write_run(tmp_path, plain_step(1), pid=7)
    assert load(tmp_path).workers[0].samples.part.tolist() == [3, 1, 2, 3]


def test_the_hottest_line_is_known_for_samples_and_for_joining_them():
    rank = t.rank([10.0] * 100, {"Data": 0.5})
    line = t.Location("data.py", 12, "parse")
    samples = t.samples(rank, [(50, "Data", line, 30.0), (51, "Data", line, 10.0), (52, "Data", None, 10.0)])
    found = summary_of(replace(rank, samples=replace(samples, part=np.array([1, 2, 1]))))
    assert [(cost.part, cost.share) for cost in found.lines] == [("getitem", 0.6), ("collate", 0.2)]


def test_time_without_a_core_is_a_share_of_the_fetches_that_know_it():
    rank = t.rank([10.0] * 100, {"Data": 0.5})
    made = t.fetches(rank.step_start_ns[:-1], 4.0, 1.0, cpu=0.5)
    known = np.where(np.arange(100) % 2, -1, 2 * t.MS)
    loader = t.loader([int(rank.step_start_ns[0])], Fetches(made.start_ns, made.getitem_ns, made.collate_ns, made.cpu_ns, known))
    assert summary_of(replace(rank, loaders=(loader,))).loaders[0].runqueue_share == pytest.approx(0.4)
    loader = t.loader([int(rank.step_start_ns[0])], made)
    assert summary_of(replace(rank, loaders=(loader,))).loaders[0].runqueue_share is None


def test_slow_samples_of_several_workers_are_merged_and_small_ones_left_out():
    rank = t.rank([10.0] * 100, {"Data": 0.5})
    none = t.fetches(rank.step_start_ns[:0], 0, 0, 0)
    loader = t.loader([int(rank.step_start_ns[0])], none, num_workers=2, batch_size=32)
    first = SampleTimes(-1, 100, t.MS, ((7, 40 * t.MS, 1, "a/7.png"), (8, 5 * t.MS, 1, None)))
    second = SampleTimes(-1, 300, t.MS, ((7, 60 * t.MS, 2, None), (9, 9 * t.MS, 1, None)))
    workers = [t.worker(none, pid, times=times) for pid, times in ((200, first), (201, second))]
    (found,) = summary_of(replace(rank, loaders=(loader,)), *workers).loaders
    assert found.slow_samples == (  # 5 ms is five times the usual, but not a quarter of a batch of 32
        SlowSample(7, "a/7.png", 60.0, 1.0, 3),
        SlowSample(9, None, 9.0, 1.0, 1),
    )


def test_a_tail_is_made_of_ordinary_steps_only():
    data, evaluation = [1.0] * 100, [0.0] * 100
    data[30] = data[60] = 50.0  # late
    data[40] = 80.0  # a pass begins
    data[50], evaluation[50] = 70.0, 20.0  # beside an evaluation
    wall = [10.0 + data[i] + evaluation[i] for i in range(100)]
    rank = t.rank(wall, {"Data": data, "Eval": evaluation, "Fwd": [9.0] * 100})
    rank = replace(rank, epoch_at_ns=rank.step_start_ns[[0, 40]])
    found = summary_of(rank)
    assert (found.input_tail.late, found.input_tail.wait_ms.max_ms, found.input_tail.wait_ms.p50_ms) == (2, 50.0, 1.0)
    assert found.input_tail.late_share == pytest.approx(2 * 49.0 / (1000 * found.steady_s))
    assert summary_of(t.rank([10.0] * 100, {"Fwd": 0.3})).input_tail is None


def traced(tmp_path, windows: list[dict], *, loaders: tuple = (), pid: int = 7) -> tuple:
    function = {"k": "function", "id": 0, "at": ["/home/me/project/data.py", 5, "parse"]}
    write_run(tmp_path, [event for step in range(12) for event in plain_step(1 + 10 * step)], facts=[function, *windows, *loaders], pid=pid)
    return load(tmp_path).ranks[0].repeated


def window(sample: int, rows: list[tuple[str, str]], where: str = "fetch") -> dict:
    rows = [[0, arguments, result, 4, -1, where, True, False, 64] for arguments, result in rows]
    return {"k": "calls", "where": where, "window_ns": 9, "chosen": [f"64:{sample}"], "rows": rows, "loader": 0}


def test_only_samples_seen_before_could_repeat_unless_they_did(tmp_path):
    (call,) = traced(tmp_path, [window(0, [("a", "1")]), window(8, [("b", "2")]), window(0, [("a", "1")])])
    assert (call.calls, call.comparable, call.repeats, call.sampled, call.loader) == (3, 1, 1, 2, 0)
    (call,) = traced(tmp_path, [window(sample, [("same", "1")]) for sample in (0, 8, 16)])
    assert (call.calls, call.comparable, call.repeats, call.distinct) == (3, 2, 2, 1)


def test_a_function_that_once_gave_another_result_for_equal_arguments_never_repeats(tmp_path):
    rows = [("a", "heads"), ("b", "heads"), ("a", "heads"), ("b", "tails")]
    assert traced(tmp_path, [window(sample, [row]) for sample, row in zip((0, 8, 0, 8), rows, strict=True)]) == ()


@pytest.mark.parametrize("of_worker", [False, True])
def test_joining_is_where_most_of_it_passes_without_what_is_called(tmp_path, of_worker):
    places = [
        {"k": "function", "id": n, "at": ["/home/me/project/data.py", line, name]} for n, line, name in ((0, 5, "join"), (1, 9, "pad"))
    ]
    rows = [[1, "a", "1", 30, 0, "collate", False, False, 8], [1, "b", "2", 30, 0, "collate", False, False, 8]]
    rows.append([0, "c", "3", 100, -1, "collate", False, False, 8])
    seen = {"k": "calls", "where": "collate", "window_ns": 100, "batch": 2, "chosen": [], "rows": rows, "loader": -1 if of_worker else 0}
    write_run(tmp_path, plain_step(1), facts=[*places, seen], pid=9, role="worker")
    write_run(tmp_path, plain_step(1), pid=7)
    facts = Facts("/home/me/project", {"function": places, "calls": [seen]})
    assert joined(facts) == {-1 if of_worker else 0: Location("data.py", 9, "pad")}
    assert load(tmp_path).workers[0].joined_at == (Location("data.py", 9, "pad") if of_worker else None)
    rows[2][3] = 160
    assert joined(facts)[-1 if of_worker else 0].function == "join"


def test_calls_within_one_batch_repeat_too(tmp_path):
    (call,) = traced(tmp_path, [window(0, [("a", "1"), ("a", "1"), ("b", "2")])])
    assert (call.repeats, call.calls) == (1, 3)


def test_repeated_work_in_a_forward_stands_for_the_time_until_backward():
    rank = t.rank([10.0] * 100, {"Fwd": 0.4, "Bwd": 0.3})
    occurrences = dict(rank.occurrences)
    begin = rank.step_start_ns[:-1]
    occurrences["Fwd"] = replace(occurrences["Fwd"], start_ns=begin, end_ns=begin + 4 * t.MS)
    occurrences["Bwd"] = replace(occurrences["Bwd"], start_ns=begin + 5 * t.MS, end_ns=begin + 8 * t.MS)
    found = summary_of(replace(rank, occurrences=occurrences, repeated=(t.call(where="forward"),))).repeated
    assert [(work.during, work.share) for work in found] == [("forward", pytest.approx(0.8 * 0.5))]


def test_repeated_work_for_an_evaluation_is_part_of_it():
    evaluation = [10.0 if step % 10 == 5 else 0.0 for step in range(100)]
    rank = t.rank([10.0 + cost for cost in evaluation], {"Data": 0.3, "Eval": evaluation})
    made = t.fetches(rank.occurrences["Eval"].start_ns, 6.0, 2.0, cpu=1.0)
    loader = replace(t.loader([int(made.start_ns[0])], made), id=1, role="eval", wait_ns=np.full(10, 8 * t.MS))
    (work,) = summary_of(replace(rank, loaders=(loader,), repeated=(t.call(loader=1),))).repeated
    assert work.share == pytest.approx(0.8 * 0.75 * 80 / (1100 + 500))
