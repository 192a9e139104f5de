"""Gaps between phases are divided as the traced steps have shown, and no further."""

from __future__ import annotations

import pytest
from probe_events import BASE_NS, MS, write_run

from trainflash.schema import PHASES, Location
from trainflash.trace import load

LOSS, METRIC = ["/home/me/project/train.py", 20, "fit"], ["/home/me/project/train.py", 30, "fit"]
UPDATE = ["/home/me/project/train.py", 40, "fit"]


def step(at: float, tail: float = 2, after: float = 2) -> list:
    """Data 2 ms, Fwd 2 ms, a gap of `tail`, Bwd 2 ms, a gap of `after`."""
    bwd = at + 4 + tail
    end = bwd + 2 + after
    return [
        (at, "data_of+0"), (at + 2, "/Data"), (at + 2, "Fwd"), (at + 4, "/Fwd"), (bwd, "Bwd"), (bwd + 2, "/Bwd"), (end, "step"),
    ]  # fmt: skip


def ns(ms: float) -> int:
    return BASE_NS + int(ms * MS)


def _lines(at: float, began: float, ended: float, took: float | None = None, calls: int = 1) -> list[int]:
    return [ns(at + began), ns(at + ended), int((ended - began if took is None else took) * MS), calls]


def window(at: float, forward: list, rest: list, update: list | None = None) -> dict:
    spans = {"forward": forward, "rest": rest}
    written = {name: [_lines(at, *span) for span in pairs] for name, pairs in spans.items()}
    update = None if update is None else [ns(at + update[0]), ns(at + update[1])]
    return {"k": "between", "step": 1, **written, "update": update, "forward_lines": [LOSS], "update_lines": [UPDATE] if update else []}


def phases_ms(rank, index: int) -> dict[str, float]:
    assert (sum(rank.phase_ns.values()) == rank.wall_ns).all()
    return {name: round(values[index] / MS, 3) for name, values in rank.phase_ns.items() if values[index]}


def rank_of(tmp_path, events: list, *facts: dict):
    return load(write_run(tmp_path, events, facts=facts)).ranks[0]


def test_without_a_traced_step_gaps_stay_what_they_are(tmp_path):
    rank = rank_of(tmp_path, step(1) + step(11))
    assert phases_ms(rank, 1) == {"Data": 2, "Fwd": 2, "Bwd": 2, "Other": 4}


def test_the_part_of_a_gap_that_makes_the_loss_is_forward_in_every_step(tmp_path):
    events = step(1) + step(11) + step(21, tail=4)
    rank = rank_of(tmp_path, events, window(11, forward=[(2, 4.5)], rest=[(4.5, 6), (8, 10)]))
    assert phases_ms(rank, 1) == {"Data": 2, "Fwd": 2.5, "Bwd": 2, "Other": 3.5}
    assert phases_ms(rank, 2) == {"Data": 2, "Fwd": 3, "Bwd": 2, "Other": 5}
    assert rank.occurrences["Fwd"].exclusive_ns.tolist() == [2.5 * MS, 2.5 * MS, 3 * MS]


def test_gaps_between_forwards_are_judged_apart_from_the_last_one(tmp_path):
    def two(at):
        return [(at, "Fwd"), (at + 2, "/Fwd"), (at + 3, "Fwd"), (at + 5, "/Fwd"), (at + 6, "Bwd"), (at + 8, "/Bwd"), (at + 10, "step")]

    rank = rank_of(tmp_path, two(1) + two(11), window(1, forward=[(0, 3)], rest=[(3, 10)]))
    assert phases_ms(rank, 1) == {"Fwd": 5, "Bwd": 2, "Other": 3}


def test_an_update_in_the_loop_is_opt_from_its_first_line_to_its_last(tmp_path):
    rank = rank_of(tmp_path, step(1) + step(11), window(1, forward=[], rest=[(0, 10)], update=[8.5, 9.5]))
    assert phases_ms(rank, 1) == {"Data": 2, "Fwd": 2, "Bwd": 2, "Opt": 1, "Other": 3}
    assert rank.occurrences["Opt"].start_ns.tolist() == [ns(9.5), ns(19.5)]


