"""Judgement on synthetic records: each hard signal caught, each honest change let through, missing evidence never "same"."""

from __future__ import annotations

import json
import math
import random
from dataclasses import replace

import pytest
from training_records import (
    BATCH,
    EPOCH,
    MODE,
    altered,
    check_of,
    checkpoint,
    clipped,
    evaluation,
    later,
    record,
    rounded,
    row,
    setting,
    short,
    shuffled,
    shuffled_like,
    stream,
    update,
    weights,
)  # fmt: skip

from trainflash.fidelity import compare
from trainflash.fidelity.judgement import RULES
from trainflash.fidelity.pairing import epoch_starts
from trainflash.fidelity.record import Reader, Record, read


def test_equal_records_are_the_same():
    found = compare(record(), record(), tolerance=1e-3)
    assert (found.verdict, found.changed, found.mean_abs_loss_delta, found.updates) == ("same", (), 0.0, 30)
    assert found.seen == ("epoch boundary", "evaluation", "checkpoint", "schedule")
    assert found.not_seen == ()


BROKEN = {
    "fewer updates": (short(25), "updates", "30 updates → 25"),
    "half the batch": (altered(12, samples=2), "batch", "update 12: 4 samples → 2"),
    "accumulation lost": (altered(12, losses=(0.1, 0.1)), "batch", "update 12: 1 backward calls → 2"),
    "cropped inputs": (altered(7, shapes=("float32[3,4,4]",)), "shape", "update 7: [3,8,8] → [3,4,4]"),
    "replayed batch": (record(stream([update(n, (0, 1, 2, 3)) for n in range(1, 31)])), "samples", "distinct samples 40 → 4"),
    "other order within a batch": (altered(3, order="x"), "order", "update 3: samples come in another order within the batch"),
    "targets moved": (altered(9, targets="x"), "targets", "update 9: the same inputs meet other targets"),
    "eval mode": (altered(1, modes=(("Net", False, 0, 0.0, 0),)), "mode", "update 1: train (1 dropouts"),
    "other optimizer": (altered(1, optimizer_class="AdamW", losses=(1.1,)), "optimizer", "update 1: SGD → AdamW"),
    "momentum": (altered(4, settings=setting(4, momentum=0.8)), "optimizer", "momentum 0.9 → 0.8"),
    "late learning rate": (
        altered(23, settings=setting(23, lr=0.06)),
        "schedule",
        "update 23, group 0: lr 0.05 → 0.06",
    ),
    "frozen layer": (
        later(weights=tuple(weights(n, updated=2, untouched=["0.bias", "0.weight"]) for n in (1, 2, 5))),
        "coverage",
        "update 1: 4 parameters updated → 2 (0.bias, 0.weight)",
    ),
    "an average that lags": (
        later(weights=tuple(weights(n, averages=[[1.0, [0.99 if n == 5 else 1.0] * 8]]) for n in (1, 2, 5))),
        "weights",
        "update 5: another average of the same weights is kept",
    ),
    "fewer values updated": (later(weights=(weights(1), weights(2, changed_values=50))), "coverage", "update 2: 100 values updated → 50"),
    "evaluation on less": (later(evaluations=(evaluation(20, samples=16, multiset="bee"),)), "evaluation", "32 samples → 16"),
    "evaluation in train mode": (later(evaluations=(evaluation(10, modes=[list(MODE)]),)), "evaluation", "after update 10: eval"),
    "evaluation of other weights": (
        later(evaluations=(evaluation(20, outputs=[61.0, 400.0, 320]),)),
        "evaluation",
        "after update 20: other outputs for the same samples, relative difference 0.0028",
    ),
    "evaluation in another type": (
        later(evaluations=(evaluation(20, autocast=["torch.bfloat16"]),)),
        "precision",
        "after update 20: autocast none → torch.bfloat16",
    ),
    "evaluation rarer": (later(evaluations=(evaluation(20),)), "cadence", "3 times → 1 (first difference after update 10)"),
    "checkpoint without optimizer": (
        later(checkpoints=(checkpoint(10, keys="j", names=["model.weight:float32[4, 4]"]), checkpoint(20), checkpoint(30))),
        "checkpoint",
        "after update 10: the saved object differs: without optimizer.state",
    ),
    "stale checkpoint": (later(checkpoints=(checkpoint(20, digest="c10"),)), "checkpoint", "after update 20"),
    "logs rarer": (altered(20, logs=0), "cadence", "3 times → 2"),
    "loss differs": (altered(30, losses=(0.5,)), "loss", "mean |Δ| 0.0156"),
    "loss is NaN": (altered(30, losses=(math.nan,)), "loss", "update 30"),
    "an update without backward": (altered(6, losses=(), grad_norm=None), "batch", "update 6: 1 backward calls → 0"),
}  # fmt: skip


@pytest.mark.parametrize("case", BROKEN)
def test_broken_speed_up_is_named(case):
    candidate, name, evidence = BROKEN[case]
    found = compare(record(), candidate, tolerance=1e-3)
    assert found.verdict == "changed"
    assert name in found.changed
    assert any(evidence in reason for reason in found.reasons), found.reasons


