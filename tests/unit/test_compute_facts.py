"""What counts as padding and what does not; how counters become figures of the steady part."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
import traces as t
from probe_events import part

from trainflash.schema import Location
from trainflash.summary import steady_part, summarize
from trainflash.trace import RankTrace
from trainflash.trace.compute_facts import left_out, read_computing
from trainflash.trace.computing import (
    AttentionCall,
    AttentionLine,
    CensusTrace,
    CompileTrace,
    ComputeTrace,
    Counter,
    GcTrace,
    SyncTrace,
)
from trainflash.trace.facts import Facts

LINE = Location("train.py", 30, "forward")
GENERATOR = torch.Generator().manual_seed(0)


def tokens(lengths: list[int], width: int, left: bool = False, vocabulary: int = 1000) -> torch.Tensor:
    rows = torch.zeros(len(lengths), width, dtype=torch.long)
    for row, length in zip(rows, lengths, strict=True):
        words = torch.randint(1, vocabulary, (length,), generator=GENERATOR)
        row[width - length :] = words if left else row[width - length :]
        if not left:
            row[:length] = words
    return rows


def padding(*batches) -> float:
    """Share of padding over the batches."""
    found = part("facts.padding").Padding()
    for batch in batches:
        found.look(part("nested").named_tensors(batch))
    elements, padded, _ = found.totals()
    return padded / elements if elements else 0.0


def common(*batches) -> float:
    """Share of padding that no row of its batch needs."""
    found = part("facts.padding").Padding()
    for batch in batches:
        found.look(part("nested").named_tensors(batch))
    elements, _, shared = found.totals()
    return shared / elements


def columns(*batches) -> list:
    """Fields with padding in all rows: [key, fill, width, dimensions]."""
    found = part("facts.columns").Columns()
    for batch in batches:
        found.look(batch, part("facts.padding").main_input(part("nested").named_tensors(batch)))
    fields, by = found.found()
    assert by is None
    return fields


def test_fields_that_end_in_common_padding():
    rows, whole, labels = tokens([3, 9], 40), tokens([40, 5], 40), torch.zeros(2)
    ignored = torch.where(rows == 0, -100, rows)
    assert columns(rows) == [[None, 0, 40, 2]]
    assert columns((rows, rows == 0, labels)) == [[0, 0, 40, 2], [1, True, 40, 2]]
    assert columns({"input_ids": rows, "labels": ignored, "label": labels, "text": ["a", "b"]}) == [
        ["input_ids", 0, 40, 2],
        ["labels", -100, 40, 2],
    ]
    assert columns((whole, labels), (rows, labels)) == [[0, 0, 40, 2]], "a batch that fills its width tells nothing"
    assert columns((whole, labels)) == []
    vectors = (rows != 0).unsqueeze(2) * torch.ones(3)
    many, wide = tokens([3] * 200 + [9], 40), torch.ones(9)
    assert columns([many.unsqueeze(2) * wide, many == 0]) == [[0, 0.0, 40, 3], [1, True, 40, 2]], (
        "of large fields not all rows are looked at"
    )
    assert columns([vectors, rows == 0, (rows != 0).unsqueeze(2)]) == [[0, 0.0, 40, 3], [1, True, 40, 2], [2, False, 40, 3]]


@pytest.mark.parametrize(
    ("batch", "numbers"),
    [
        ({"early": [torch.zeros(4)] * 64, "late": [torch.zeros(4)] * 9, "at": torch.zeros(4)}, 64),
        ([[torch.zeros(4)] * 12, torch.zeros(4)], 12),
        ([torch.zeros(4), torch.zeros(4)], 0),
        ([[torch.zeros(4, 3)] * 12, ["a", "b"], []], 0),
        (torch.zeros(4), 0),
    ],
)
def test_lists_with_a_tensor_for_each_number(batch, numbers):
    assert part("facts.batches")._columns_in(batch) == numbers


def test_batches_that_one_function_of_the_program_makes(monkeypatch):
    columns, own = part("facts.columns"), part("own")
    monkeypatch.setattr(own, "is_own", lambda code: "numpy" not in code.co_filename)
    rows = tokens([3, 9], 40)

    def make():
        yield rows

    def seen(*makers):
        found = columns.Columns()
        for maker in makers:
            found.look(rows, rows, maker)
        return found.found()

    step = make().__next__
    assert seen(step, make().__next__) == ([[None, 0, 40, 2]], own.place_of_code(make.__code__))
    assert seen(seen)[1] == own.place_of_function(seen)
    assert seen(np.median) == seen(len) == seen(step, seen) == seen(None, step) == ([], None)


@pytest.mark.parametrize(
    "batches",
    [
        ([tokens([3, 9], 40), torch.arange(40).repeat(2, 1)],),  # as wide, and no padding
        ([tokens([3, 9], 40), torch.zeros(2, 40, 40)],),  # as long, and as wide
        ([tokens([3, 9], 40), torch.zeros(2, 8, 40)],),  # as wide in another place
        ((tokens([3, 9], 40),), (tokens([3, 9], 30),)),  # the width is no fixed one
        ((tokens([3, 9], 40),), (tokens([3, 9], 40) + 1,)),  # the fill is no fixed one
        ({"deep": {"input_ids": tokens([3, 9], 40)}},),
        (tokens([3, 9], 40, left=True),),
        (torch.zeros(0, 40),),
        ([tokens([3, 9], 40), torch.zeros(0, 40)],),
        ([tokens([3, 9], 40), torch.zeros(2, 40).masked_fill(tokens([3, 9], 40) == 0, -torch.inf)],),
        ((tokens([3, 9], 40).to(torch.bfloat16),),),  # numpy has no such type
    ],
    ids=[
        "positions",
        "squares",
        "channels",
        "widths",
        "fills",
        "nested",
        "at the begin",
        "empty",
        "an empty field",
        "an infinite fill",
        "bfloat16",
    ],
)
def test_fields_of_other_batches_are_not_named(batches):
    assert columns(*batches) == []


LENGTHS = [10, 20, 30, 40]


@pytest.mark.parametrize("left", [False, True])
def test_padding_at_either_end_of_token_rows(left):
    rows = tokens(LENGTHS, 40, left)
    assert padding((rows, torch.zeros(4))) == pytest.approx(60 / 160, abs=0.01)
    assert padding({"input_ids": rows}, [rows, {"deep": (rows,)}]) == pytest.approx(60 / 160, abs=0.01)


@pytest.mark.parametrize("left", [False, True])
def test_an_attention_mask_is_believed(left):
    rows = tokens(LENGTHS, 40, left)
    mask = (rows != 0).long()
    rows[rows == 0] = torch.randint(1, 1000, (60,), generator=GENERATOR)  # the rows alone show nothing
    assert padding({"labels": torch.zeros(4), "attention_mask": mask, "input_ids": rows}) == pytest.approx(60 / 160)
    assert padding({"x": rows, "key_padding_mask": mask == 0}) == pytest.approx(60 / 160)


@pytest.mark.parametrize("left", [False, True])
def test_padding_that_no_row_of_its_batch_needs(left):
    short, long = tokens([10, 20, 30], 40, left), tokens([5, 10, 40], 40, left)
    assert common((short,)) == pytest.approx(30 / 120)
    assert common((long,)) == 0  # one long row needs all of the width
    assert common((short,), (long,)) == pytest.approx(30 / 240)
    masks = [{"ids": torch.ones(3, 40).long(), "attention_mask": (rows != 0).long()} for rows in (short, long)]
    assert common(*masks) == pytest.approx(30 / 240)


def test_a_full_mask_says_that_nothing_is_padded():
    assert padding({"input_ids": tokens(LENGTHS, 40), "attention_mask": torch.ones(4, 40)[:, :40].long()}) == 0


def test_zero_tails_of_vectors_and_waves():
    frames = torch.randn(4, 40, 8, generator=GENERATOR)
    wave = torch.randn(4, 4000, generator=GENERATOR)
    for row, length in enumerate(LENGTHS):
        frames[row, length:] = 0
        wave[row, 100 * length :] = 0
    assert padding((frames, torch.zeros(4))) == pytest.approx(60 / 160)
    assert padding((wave,)) == pytest.approx(60 / 160)


@pytest.mark.parametrize("channels", [1, 12])
def test_zero_tails_of_signals_behind_their_channels(channels):
    signals = torch.randn(4, channels, 400, generator=GENERATOR)
    steps = torch.randn(4, 8, 512, generator=GENERATOR)
    for row, length in enumerate(LENGTHS):
        signals[row, :, 10 * length :] = 0
        steps[row, length // 5 :] = 0
    assert padding((signals, torch.zeros(4))) == pytest.approx(60 / 160)
    assert padding((signals.flip(2),)) == pytest.approx(60 / 160)
    assert padding((steps,)) == pytest.approx(12 / 32, abs=0.04)  # a single empty step may be one of the sequence


def test_empty_parts_of_texts():
    pages = torch.stack([tokens([9, 30, 12, 40], 40) for _ in range(6)])
    for page, lines in zip(pages, (1, 2, 2, 3, 4, 1), strict=True):
        page[lines:] = 0
    assert padding((pages, torch.zeros(6))) == pytest.approx(10 / 24)  # a single empty line may be one of the text
    held = part("facts.batches")._held

    class Envelopes:
        def __init__(self, text):
            self.name, self.text = "page", text

    assert [(name, each.shape) for name, each in held(Envelopes(pages))] == [("text", pages.shape)]
    assert held(torch.nn.Linear(2, 2)) == [] and held(Envelopes("no tensor")) == []


def bordered_images(size: int) -> torch.Tensor:
    images = torch.zeros(8, size, size)
    for row, image in enumerate(images):
        image[4 + row % 3 : size - 5 - row % 2, 6:20] = torch.rand(size - 9 - row % 3 - row % 2, 14, generator=GENERATOR)
    return images


def boards() -> torch.Tensor:
    """Rows of stones with gaps between them, so many rows of each board."""
    made = (torch.rand(8, 12, 7, generator=GENERATOR) > 0.4).long()
    for board, height in zip(made, (2, 3, 5, 6, 7, 8, 9, 4), strict=True):
        board[height:] = 0
    return made


HEALTHY = {
    "images with black borders": bordered_images(28),
    "flattened images with black borders": (255 * bordered_images(28)).to(torch.uint8).flatten(1),
    "colour images": torch.zeros(4, 3, 16, 16),
    "one-hot rows": torch.eye(16, dtype=torch.long)[torch.arange(8)],
    "constant last features": torch.cat([torch.randint(0, 50, (8, 12), generator=GENERATOR), torch.full((8, 6), 7)], dim=1),
    "many-hot targets": (torch.rand(8, 40, generator=GENERATOR) > 0.8).long(),
    "features after a ReLU": torch.randn(8, 64, generator=GENERATOR).relu(),
    "full token rows": tokens([40] * 8, 40),
    "rows of equal length": tokens([30] * 8, 30),
    "sparse time series": torch.randn(8, 50, 1, generator=GENERATOR).relu(),
    "empty": torch.zeros(0, 8, dtype=torch.long),
    "boards that are filled from below": boards(),
    "half precision": torch.zeros(4, 8, 8, dtype=torch.bfloat16),
}


@pytest.mark.parametrize("name", HEALTHY)
def test_what_is_no_padding(name):
    assert padding((HEALTHY[name], torch.randint(0, 3, (8,)))) <= 0.02


@pytest.mark.parametrize("key", ["labels", "target_ids", "token_type_ids", "special_tokens_mask", "loss_mask"])
def test_targets_and_other_masks_are_not_looked_at(key):
    padded = (tokens(LENGTHS, 40) != 0).long()
    assert padding({key: padded, "input_ids": tokens([40] * 4, 40)}) == 0


def steady_rank(computing: ComputeTrace, steps: int = 100, **changes) -> RankTrace:
    return replace(t.rank([10.0] * steps, {"Fwd": 0.3, "Bwd": 0.4, "Opt": 0.1}), computing=computing, **changes)


def summary_of(computing: ComputeTrace, **changes):
    return summarize(t.trace(steady_rank(computing, **changes)), run="1", project="/p")


def each_step(per_step: float, steps: int = 100) -> Counter:
    """Grows by `per_step` a step, read every ten steps from the fifth on."""
    at = np.arange(5, steps + 1, 5)
    return Counter(t.START_NS + at * 10 * t.MS, at * per_step)


def test_steps_that_a_census_slowed_do_not_count():
    rank = t.rank([10.0] * 24 + [500.0] + [10.0] * 75, {"Fwd": 0.3, "Bwd": 0.4}, left_out=(6, 24))
    found = summarize(t.trace(rank), run="1", project="/p")
    assert (found.steps, found.warmup_steps, found.step_ms.max_ms) == (93, 5, 10.0)
    assert found.steady_s == pytest.approx(0.93)
    assert sum(stat.share for stat in found.phases.values()) == pytest.approx(1.0)
    part_ = steady_part(rank)
    begin = int(rank.step_start_ns[24])
    assert part_.holds(np.array([begin - 1, begin, begin + 499 * t.MS, begin + 500 * t.MS])).tolist() == [True, False, False, True]


def test_a_run_that_consists_of_such_steps_keeps_them():
    assert summarize(t.trace(t.rank([10.0] * 2, {"Fwd": 0.3}, left_out=(1,))), run="1", project="/p").steps == 1


def test_synchronisations_are_counted_in_the_steady_part():
    sync = SyncTrace(LINE, "item", "Other", True, each_step(3), each_step(2 * t.MS))
    rare = SyncTrace(None, "cpu", "Eval", True, Counter(each_step(0).t_ns, np.zeros(20)), each_step(0))
    found = summary_of(ComputeTrace(syncs=(rare, sync))).sync_points
    assert len(found) == 1
    assert (found[0].location, found[0].count, found[0].mean_ms) == (LINE, 285, pytest.approx(2 / 3))
    assert found[0].share == pytest.approx(0.2)


def test_collections_and_what_was_never_read():
    done = GcTrace((each_step(1), each_step(0.1), each_step(0.01)), each_step(t.MS), each_step(0), LINE)
    found = summary_of(ComputeTrace(collections=done)).collections
    assert (found.count, found.full, found.called, found.location) == (105, 1, 0, None)
    assert found.share == pytest.approx(0.1)
    bare = summary_of(ComputeTrace())
    assert (bare.collections, bare.memory, bare.compilation, bare.operators, bare.updates, bare.numerics) == (None,) * 6


def test_only_compilations_in_the_steady_part_cost_steps():
    begins = np.array([t.START_NS + 5 * t.MS, t.START_NS + 500 * t.MS, t.START_NS + 700 * t.MS])
    done = CompileTrace(begins, t.ns([900, 30, 50]), 3, 1, ("tensor 'x' size mismatch at index 0. expected 4, actual 5",), False, LINE)
    found = summary_of(ComputeTrace(compilation=done)).compilation
    assert (found.frames, found.steady, found.mean_ms, found.by_shape, found.location) == (3, 2, 40.0, True, LINE)
    assert found.share == pytest.approx(80 / 950)
    other = replace(done, reasons=("___check_type_id(L['mode'], 1234)",))
    assert not summary_of(ComputeTrace(compilation=other)).compilation.by_shape


@pytest.mark.parametrize(
    ("reason", "by_shape", "by_attribute"),
    [
        ("self.epoch == 7", False, True),
        ("0/7: net.sizes[2].count == 12", False, True),
        ("n == 7", True, False),
        ("x.size()[1] == 7", True, False),
        ("x.ndim == 3", True, False),
        ("self.scale == 0.5", False, False),
    ],
)
def test_a_number_that_an_object_holds_is_no_shape(reason, by_shape, by_attribute):
    done = CompileTrace(np.array([t.START_NS + 500 * t.MS]), t.ns([30]), 3, 1, (reason,), False, LINE)
    found = summary_of(ComputeTrace(compilation=done)).compilation
    assert (found.by_shape, found.by_attribute) == (by_shape, by_attribute)


def census(**changes) -> CensusTrace:
    plain = CensusTrace(
        step=6, ns=10 * t.MS, ops=100, op_ns=8 * t.MS, small_ns=t.MS, optimizer_ops=20, matmul_ns=4 * t.MS, conv_ns=0, copy_ns=2 * t.MS
    )
    return replace(plain, **changes)


def test_the_calmest_census_gives_the_times():
    found = summary_of(ComputeTrace(censuses=(census(ns=90 * t.MS, op_ns=80 * t.MS, ops=110), census()))).operators
    assert (found.steps, found.per_step, found.op_ms, found.step_ms, found.optimizer_per_step) == (2, 105.0, 8.0, 10.0, 20.0)
    assert (found.small_share, found.matmul_share, found.conv_share, found.copy_share) == (0.125, 0.5, 0.0, 0.25)


def test_attention_by_line_with_its_backward():
    calls = (AttentionCall("hand_written", (2, 4, 8, 8), 3, t.MS, 2 * t.MS), AttentionCall("math_fallback", (2, 4, 8, 9), 1, t.MS, None))
    lines = (
        AttentionLine("softmax", LINE, (2, 4, 8, 8), "", 2),
        AttentionLine("softmax", None, (2, 4, 8, 8), "need_weights", 1),
        AttentionLine("softmax", LINE, (8, 10), "", 1),
        AttentionLine("sdpa", LINE, (2, 4, 8, 9), "dropout on a CPU", 1),
    )
    found = summary_of(ComputeTrace(censuses=(census(attention=calls),), attention_lines=lines)).attention
    assert [(each.kind, each.location, each.reason) for each in found] == [
        ("math_fallback", LINE, "dropout on a CPU"),
        ("hand_written", LINE, ""),
        ("math_fallback", None, "need_weights=True"),
    ]
    assert [each.share for each in found] == pytest.approx([0.3, 0.2, 0.1])  # forward alone counts three times
    assert [each.per_step for each in found] == pytest.approx([1.0, 2.0, 1.0])


def test_attention_outside_the_training_part_of_a_step_is_not_multiplied():
    calls = (AttentionCall("hand_written", (2, 4, 8, 8), 1, t.MS, 2 * t.MS),)
    rank = t.rank([10.0] * 100, {"Fwd": 0.3, "Eval": 0.5}, computing=ComputeTrace(censuses=(census(attention=calls),)))
    found = summarize(t.trace(rank), run="1", project="/p").attention
    assert found[0].share == pytest.approx(0.15)


def test_void_censuses_are_left_out_and_say_nothing():
    facts = Facts("", {"census": [{"step": 6}, {"step": 24, "ns": 5}]})
    assert left_out(facts) == (6, 24)
    assert read_computing(facts).censuses == ()


def test_lines_that_appear_late_count_from_zero():
    rows = [["/p/train.py", 3, "main"], "item", "Other", True]
    facts = Facts("/p", {"syncs": [{"t": 10, "rows": []}, {"t": 20, "rows": [[*rows, 4, 40]]}, {"t": 30, "rows": [[*rows, 8, 80]]}]})
    sync = read_computing(facts).syncs[0]
    assert (sync.location, sync.count.value.tolist(), sync.ns.value.tolist()) == (
        Location("train.py", 3, "main"),
        [0.0, 4.0, 8.0],
        [0.0, 40.0, 80.0],
    )


def test_slow_steps_between_two_readings_have_no_more_calls_than_others():
    rank = t.rank([300.0] * 10 + [10.0] * 90, {"Fwd": 0.3}, left_out=(60,))
    readings = rank.step_start_ns[[5, 100]]
    calls = Counter(readings, np.array([15.0, 300.0]))
    sync = SyncTrace(LINE, "item", "Other", True, calls, Counter(readings, np.array([0.0, 95.0 * t.MS])))
    single = Counter(readings[:1], np.array([1.0]))
    computing = ComputeTrace(syncs=(sync, SyncTrace(LINE, "cpu", "Other", True, single, single)))
    found = summarize(t.trace(replace(rank, computing=computing)), run="1", project="/p")
    (point,) = found.sync_points
    assert point.count == 3 * found.steps
    assert point.mean_ms == pytest.approx(1 / 3)


@pytest.mark.parametrize(("unit", "seen"), [(100_000, 1.0), (6_000, 0.1)])  # of 3 ms of forward all was seen, and a tenth: most lies beside
def test_repeated_forward_is_its_part_of_forward_and_of_the_backward_that_belongs_to_it(unit, seen):
    place = ["/p/train.py", 30, "forward"]
    windows = [
        {"total_ns": 40 * unit, "recorded_ns": 20 * unit, "rows": [[place, 2, 20 * unit, 10 * unit]]},
        {"total_ns": 60 * unit, "recorded_ns": 20 * unit, "rows": [[place, 4, 20 * unit, 0], [None, 1, 10 * unit, 10 * unit]]},
    ]
    computing = read_computing(Facts("/p", {"again": windows}))
    rank = t.rank([10.0] * 100, {"Fwd": 0.3, "Bwd": 0.4}, computing=computing)
    first, second = summarize(t.trace(rank), run="1", project="/p").forward_repeats
    assert (first.location, first.per_step, first.share) == (LINE, 3.0, pytest.approx(seen * (0.4 * 0.3 + 0.25 * 0.4)))
    assert (second.location, second.per_step, second.share) == (None, 0.5, pytest.approx(seen * (0.1 * 0.3 + 0.25 * 0.4)))


class Timed(torch.nn.Module):
    """Takes `ms` of a clock that only this moves."""

    def __init__(self, clock: list[int], ms: int) -> None:
        super().__init__()
        self._clock, self._ms, self.weight = clock, ms, torch.nn.Parameter(torch.ones(()))

    def forward(self, x):
        self._clock[0] += self._ms
        return x * self.weight


@pytest.fixture
def looked_at(monkeypatch):
    """What a window writes of the step `program(encoder, head)`: (total_ns, recorded_ns, figures of its one row), by a clock of its own."""
    again, written, clock = part("facts.again"), [], [0]
    monkeypatch.setattr(again, "_clock", lambda: clock[0])
    monkeypatch.setattr(again, "fact", lambda name, **figures: written.append((name, figures)))
    monkeypatch.setattr(again.loop, "tid", again.get_ident())
    encoder, head, plain_call = Timed(clock, 10), Timed(clock, 3), torch.nn.Module.__call__

    def seen(program, before=lambda encoder, head: None) -> tuple:
        window = again.Again(torch)
        window._open()
        before(encoder, head)
        window._backward_begins((), None)  # what came before it is remembered only
        monkeypatch.setattr(again.loop, "steps", again.loop.steps + 1)
        program(encoder, head)
        window._backward_begins((), None)
        assert torch.nn.Module.__call__ is plain_call
        name, figures = written[-1]
        rows = [row for _, *row in figures["rows"]]
        assert name == "again" and len(rows) <= 1
        return figures["total_ns"], figures["recorded_ns"], *rows

    return seen


X = torch.arange(4.0)


def without_gradients(module, x):
    with torch.no_grad():
        return module(x)


def test_two_of_three_equal_calls_and_their_time_are_repetitions(looked_at):
    def program(encoder, head):
        for number in range(3):
            head(encoder(X) + number)
        without_gradients(encoder, X + 1)

    assert looked_at(program) == (49, 39, [2, 20, 20])


def test_a_call_without_gradients_before_the_same_one_with_them_is_for_nothing(looked_at):
    def program(encoder, head):
        head(without_gradients(encoder, X))
        encoder(X)

    assert looked_at(program) == (23, 13, [1, 10, 0])


def test_what_a_frozen_network_gave_behind_the_update_before_is_no_work_of_this_step(looked_at):
    def program(encoder, head):
        head(X)
        without_gradients(encoder, X)

    assert looked_at(program, before=lambda encoder, head: without_gradients(encoder, X)) == (13, 3)

    def with_something_new(encoder, head):
        program(encoder, head)
        without_gradients(encoder, X + 1)

    assert looked_at(with_something_new, before=lambda encoder, head: without_gradients(encoder, X)) == (23, 3, [1, 10, 0])