def test_what_tracing_the_lines_cost_is_no_part_of_the_gap(tmp_path):
    rank = rank_of(tmp_path, step(1, tail=4) + step(13), window(1, forward=[(4, 5)], rest=[(2, 4), (5, 8, 1)]))
    assert phases_ms(rank, 1) == {"Data": 2, "Fwd": 3, "Bwd": 2, "Other": 3}


def test_what_tracing_slowed_is_told_by_the_calls_where_a_traced_gap_is_longer_than_usual(tmp_path):
    traced = window(1, forward=[(4, 5, 1, 50)], rest=[(2, 4), (5, 8, 3, 450)])
    rank = rank_of(tmp_path, step(1, tail=4) + step(13) + step(23), traced)
    assert phases_ms(rank, 1) == {"Data": 2, "Fwd": 2.8, "Bwd": 2, "Other": 3.2}  # 0.8 of 2 ms, not 1 of 4: 4 µs each of 500


def test_an_update_takes_the_part_of_the_gap_that_its_lines_took(tmp_path):
    lines = [(6, 8), (8, 9, 0.1), (9, 11, 1.7), (11, 12, 0.2)]
    rank = rank_of(tmp_path, step(1, after=4) + step(13), window(1, forward=[], rest=lines, update=[9, 11]))
    assert phases_ms(rank, 1) == {"Data": 2, "Fwd": 2, "Bwd": 2, "Opt": 1.7, "Other": 2.3}


def test_a_part_that_took_long_in_one_traced_step_is_taken_as_it_was_in_the_others(tmp_path):
    usual, late, long = [(8, 8.5), (8.5, 9.5)], [(8, 8.5, 9), (8.5, 9.5)], [(8, 8.5), (8.5, 9.5, 20)]
    windows = [
        window(1 + 10 * number, forward=[(2, 5)], rest=[(5, 6), (6, 8), *lines, (9.5, 10)], update=[8.5, 9.5])
        for number, lines in enumerate((usual, late, long))
    ]
    rank = rank_of(tmp_path, step(1) + step(11) + step(21) + step(31), *windows)
    assert phases_ms(rank, 3) == {"Data": 2, "Fwd": 3, "Bwd": 2, "Opt": 1, "Other": 2}


@pytest.mark.parametrize("line, other", [(METRIC, 202), (LOSS, 2)])
def test_a_gap_far_longer_than_usual_is_judged_by_its_samples(tmp_path, line, other):
    steps = [event for number in range(6) for event in step(1 + 10 * number)]
    samples = [(at, f"sample_of+{1}") for at in range(70, 260, 20)]
    long = step(61, tail=200)
    events = [*steps, *sorted(long + samples, key=lambda event: event[0])]
    facts = [window(11, forward=[(2, 6)], rest=[(6, 10)]), {"k": "place", "id": 1, "at": line}]
    rank = rank_of(tmp_path, events, *facts)
    assert phases_ms(rank, 6)["Other"] == other
    assert phases_ms(rank, 1) == {"Data": 2, "Fwd": 4, "Bwd": 2, "Other": 2}


def test_a_long_gap_that_nobody_sampled_gives_away_no_more_than_a_usual_one_can(tmp_path):
    events = [event for number in range(6) for event in step(1 + 10 * number)] + step(61, tail=200)
    rank = rank_of(tmp_path, events, window(11, forward=[(2, 6)], rest=[(6, 10)]))
    assert phases_ms(rank, 6) == {"Data": 2, "Fwd": 10, "Bwd": 2, "Other": 194}


def test_samples_in_a_divided_gap_go_where_their_line_belongs(tmp_path):
    events = sorted(step(1) + step(11) + [(15.2, "sample_of+1"), (16.8, "sample_of+2"), (16.9, "sample_of+1")], key=lambda event: event[0])
    facts = [
        window(1, forward=[(2, 5)], rest=[(5, 10)]),
        {"k": "place", "id": 1, "at": METRIC},
        {"k": "place", "id": 2, "at": LOSS},
    ]
    samples = rank_of(tmp_path, events, *facts).samples
    assert [PHASES[phase] for phase in samples.phase] == ["Other", "Fwd", "Other"]
    assert samples.locations == (Location("train.py", 30, "fit"), Location("train.py", 20, "fit"))