def test_a_bound_on_the_gradient_must_hold_in_any_order():
    loose = shuffled_like(clipped(None))
    found = compare(clipped(0.5), loose)
    assert {"order", "clipping"} <= set(found.changed)
    assert "in the baseline none exceeds 0.5" in check_of(found, "clipping").evidence
    assert check_of(compare(clipped(0.5), shuffled_like(clipped(0.5))), "clipping").ok
    unbounded = record(stream([update(n, grad_norm=1.0 + n / 100) for n in range(1, 31)]))
    assert check_of(compare(unbounded, unbounded), "clipping").ok is None


def test_each_rule_has_a_case_that_it_catches():
    cases = [(record(), candidate) for candidate, _, _ in BROKEN.values()] + [(clipped(0.5), clipped(None))]
    caught = {check.name for baseline, candidate in cases for check in compare(baseline, candidate).checks if check.ok is False}
    informative = {"random streams"}  # explains, never decides
    elsewhere = {
        "evaluation targets",
        "evaluated networks",
        "data types",
        "input values",
        "target values",
        "checkpoint cadence",
        "checkpoint values",
        "checkpoint files",
        "streams of workers",
    }
    assert {rule.name for rule in RULES} - caught <= informative | elsewhere


def test_another_order_over_whole_epochs_is_order_alone():
    found = compare(record(), shuffled())
    assert (found.verdict, found.changed) == ("changed", ("order",))
    assert check_of(found, "samples").evidence.startswith("the same samples in each of 3 whole epochs")
    assert check_of(found, "loss").ok is None


def test_an_epoch_that_the_program_breaks_off_is_not_compared_as_a_whole_one():
    cut = [
        record(replace(stream, updates=stream.updates[:26], weights=stream.weights[:5]))
        for stream in (record().streams[0], shuffled().streams[0])
    ]
    found = compare(*cut)
    assert found.changed == ("order",)
    assert check_of(found, "samples").evidence.startswith("the same samples in each of 2 whole epochs")


def moved_at(*untouched: str) -> tuple[dict, ...]:
    """Weights looked at after updates 1, 5, 15, 20 and 30; at the later three, `untouched` is what stays as it is ("": nothing)."""
    names = dict(zip((15, 20, 30), untouched, strict=True))
    return tuple(weights(n, updated=3 if names.get(n) else 4, untouched=[names[n]] if names.get(n) else []) for n in (1, 5, 15, 20, 30))


@pytest.mark.parametrize(
    ("baseline", "candidate", "changed"),
    [
        (("a", "", ""), ("b", "", ""), False),
        (("", "a", ""), ("a", "a", ""), False),
        (("", "", ""), ("a", "a", "a"), True),
        (("a", "a", "a"), ("", "", ""), True),
        (("", "a", ""), ("a", "a", "a"), False),
    ],
    ids=["wavers", "wavers more", "frozen", "thawed", "wavers always"],
)
def test_other_samples_leave_other_gradients_at_zero(baseline, candidate, changed):
    ours = record(replace(record().streams[0], weights=moved_at(*baseline)))
    updates = (*ours.streams[0].updates[:10], *shuffled().streams[0].updates[10:])
    theirs = record(replace(shuffled().streams[0], updates=updates, weights=moved_at(*candidate)))
    found = compare(ours, theirs)
    assert found.changed == (("order", "coverage") if changed else ("order",))


def test_another_order_without_a_whole_epoch_cannot_clear_the_samples():
    cut = [Record((replace(each.streams[0], updates=each.streams[0].updates[:8]),)) for each in (record(), shuffled())]
    found = compare(*cut)
    assert set(found.changed) == {"samples", "order"}
    assert "no whole epoch was seen" in check_of(found, "samples").evidence


def test_evaluating_the_same_samples_in_other_batches_is_the_same():
    found = compare(record(), later(evaluations=tuple(evaluation(n, forwards=1) for n in (10, 20, 30))))
    assert found.verdict == "same"
    assert "in 4 forwards → 1" in check_of(found, "evaluation inputs").evidence


@pytest.mark.parametrize(
    ("changes", "ok"),
    [
        ({"outputs": [60.0001, 400.001, 320]}, True),
        ({"outputs": [0.0, 0.0, 0]}, None),  # nothing but a mean was returned
        ({"outputs": [61.0, 400.0, 352]}, None),  # padded otherwise
        ({"results": 3, "outputs": [61.0, 400.0, 320]}, None),
        ({"outputs": [math.nan, 400.0, 320]}, False),
    ],
)
def test_results_of_evaluations_are_compared_where_they_can_be(changes, ok):
    found = compare(record(stream(evaluations=(evaluation(20),))), record(stream(evaluations=(evaluation(20, **changes),))))
    assert check_of(found, "evaluation results").ok is ok
    assert ("evaluation" in found.changed) == (ok is False)


def test_an_evaluation_is_not_hidden_by_a_network_that_answers_in_every_step():
    always = tuple(evaluation(n, of=["Critic", True], samples=8, multiset=f"a{n}") for n in range(1, 31))
    before = record(stream(evaluations=(*always, evaluation(10), evaluation(20), evaluation(30))))
    rarer = compare(before, record(stream(evaluations=(*always, evaluation(20)))))
    assert rarer.changed == ("cadence",) and "3 times → 1" in check_of(rarer, "evaluation cadence").evidence
    less = compare(before, record(stream(evaluations=(*always[1:], evaluation(10), evaluation(20), evaluation(30)))))
    assert "30 times → 29" in check_of(less, "evaluation cadence").evidence
    other = (*always[:4], evaluation(5, of=["Critic", True], samples=8, multiset="b"), *always[5:])
    found = compare(before, record(stream(evaluations=(*other, evaluation(10), evaluation(20), evaluation(30)))))
    assert found.changed == ("evaluation",) and "after update 5" in check_of(found, "evaluation inputs").evidence


