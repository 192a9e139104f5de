"""Which replay answers which finding, and what blocks of live and replayed steps say."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
import scenarios
import traces
from probe_events import part

from trainflash.diagnosis import diagnose
from trainflash.schema import Ceiling, Finding, Location, Setting, WhatIf, write_document
from trainflash.schema.ceilings import Ceilings, Unmeasured
from trainflash.workflow import ceilings, replay_blocks
from trainflash.workflow.replay_blocks import Block

MS = 1_000_000
HERE = Location("data.py", 12, "Digits.__getitem__")


def finding(kind: str, share: float = 0.5, location: Location | None = HERE, phase: str = "Data") -> Finding:
    return Finding(kind, phase, "input", share, "high", "", (), location, Ceiling(2.0, "bound"), ())


def diagnosis_of(*findings: Finding):
    return replace(diagnose(scenarios.healthy()), findings=findings)


def plan(*findings: Finding, summary=None) -> list[tuple]:
    planned = ceilings.planned(diagnosis_of(*findings), summary or scenarios.slow_getitem())
    return [(each.replay, each.at, [one.kind for one in each.findings]) for each in planned]


def test_samples_are_replayed_for_a_slow_dataset_and_joined_batches_for_a_slow_collate():
    assert plan(finding("input_cpu"), finding("collate")) == [("samples", None, ["input_cpu"]), ("collated", None, ["collate"])]


def test_repeated_work_that_explains_the_input_answers_both_by_one_replay():
    at = ("data.py", 30, "parse")
    repeated = finding("repeated_work", 0.45, Location(*at))
    assert plan(finding("input_cpu"), repeated) == [("function", at, ["input_cpu", "repeated_work"])]
    little = replace(repeated, share=0.2)
    assert plan(finding("input_cpu"), little) == [("samples", None, ["input_cpu"]), ("function", at, ["repeated_work"])]


def test_code_of_the_owner_that_repeats_itself_is_replayed_too():
    table = ("train.py", 9, "table")
    host = finding("host_code", 0.5, Location("train.py", 12, "table"), phase="Other")
    repeated = finding("repeated_work", 0.45, Location(*table), phase="Other")
    assert plan(host, repeated) == [("function", table, ["host_code", "repeated_work"])]
    assert plan(host, replace(repeated, phase="Data")) == [("function", table, ["repeated_work"])]


def test_a_data_function_is_replayed_where_no_loader_is():
    place = Location("train.py", 9, "get_batch")
    summary = replace(scenarios.slow_getitem(), loaders=(), data_function=place)
    assert plan(finding("input_cpu"), summary=summary) == [("function", ("train.py", 9, "get_batch"), ["input_cpu"])]
    assert plan(finding("input_cpu"), summary=replace(summary, data_function=None)) == []


def test_settings_are_switched_and_the_rest_is_left_alone():
    summary = replace(scenarios.healthy(), settings=(Setting("anomaly_mode", "on", None),))
    assert plan(finding("debug_api"), summary=summary) == [("anomaly", None, ["debug_api"])]
    assert plan(finding("debug_api")) == []  # a profiler cannot be taken away at a step boundary
    again = finding("recompute", phase="Bwd")
    assert plan(again, finding("optimizer"), finding("evaluation")) == [("checkpointing", None, ["recompute"])]
    assert plan(replace(again, phase="Fwd")) == []  # modules called again: nothing switches that


def test_only_the_first_three_findings_with_a_replay_get_one():
    repeated = [finding("repeated_work", 0.1, Location("data.py", line, "f")) for line in range(1, 6)]
    assert len(plan(*repeated)) == 3


def test_workers_get_time_to_empty_and_fill_their_queue():
    replay = ceilings.Replay("samples", "samples", ())
    alone = json.loads(replay.specification(scenarios.loader(), 0.3))
    workers = json.loads(replay.specification(scenarios.loader(num_workers=2, prefetch_factor=4), 0.3))
    assert alone["settle"] == ceilings.SETTLE
    assert workers["settle"] >= alone["settle"] + 8


@pytest.mark.parametrize(("kind", "phase"), [("evaluation", "Eval"), ("checkpoint", "Ckpt")])
def test_rare_work_is_subtracted_by_its_cadence(kind, phase):
    """99 steps with one more evaluation than their share: 10 ms a step and 50 ms every 10 steps is a third."""
    cost = [50.0 if i % 10 == 0 else 0.0 for i in range(91)]
    rank = traces.rank([10.0 + each for each in cost], {phase: cost})
    summary = replace(scenarios.healthy(), warmup_steps=0)
    what_if = ceilings.subtracted(finding(kind, share=0.9), rank, summary)
    assert what_if.speedup == pytest.approx(1.5)


def test_work_without_a_phase_of_its_own_is_subtracted_by_its_share():
    what_if = ceilings.subtracted(finding("host_code", share=0.5), traces.rank([10.0] * 20, {}), scenarios.healthy())
    assert what_if.speedup == pytest.approx(2.0)


def blocks(pairs: int, live_ms: float, replay_ms: float, *, waiting: float = 0.0, noise=lambda i: 1.0, cpu: float = 0.0) -> list[Block]:
    """Live and replayed blocks in the order in which the probe makes them; `waiting` of the wall time without a core."""
    found = []
    for i in range(2 * pairs):
        mode, ms = ("replay", replay_ms) if i % 4 in (1, 2) else ("live", live_ms)
        wall = int(20 * ms * noise(i) / (1 - waiting) * MS)
        found.append(Block(mode, 20 * i, 20, wall, int(waiting * wall), int(cpu * wall)))
    return found


def test_the_speedup_is_that_of_the_steps():
    found = replay_blocks.estimate([blocks(8, 6.0, 2.0)], alone=True)
    assert found.speedup == pytest.approx(3.0)
    assert found.low < 3.0 < found.high
    assert found.pairs == 8


def test_too_few_pairs_say_nothing():
    assert replay_blocks.estimate([blocks(3, 6.0, 2.0)], alone=True) is None
    assert replay_blocks.estimate([blocks(2, 6.0, 2.0), blocks(2, 6.0, 2.0)], alone=True).pairs == 4


def test_a_machine_that_slows_down_favours_neither():
    found = replay_blocks.estimate([blocks(8, 6.0, 2.0, noise=lambda i: 1 + 0.05 * i)], alone=False)
    assert found.speedup == pytest.approx(3.0, rel=0.02)


def test_waiting_for_a_core_is_taken_out_only_where_one_thread_works_alone():
    busy = [
        replace(block, wall_ns=block.wall_ns * 3, runq_ns=block.wall_ns * 2) if block.mode == "live" else replace(block, runq_ns=1)
        for block in blocks(8, 6.0, 2.0)
    ]
    assert replay_blocks.estimate([busy], alone=True).speedup == pytest.approx(3.0, rel=0.01)
    assert replay_blocks.estimate([busy], alone=False).speedup == pytest.approx(9.0, rel=0.01)
    threads = [replace(block, cpu_ns=2 * block.wall_ns) for block in busy]  # its own threads compete: the wait is its cost
    assert replay_blocks.estimate([threads], alone=True).speedup == pytest.approx(9.0, rel=0.01)


def test_evaluations_stay_in_the_speedup_at_their_mean_cost():
    """6 ms live, 2 ms replayed, and 2 ms of evaluation in either: (6 + 2) ÷ (2 + 2)."""
    seen = []
    for i, block in enumerate(blocks(8, 6.0, 2.0)):
        rare = 160 * MS if i % 4 in (0, 1) else 0  # in every second block of either mode, as chance may have it
        seen.append(replace(block, wall_ns=block.wall_ns + rare, runq_ns=None, periodic_ns=rare, occurrences=bool(rare)))
    assert replay_blocks.estimate([seen], alone=False).speedup == pytest.approx(10.0 / 6.0, rel=0.01)
    none_seen = blocks(8, 6.0, 2.0)
    assert replay_blocks.estimate([none_seen], alone=False, periodic_share=0.25).speedup == pytest.approx(8.0 / 4.0, rel=0.01)


def test_periodic_work_is_read_from_the_trace():
    rank = traces.rank([10.0] * 40, {"Eval": [5.0 if i == 25 else 0.0 for i in range(40)], "Ckpt": [1.0] * 40})
    first, second = replay_blocks.with_periodic([Block("live", 0, 20, 200 * MS, 0, 0), Block("replay", 20, 20, 200 * MS, 0, 0)], rank)
    assert (first.periodic_ns, first.occurrences) == (20 * MS, 20)
    assert (second.periodic_ns, second.occurrences) == (25 * MS, 20)


def test_a_line_that_was_cut_short_is_left_out(tmp_path):
    whole = json.dumps({"mode": "live", "first": 0, "steps": 5, "wall_ns": 9, "runq_ns": None, "cpu_ns": 1})
    (tmp_path / "replay-blocks.jsonl").write_text(f'{whole}\n{{"mode": "rep')
    assert [block.steps for block in replay_blocks.read(tmp_path)[0]] == [5]
    (tmp_path / "replay-blocks.jsonl").write_text('{"error": "parse was not found"}\n')
    assert replay_blocks.read(tmp_path) == ((), "parse was not found")
    assert replay_blocks.read(tmp_path / "nowhere") == ((), "")


def test_what_was_measured_is_read_again_and_what_was_not_is_said(tmp_path):
    assert ceilings.recorded(tmp_path) is None
    assert ceilings.notes(None) == ()
    written = Ceilings(
        "diagnose-001", (WhatIf("input_cpu", "samples", HERE, 2.5, 2.4, 2.6, 20),), (Unmeasured("collate", None, "too noisy"),)
    )
    write_document(tmp_path / ceilings.FILE, written)
    assert ceilings.recorded(tmp_path) == written
    assert ["collate" in note and "too noisy" in note for note in ceilings.notes(written)] == [True]


def test_a_measured_ceiling_reaches_the_finding():
    summary = scenarios.slow_getitem()
    location = diagnose(summary).findings[0].location
    summary = replace(summary, what_if=(WhatIf("input_cpu", "samples", location, 1.9, 1.8, 2.0, 20),))
    assert diagnose(summary).findings[0].ceiling == Ceiling(1.9, "measured")


class Numbers:
    """A tensor as far as the shelf looks at one; counts edits in place as torch does."""

    def __init__(self, values: list, version: list | None = None) -> None:
        self.values, self._edits = values, version if version is not None else [0]

    @property
    def _version(self) -> int:
        return self._edits[0]

    def detach(self):
        return Numbers(self.values, self._edits)

    def clone(self):
        return Numbers(list(self.values))

    def numel(self) -> int:
        return len(self.values)

    def element_size(self) -> int:
        return 4

    def add_(self, number: float) -> None:
        self.values[:] = [value + number for value in self.values]
        self._edits[0] += 1


def test_what_is_kept_is_a_copy_and_comes_back_in_turn():
    shelf = part("replay.kept").Shelf()
    given = [Numbers([1.0]), Numbers([2.0])]
    for each in given:
        shelf.keep(("key",), (each, 3))
        each.add_(5.0)
    seen = [shelf.hand_out("key") for _ in range(4)]
    assert sorted(first.values[0] for first, label in seen) == [1.0, 1.0, 2.0, 2.0]
    assert {label for _, label in seen} == {3}


def test_a_program_that_edits_what_it_gets_is_given_copies_from_then_on():
    shelf = part("replay.kept").Shelf()
    shelf.keep(("key",), Numbers([1.0]))
    for _ in range(5):
        shelf.hand_out("key").add_(1.0)
    assert shelf.copies
    assert shelf.hand_out("key").values == [2.0]  # the first edit was seen only afterwards; none after it


def test_a_shelf_is_bounded_and_refuses_what_cannot_be_handed_out_twice():
    kept = part("replay.kept")
    shelf = kept.Shelf(most_items=2, most_bytes=100)
    shelf.keep(("generator",), (letter for letter in "ab"))
    assert (shelf.items, shelf.refused) == (0, 1)
    shelf.keep(("large",), b"0" * 101)
    assert (shelf.items, shelf.refused) == (0, 2)
    for _ in range(3):
        shelf.keep(("key",), "word")
    assert shelf.count("key") == 2


def test_a_shelf_travels_to_another_process(tmp_path):
    kept = part("replay.kept")
    shelf, other = kept.Shelf(), kept.Shelf()
    value = {"tokens": [1, 2, 3], "name": ("a", b"b"), "nested": [[1.5, 2], None]}
    shelf.keep((("Digits", 64),), value)
    shelf.write(str(tmp_path / "kept"))
    other.read(str(tmp_path / "kept"))
    handed = other.hand_out(("Digits", 64))
    assert handed == value
    handed["tokens"].append(4)
    assert other.hand_out(("Digits", 64)) == value


def test_arguments_that_differ_in_shape_are_another_sort():
    places = part("replay.places")
    assert places._keys((1, "a"), {})[0] == places._keys((1, "a"), {})[0]
    assert places._keys((1,), {"b": 2})[0] != places._keys((1,), {"b": 3})[0]
    assert places._keys(([1],), {})[0] is None

    class Array:
        def __init__(self, *shape):
            self.shape = shape

    assert places._keys((Array(2, 3),), {}) == places._keys((Array(2, 3),), {})
    assert places._keys((Array(2, 3),), {}) != places._keys((Array(2, 4),), {})