def test_evaluated_batches_may_be_padded_to_another_width():
    before = record(stream(evaluations=(evaluation(20, multiset="a", trimmed="t"),)))
    assert compare(before, record(stream(evaluations=(evaluation(20, multiset="b", trimmed="t"),)))).verdict == "same"
    other = compare(before, record(stream(evaluations=(evaluation(20, multiset="b", trimmed="u"),))))
    assert "other samples" in check_of(other, "evaluation inputs").evidence


def test_a_network_that_is_evaluated_in_training_mode_is_said_to_be():
    before = record(stream(evaluations=(evaluation(20),)))
    after = record(stream(evaluations=(evaluation(20, of=["Net", True], modes=[list(MODE)]),)))
    found = compare(before, after)
    assert "after update 20: eval" in check_of(found, "evaluation inputs").evidence and check_of(found, "evaluation cadence").ok


def test_results_of_evaluations_say_nothing_of_another_training():
    far = replace(rounded(1e-7, 1e-7).streams[0], evaluations=(evaluation(20, outputs=[61.0, 400.0, 320]),))
    assert check_of(compare(record(), record(far)), "evaluation results").ok is None


def test_rounding_is_close_and_named():
    found = compare(record(), rounded(1e-7, 1e-7))
    assert (found.verdict, found.changed) == ("close", ("numerics",))
    assert found.mean_abs_loss_delta == pytest.approx(1e-7 * 29 / 30)


def test_bf16_within_tolerance_is_named_precision_and_nothing_else():
    updates = [update(n, losses=(1.0 / n + 1e-4,), autocast=("torch.bfloat16",)) for n in range(1, 31)]
    found = compare(record(), record(stream(updates, weights=tuple(weights(n, 1e-4) for n in (1, 20)))))
    assert (found.verdict, found.changed) == ("changed", ("precision",))
    assert check_of(found, "loss").ok


def test_early_weights_too_far_apart_is_changed_even_with_equal_losses():
    found = compare(record(), rounded(0.0, 2e-3))
    assert found.verdict == "changed"
    assert found.changed == ("weights",)


def test_small_damage_in_a_steady_program_is_not_rounding():
    steady = {"rerun": record(), "nudged": rounded(1e-9, 1e-9)}
    assert compare(record(), rounded(5e-4, 1e-8), **steady).verdict == "close"
    found = compare(record(), rounded(5e-4, 5e-4), **steady)
    assert found.verdict == "changed"
    assert found.changed == ("weights",)


def test_where_the_nudge_exceeds_the_tolerance_it_is_the_judge():
    restless = {"rerun": record(), "nudged": rounded(2.8e-3, 1e-4)}
    assert compare(record(), rounded(4e-3, 1e-4), **restless).verdict == "close"
    assert compare(record(), rounded(4e-2, 1e-4), **restless).verdict == "changed"


def test_a_program_that_does_not_repeat_itself_is_inconclusive():
    found = compare(record(), shuffled(), rerun=shuffled())
    assert found.verdict == "inconclusive"
    assert "set a seed" in found.reasons[0]


def test_a_difference_beyond_the_unsteady_ones_is_still_changed():
    updates = [replace(each, optimizer_class="Adam") for each in shuffled().streams[0].updates]
    found = compare(record(), record(stream(updates)), rerun=shuffled())
    assert found.verdict == "changed"
    assert found.changed == ("optimizer",)


def test_an_input_that_rounding_moves_is_not_held_against_the_candidate():
    moved = [update(n, multiset="a" * n, order="x", rows=None, losses=(1.0 / n + 1e-8,)) for n in range(1, 31)]
    moved = [replace(each, moments=(9.9, 9.9, 9.9)) for each in moved]
    candidate = record(stream(moved))
    assert "samples" in compare(record(), candidate).changed
    found = compare(record(), candidate, rerun=record(), nudged=candidate)
    assert found.verdict == "close"
    assert check_of(found, "samples").ok is None


def test_recomputed_inputs_are_numerics():
    moved = [replace(each, multiset="feed", order="x", moments=tuple(m * (1 + 1e-7) for m in each.moments)) for each in stream().updates]
    found = compare(record(), record(stream(moved)))
    assert (found.verdict, found.changed) == ("close", ("numerics",))


def silent() -> Record:
    return record(stream([update(n, losses=()) for n in range(1, 31)]))


INCONCLUSIVE = {
    "a handful of updates": (short(4), short(4), "only 4 updates"),
    "no updates in the baseline": (Record(()), record(), "the baseline never completed"),
    "NaN on both sides": (altered(30, losses=(math.nan,)), altered(30, losses=(math.nan,)), "not finite"),
    "no losses": (silent(), silent(), "no loss was seen"),
    "no weights": (later(weights=()), later(weights=()), "no weights"),
    "damaged": (record(), later(broken=True), "damaged"),
    "a signal that the recorder lost": (record(), later(swallowed={"digest: RuntimeError": 3}), "could not measure digest"),
}


@pytest.mark.parametrize("case", INCONCLUSIVE)
def test_missing_evidence_is_never_same(case):
    baseline, candidate, reason = INCONCLUSIVE[case]
    found = compare(baseline, candidate)
    assert found.verdict == "inconclusive"
    assert reason in found.reasons[0]


def test_a_checkpoint_that_nobody_looked_into_is_not_the_same():
    unseen = tuple({"n": n, "target": "a.pt"} for n in (10, 20, 30))
    assert check_of(compare(record(), later(checkpoints=unseen)), "checkpoint contents").ok is None
    assert check_of(compare(later(checkpoints=unseen), later(checkpoints=unseen)), "checkpoint contents").ok is None


def test_a_candidate_that_never_trains_is_changed():
    found = compare(record(), Record((), True))
    assert (found.verdict, found.changed) == ("changed", ("updates",))


def test_a_lost_rank_is_changed_and_a_difference_names_its_rank():
    ranks = record(stream(), stream(rank=1))
    assert compare(ranks, record(stream())).changed == ("updates",)
    found = compare(ranks, record(stream(), stream([update(n, samples=2) for n in range(1, 31)], rank=1)))
    assert any("rank 1: update 1: 4 samples → 2" in reason for reason in found.reasons)


def shares(deal, *, lost: int | None = None, slope: float = 1e-4) -> Record:
    """Two ranks that go through 80 samples, each through what `deal` gives it, 4 at a time; `lost` comes as another sample."""
    streams = []
    for rank in range(2):
        mine = [number if number != lost else 99 for number in deal(list(range(80)), rank)]
        shown = [tuple(mine[(n - 1) % EPOCH * BATCH :][:BATCH]) for n in range(1, 31)]
        streams.append(stream([update(n, rows, losses=((1 + slope * sum(rows)) / n,)) for n, rows in enumerate(shown, 1)], rank=rank))
    return record(*streams)


def test_samples_dealt_to_other_ranks_are_another_order():
    runs, dealt = (lambda rows, rank: rows[40 * rank : 40 * rank + 40]), (lambda rows, rank: rows[rank::2])
    found = compare(shares(runs), shares(dealt))
    assert (found.verdict, found.changed) == ("changed", ("order",))
    assert check_of(found, "samples").evidence.startswith("all ranks together see the same samples in each of 3 whole epochs")
    assert "samples" in compare(shares(runs), shares(dealt, lost=7)).changed
    assert "samples" in compare(shares(runs), shares(lambda rows, rank: rows[:40])).changed


def test_losses_of_ranks_that_see_other_samples_are_compared_together():
    def mixed(seed: int):
        return lambda rows, rank: random.Random(seed).sample(rows[40 * rank : 40 * rank + 40], 40)

    baseline, controls = shares(mixed(0), slope=0.025), [shares(mixed(seed), slope=0.025) for seed in (1, 2, 3)]
    dealt = shares(lambda rows, rank: mixed(4)(rows[rank::2] + rows[1 - rank :: 2], 0), slope=0.025)
    found = compare(baseline, dealt, controls=controls, agreed=frozenset({"order"}))
    assert check_of(found, "losses in distribution").ok and found.changed == ("order",)
    one = compare(record(baseline.streams[0]), record(dealt.streams[0]), controls=[record(each.streams[0]) for each in controls])
    assert check_of(one, "losses in distribution").ok is False


def test_samples_dealt_to_other_ranks_are_padded_otherwise():
    def padded(deal) -> Record:
        made = shares(deal)
        return replace(made, streams=tuple(replace(each, updates=tuple(map(wide, each.updates))) for each in made.streams))

    def wide(each):
        return replace(each, trimmed=(each.multiset, each.order), shapes=(f"int64[{int(max(each.rows), 16)}]",))

    found = compare(padded(lambda rows, rank: rows[40 * rank :][:40]), padded(lambda rows, rank: rows[rank::2]))
    assert found.changed == ("order",) and check_of(found, "input shapes").ok


def test_a_cut_record_is_compared_where_both_have_been():
    cut = Record((replace(stream(), updates=stream().updates[:22], evaluations=(evaluation(10),), ended=False),), whole=False)
    found = compare(cut, record())
    assert found.verdict == "same"
    assert found.updates == 22
    assert "was stopped there" in check_of(found, "updates").evidence


def test_epochs_are_found_by_samples_that_come_again():
    blind = replace(stream(), updates=tuple(replace(each, epoch=0) for each in stream().updates))
    assert epoch_starts(blind, 30) == (0, 10, 20)
    assert epoch_starts(stream(), 30) == (0, 10, 20)


def test_reader_follows_a_growing_file_and_leaves_a_torn_line(tmp_path):
    line = {"k": "update", "n": 1, "optimizer": 0, "class": "SGD", "epoch": 0, "losses": [(0.5).hex()], "settings": [{"lr": 0.1}]}
    line |= {"forwards": 1, "samples": 1, "rows": row(1), "multiset": "2", "order": "o", "targets": None, "logs": 0}
    line |= {key: [] for key in ("loss_types", "batches", "shapes", "moments", "modes", "autocast")}
    line |= dict.fromkeys(("grad_norm", "grads", "grad_elements"))
    start = {"k": "start", "schema": "training-record.v1", "pid": 1, "start_ns": 5, "rank": 0, "world_size": 1}
    path = tmp_path / "training-1.jsonl"
    second = {**line, "n": 2}
    del second["settings"]
    torn = json.dumps(second)
    path.write_text(json.dumps(start) + "\n" + json.dumps(line) + "\n" + torn[:40])
    reader = Reader(tmp_path)
    assert reader.look().updates == 1
    with path.open("a") as file:
        file.write(torn[40:] + "\n")
    found = reader.look().streams[0]
    assert [each.n for each in found.updates] == [1, 2]
    assert found.updates[1].settings == ({"lr": 0.1},)
    with path.open("a") as file:
        file.write("{broken\n")
    assert reader.look().streams[0].broken
    assert read(tmp_path / "missing") == Record((), False)


def saved(n: int, contents: str, **changes) -> dict:
    return {**checkpoint(n), "digest": contents, "scalars": f"epoch-{contents[-1]}", "current": 4, "live": 4, **changes}


THREE = tuple(saved(10 * number, f"weights-{number}") for number in (1, 2, 3))


def test_a_checkpoint_that_is_written_late_must_hold_what_it_says():
    aliased = tuple(saved(30, "weights-3", scalars=f"epoch-{number}") for number in (1, 2, 3))
    found = compare(later(checkpoints=THREE), later(checkpoints=aliased))
    assert {"checkpoint", "cadence"} <= set(found.changed)
    copied = tuple({**line, "n": min(30, line["n"] + 4), "current": 0} for line in THREE)
    assert compare(later(checkpoints=THREE), later(checkpoints=copied)).changed == ("cadence",)


def test_fewer_checkpoints_are_a_cadence_and_none_at_all_is_lost():
    assert compare(later(checkpoints=THREE), later(checkpoints=THREE[1:2])).changed == ("cadence",)
    assert "checkpoint" in compare(later(checkpoints=THREE), later(checkpoints=())).changed


def test_a_checkpoint_elsewhere_must_hold_the_weights_of_its_moment():
    elsewhere = saved(15, "other-9")
    assert compare(later(checkpoints=THREE), later(checkpoints=(elsewhere, *THREE[1:]))).changed == ("cadence",)
    stale = saved(15, "other-9", current=0)
    assert "checkpoint" in compare(later(checkpoints=THREE), later(checkpoints=(stale, *THREE[1:]))).changed


def test_a_file_that_holds_other_values_than_were_handed_over_is_found():
    stored = ({"n": 10, "target": "a.pt", "digest": "weights-1"}, {"n": 20, "target": "b.pt", "digest": "torn"})
    found = compare(later(checkpoints=THREE), later(checkpoints=THREE, stored=stored))
    assert "b.pt" in check_of(found, "checkpoint files").evidence
    assert found.changed == ("checkpoint",)


def test_inputs_that_come_from_the_model_itself_are_not_compared_and_the_others_are():
    def critic(salt: str, noise: str = "") -> Record:
        made = [
            update(
                n, parts=(f"data{n}{noise}", f"fake{n}{salt}"), multiset=f"{n}{salt}{noise}".encode().hex(), order=salt + noise, rows=None,
                moments=(9.0 * len(salt), 9.9, 1.0 * len(salt)),
            )
            for n in range(1, 31)
        ]  # fmt: skip
        return record(stream(made))

    noise = {"rerun": critic(""), "nudged": critic("nudged")}
    assert set(compare(critic(""), critic("other"), **noise).changed) <= {"numerics"}
    assert "samples" in compare(critic(""), critic("other", noise="x"), **noise).changed


def test_the_same_inputs_with_other_ones_beside_them_are_lost_pairing():
    def fed(shift: int) -> Record:
        return record(stream([update(n, parts=(f"x{n}", f"y{n + shift}"), multiset=f"{n}{shift}", order=f"{shift}") for n in range(1, 31)]))

    assert compare(fed(0), fed(1)).changed == ("targets",)


def test_workers_that_share_a_random_stream_are_found():
    def worked(*streams: str, name: str = "numpy", drawn: set[str] | None = None) -> Record:
        lines = tuple({"worker": number % 2, name: state} for number, state in enumerate(streams))
        return later(workers=lines, draws=frozenset(drawn if drawn is not None else {name}))

    found = compare(worked("a", "b", "c", "d"), worked("a", "a", "a", "a"))
    assert found.changed == ("randomness",)
    assert "4 starts of workers draw from one stream of numpy's random numbers" in check_of(found, "streams of workers").evidence
    alone = compare(record(), worked("a", "a", name="held"))
    assert alone.changed == ("randomness",)
    assert "the data set's own generators; in the baseline one process draws them all" in check_of(alone, "streams of workers").evidence
    assert compare(record(), worked("a", "b", name="held")).verdict == "same"
    assert compare(record(), worked("a", "a", drawn=set())).verdict == "same"
    assert compare(worked("a", "b", "c", "d"), worked("a", "b")).verdict == "same"
    assert compare(worked("a", "a"), worked("a", "a")).verdict == "same"


def drawn_anew(updates: int = 15, *, kept: bool = False, order: int = 0, whole: bool = False, making: str = "m") -> Record:
    """An augmented data set of 40 samples: the inputs of each epoch are its own, unless they are `kept`."""

    def shown(n: int) -> tuple[int, ...]:
        epoch, at = divmod(n - 1, EPOCH)
        samples = [(at * BATCH + each + order * (1 + epoch)) % (EPOCH * BATCH) for each in range(BATCH)]
        return tuple(sample if kept else 1000 * epoch + sample for sample in samples)

    lines = [update(n, shown(n), keys=tuple(row(each % 1000) for each in shown(n))) for n in range(1, updates + 1)]
    weighed = tuple(weights(n) for n in (1, 2, 5, 10) if n <= updates)
    seen = stream(lines, weights=weighed, draws=frozenset({"numpy"}), making=frozenset({making}), evaluations=(), checkpoints=())
    return Record((seen,), whole)


def test_random_values_that_are_drawn_once_for_the_whole_run_are_another_randomness():
    found = compare(drawn_anew(), drawn_anew(kept=True), agreed=frozenset({"order"}))
    assert "randomness" in found.changed
    assert "of 60 inputs 60 are distinct → 40" in check_of(found, "fresh random values").evidence
    assert compare(drawn_anew(), drawn_anew(order=3), agreed=frozenset({"order"})).changed == ("samples", "order")


def test_epochs_that_all_come_in_one_order_are_another_randomness():
    ordered = [tuple(update(n, tuple(((n - 1) * step + each * 7) % 40 for each in range(BATCH))) for n in range(1, 31)) for step in (4, 4)]
    shuffled = [
        update(n, tuple((((n - 1) % EPOCH * BATCH + each) * (1, 3, 7)[(n - 1) // EPOCH]) % 40 for each in range(BATCH)))
        for n in range(1, 31)
    ]
    found = compare(record(stream(shuffled)), record(stream(ordered[0])), agreed=frozenset({"order"}))
    assert "two epochs come in the same order" in check_of(found, "fresh random values").evidence
    assert "randomness" in found.changed


def test_a_window_without_an_epochs_end_does_not_judge_how_batches_are_made():
    found = compare(drawn_anew(8), drawn_anew(8, kept=True, making="cached"))
    assert found.verdict == "inconclusive" and "a second epoch was not seen" in found.reasons[0]
    assert compare(drawn_anew(8), drawn_anew(8, kept=True)).verdict == "same"
    moved = compare(drawn_anew(8), drawn_anew(8, order=3), agreed=frozenset({"order", "samples"}))
    assert moved.verdict == "inconclusive"
    assert compare(drawn_anew(8, whole=True), drawn_anew(8, kept=True, making="cached", whole=True)).verdict == "same"


def test_running_statistics_are_compared_before_rounding_can_have_grown():
    def training(statistics: float, drift: float) -> Record:
        buffers = {"buffer_norm": 1.0, "buffer_sketch": [statistics] * 4}
        return later(weights=tuple(weights(n, drift if n > 1 else drift * 1e-7, step=n, **buffers) for n in (1, 2, 5, 10, 20, 30)))

    chaotic = {"rerun": training(1.0, 0.0), "nudged": training(1.0, 0.5)}
    found = compare(training(1.0, 0.0), training(1.4, 0.3), **chaotic)
    assert check_of(found, "buffers").ok is False and "weights" in found.changed
    assert check_of(compare(training(1.0, 0.0), training(1.0 + 1e-6, 0.3), **chaotic), "buffers").ok


def test_a_record_that_stops_before_its_program_is_never_judged():
    stopped = later(ended=False)
    for both in ((record(), stopped), (stopped, record()), (stopped, stopped)):
        found = compare(*both)
        assert (found.verdict, found.changed) == ("inconclusive", ())
        assert "stops before the program does" in found.reasons[0]


def test_rounded_inputs_are_told_by_their_bits():
    rounded_inputs = record(stream([update(n, coarse=(100, 100)) for n in range(1, 31)]))
    found = compare(record(stream([update(n, coarse=(3, 100)) for n in range(1, 31)])), rounded_inputs)
    assert found.changed == ("precision",)
    assert compare(rounded_inputs, rounded_inputs).verdict == "same"


def test_inputs_that_are_sorted_without_their_targets_are_lost_pairing():
    def sorted_within(pairs: str) -> Record:
        made = [update(n, trimmed=(f"{n:x}", pairs), order=pairs, pairs=f"{pairs}{n}", targets=f"t{n}") for n in range(1, 31)]
        return record(stream(made))

    assert compare(sorted_within("a"), replace(sorted_within("a"))).verdict == "same"
    found = compare(sorted_within("a"), sorted_within("b"))
    assert {"order", "targets"} <= set(found.changed)


@pytest.mark.parametrize(
    ("bank", "changed"), [(None, {"order"}), (8, {"order", "targets"})], ids=["drawn anew", "from a bank that is used again"]
)
def test_drawn_targets_may_not_come_from_a_bank(bank, changed):
    def drawn(salt: int, bank: int | None) -> Record:
        made = [
            update(
                n, rows=tuple(row(1000 * salt + 10 * n + each) for each in range(8)), multiset=f"{salt}{n:x}", order=f"{salt}-{n}",
                keys=tuple(row(((n - 1) % 10) * 8 + each) for each in range(8)), moments=(0.1 * n * salt, 50.0, 0.3 * salt),
                targets=f"{salt}{n % bank if bank else n}", losses=(1.0 / n + 1e-5 * salt,),
                target_rows=tuple(row(9000 * salt + 10 * (n % bank if bank else n) + each) for each in range(8)),
            )
            for n in range(1, 31)
        ]  # fmt: skip
        return record(stream(made, weights=tuple(weights(n, random={"torch": f"{salt}{n}"}) for n in (1, 2, 5))))

    assert set(compare(drawn(1, None), drawn(2, bank)).changed) == changed
    assert compare(drawn(1, bank), drawn(2, bank)).changed == ("order",)  # the baseline draws from a bank too


def test_the_same_keys_from_the_same_random_streams_must_give_the_same_samples():
    def drawn(salt: int, streams: str) -> Record:
        made = [
            update(
                n, rows=tuple(row(1000 * salt + 10 * n + each) for each in range(4)), multiset=f"{salt}{n:x}", order=f"{salt}-{n}",
                keys=tuple(row(((n - 1) % 10) * 4 + each) for each in range(4)), moments=(0.1 * n * salt, 50.0, 0.3 * salt),
                losses=(1.0 / n + 1e-5 * salt,),
            )
            for n in range(1, 31)
        ]  # fmt: skip
        lines = tuple(weights(n, random={"torch": f"{streams}{n}"}) for n in (1, 2, 5))
        return record(stream(made, weights=lines))

    assert "samples" in compare(drawn(1, "r"), drawn(2, "r")).changed
    assert compare(drawn(1, "r"), drawn(2, "other")).changed == ("order",)


def test_an_optimizer_that_is_left_out_in_its_turn_is_fewer_updates():
    turns = record(stream([update(n, optimizer=n % 2) for n in range(1, 31)]))
    skipped = record(stream([update(n, optimizer=n % 3 % 2) for n in range(1, 31)]))
    found = compare(turns, skipped)
    assert "updates" in found.changed
    assert "update 3 is one of optimizer 2 → of optimizer 1" in check_of(found, "updates").evidence


@pytest.mark.parametrize(
    ("late", "changed"),
    [
        ({"thread": "other"}, ()),
        ({}, ("cadence",)),
        ({"thread": "other", "digest": "older"}, ("cadence",)),
    ],
    ids=["written by another thread", "written late", "other contents"],
)
def test_what_a_thread_writes_later_counts_where_it_was_taken(late, changed):
    saved = tuple({**checkpoint(n), "n": n + 1, **late} if n == 20 else checkpoint(n) for n in (10, 20, 30))
    found = compare(record(), later(checkpoints=saved))
    assert set(found.changed) == set(changed), found.reasons


def asked_in_each_step(shift: int = 0, of: int = 29) -> tuple[dict, ...]:
    """A teacher that is asked about the batch of each of the first `of` steps."""
    return tuple(evaluation(n, of=["Teacher", False], multiset=f"{n + shift:x}") for n in range(of))


def test_a_teacher_is_asked_about_the_batches_whatever_their_order():
    ours = replace(record().streams[0], evaluations=(*record().streams[0].evaluations, *asked_in_each_step()))
    theirs = replace(shuffled().streams[0], evaluations=(*shuffled().streams[0].evaluations, *asked_in_each_step(shift=100)))
    assert compare(record(ours), record(theirs)).changed == ("order",)
    same_order = replace(ours, evaluations=theirs.evaluations)
    assert "evaluation" in compare(record(ours), record(same_order)).changed, "the same batches, and it was asked about others"
    few = [replace(each, evaluations=each.evaluations[:8]) for each in (ours, theirs)]
    assert "evaluation" in compare(*map(record, few)).changed, "a few evaluations are no part of the step"


def test_batches_of_another_size_are_not_compared_one_by_one():
    """Micro-batches of an update joined: as many samples an update, in fewer batches of the loader."""

    def fed(parts: int) -> Record:
        leaf = ("int64[]", f"labels of {parts}")
        return record(stream([update(n, batches=tuple((1, (leaf,)) for _ in range(parts)), forwards=parts) for n in range(1, 31)]))

    assert check_of(compare(fed(4), fed(1)), "targets").ok is not False
    assert (
        check_of(compare(fed(1), record(stream([update(n, batches=((1, (("int64[]", "others"),)),)) for n in range(1, 31)]))), "targets").ok
        is False
    )


@pytest.mark.parametrize(("pairs", "kept"), [("together", True), ("apart", False), (None, False)])
def test_rows_that_a_batch_holds_in_another_order_keep_their_targets(pairs, kept):
    """A collate function that sorts: the loaders draw the same samples, the labels of a batch come in another order."""

    def sorted_batches(place: int, pairs: str | None) -> Record:
        made = []
        for n in range(1, 31):
            shown = tuple(((n - 1) % 10) * 4 + each for each in range(4))
            held = {"keys": tuple(map(row, shown)), "batches": ((1, (("int64[4]", f"labels {n} {place}"),)),), "trimmed": (f"{n:x}",) * 2}
            made.append(replace(update(n, shown[::place], pairs=pairs, **held), targets=f"t {n} {place}"))
        return record(stream(made))

    found = compare(sorted_batches(1, None if pairs is None else "together"), sorted_batches(-1, pairs))
    assert found.changed == (("order",) if kept else ("order", "targets"))


def test_rows_in_another_order_say_nothing_of_updates_that_train_on_others():
    """Labels of the loader are compared again where one update meets other rows than before."""

    def made(step: int, strange: int | None) -> Record:
        updates = []
        for n in range(1, 31):
            shown = tuple(((n - 1) % 10) * 4 + each for each in range(4))
            held = {"keys": tuple(map(row, shown)), "batches": ((1, (("int64[4]", f"labels {n} {step}"),)),), "pairs": "together"}
            held["trimmed"] = (f"{n + 500 * (n == strange):x}",) * 2
            rows = tuple(each + 400 for each in shown) if n == strange else shown[::step]
            updates.append(replace(update(n, rows, **held), targets=f"t {n} {step}"))
        return record(stream(updates))

    assert check_of(compare(made(1, None), made(-1, None)), "targets").ok is not False
    assert check_of(compare(made(1, None), made(-1, 7)), "targets").ok is False


def in_another_form(of=lambda number: number + 500, **changes) -> Record:
    """The usual program, whose model makes numbers of what it is given; `of` says which row each sample becomes."""
    made = []
    for n in range(1, 31):
        shown = tuple(of(((n - 1) % 10) * 4 + each) for each in range(4))
        made.append(update(n, shown, shapes=("uint8[3,8,8]",), targets=update(n).targets, **changes))
    return record(stream(made))


def test_samples_that_reach_the_model_in_another_form_and_train_to_the_same_bits_are_the_same():
    found = compare(record(), in_another_form())
    assert (found.verdict, found.changed) == ("same", ())
    assert "each in another form" in check_of(found, "samples").evidence


def test_evaluated_samples_may_take_that_form_too_where_the_same_comes_out():
    encoded = in_another_form().streams[0].updates
    form = {"multiset": "feed"}
    same = later(updates=encoded, evaluations=tuple(evaluation(n, **form) for n in (10, 20, 30)))
    assert compare(record(), same).verdict == "same"
    others = [evaluation(10, **form), evaluation(20, outputs=[60.1, 400.0, 320], **form), evaluation(30, **form)]
    assert compare(record(), later(updates=encoded, evaluations=tuple(others))).changed == ("evaluation",)
    assert compare(record(), later(evaluations=tuple(evaluation(n, **form) for n in (10, 20, 30)))).changed == ("evaluation",)


@pytest.mark.parametrize(
    "candidate",
    [
        in_another_form(lambda number: 500),  # one sample for all
        in_another_form(lambda number: 500 + number // 2),
        in_another_form(grad_norm=None, losses=(0.5,)),
        later(updates=in_another_form().streams[0].updates, weights=tuple(weights(n, 0.1) for n in (1, 2, 5, 10, 20, 30))),
    ],
)
def test_other_samples_are_no_other_form_of_the_same(candidate):
    assert "samples" in compare(record(), candidate).changed


def grouped(*settings: dict, **changes) -> Record:
    return record(stream([update(n, settings=settings, **changes) for n in range(1, 31)]))


ONE, OTHER = {"lr": 0.1, "weight_decay": 1e-4, "values": 30}, {"lr": 0.2, "weight_decay": 0.0, "values": 20}


def test_parameters_may_be_grouped_otherwise_under_the_same_settings():
    merged = grouped({**ONE, "values": 60}, {**OTHER, "values": 40})
    assert compare(grouped(ONE, OTHER, ONE, OTHER), merged).verdict == "same"
    assert compare(grouped(ONE, OTHER), grouped(OTHER, ONE)).verdict == "same"
    moved = grouped({**ONE, "values": 80}, {**OTHER, "values": 20})
    assert "optimizer" in compare(grouped(ONE, OTHER, ONE, OTHER), moved).changed
    lost = grouped({**ONE, "values": 100})
    assert "optimizer" in compare(grouped(ONE, OTHER, ONE, OTHER), lost).changed


def test_an_optimizer_of_another_class_is_the_same_only_where_it_trains_to_the_same_bits():
    own = grouped({"lr": 0.1, "momentum": 0.9, "values": 100}, optimizer_class="Momentum")
    torchs = {"lr": 0.1, "momentum": 0.9, "weight_decay": 0, "dampening": 0, "values": 100}
    assert compare(own, grouped(torchs)).verdict == "same"
    assert "Momentum → SGD, bitwise the same" in check_of(compare(own, grouped(torchs)), "optimizer").evidence
    assert "optimizer" in compare(own, grouped({**torchs, "momentum": 0.8})).changed
    apart = grouped(torchs).streams[0].updates
    rounded_apart = later(updates=(*apart[:29], replace(apart[29], losses=(1 / 30 + 1e-9,))))
    assert "optimizer" in compare(own, rounded_apart).changed


@pytest.mark.parametrize(("values", "changed"), [(95, False), (50, True)])
def test_values_that_are_updated_may_be_others_once_the_losses_have_gone_their_own_way(values, changed):
    """A unit that answers with exactly 0 on one side has no gradient there; a part that is frozen is more."""
    steps = [update(n, losses=(1.0 + 0.01 * (n >= 10),)) for n in range(1, 31)]
    looks = (weights(1), weights(2), weights(20, changed_values=values))
    found = compare(record(), record(stream(steps, weights=looks)))
    assert (check_of(found, "coverage").ok is False) is changed
    early = record(stream(weights=(weights(1), weights(2, changed_values=95))))
    assert check_of(compare(record(), early), "coverage").ok is False
