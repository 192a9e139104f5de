"""Targets that the program computes itself: what differs by rounding alone is told from all that is another target."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
import torch
from probe_events import part
from training_records import check_of, record, stream, update

from trainflash.fidelity import aims, compare
from trainflash.fidelity.record import Record

torch.set_num_threads(1)
CLASSES, ROWS = 10, 64


def taken(*calls: torch.Tensor, made: int = 0) -> dict:
    """What the recorder writes of the targets of an update that loss functions were given in these calls."""
    forwards = part("record.forwards").Forwards()
    for target in calls:
        forwards.aim(target, None, made)
    line = forwards.taken()
    rows, sums = line["target_rows"], line["target_sums"]
    return {
        "targets": line["targets"],
        "target_rows": None if rows is None else tuple(rows[at : at + 16] for at in range(0, len(rows), 16)),
        "target_sums": None if sums is None else tuple(sums),
    }


def relation(old: list[torch.Tensor], new: list[torch.Tensor]) -> str:
    return aims.relation(update(1, **taken(*old)), update(1, **taken(*new)))


class Teacher:
    """Two layers whose hidden sums can be added up in another order."""

    def __init__(self, seed: int) -> None:
        own = torch.Generator().manual_seed(seed)
        self.first, self.second = torch.randn(32, 128, generator=own), torch.randn(128, CLASSES, generator=own) / 8

    def __call__(self, x: torch.Tensor, halves: bool = False) -> torch.Tensor:
        hidden = (x @ self.first).relu()
        if not halves:
            return hidden @ self.second
        return hidden[:, 64:] @ self.second[64:] + hidden[:, :64] @ self.second[:64]


TEACHER = Teacher(1)
X = torch.randn(ROWS, 32, generator=torch.Generator().manual_seed(2))
LABELS = torch.arange(ROWS) % CLASSES
FORMS = {
    "logits": lambda logits: logits,
    "probabilities": lambda logits: logits.softmax(1),
    "logarithms": lambda logits: logits.log_softmax(1),
    "values": lambda logits: 0.99 * logits.amax(1) + (LABELS == 0),
    "large values": lambda logits: 1e6 * logits,
    "tiny values": lambda logits: 1e-7 * logits,
    "masked logarithms": lambda logits: logits.masked_fill(LABELS[:, None] == torch.arange(CLASSES), -1e9).log_softmax(1),
}


@pytest.mark.parametrize("form", FORMS)
def test_targets_that_are_added_up_in_another_order_are_rounding(form):
    one, other = (FORMS[form](TEACHER(X, halves)) for halves in (False, True))
    assert not torch.equal(one, other)
    assert relation([one], [other]) == relation([LABELS, one], [LABELS, other]) == "rounding"
    assert relation([one], [one.clone()]) == "same"


def swapped(target: torch.Tensor) -> torch.Tensor:
    order = torch.arange(len(target))
    order[3], order[4] = 4, 3
    return target[order]


REAL = {
    "shuffled": lambda target: target[torch.randperm(ROWS, generator=torch.Generator().manual_seed(5))],
    "turned round": lambda target: target.flip(0),
    "of the next sample": lambda target: target.roll(1, 0),
    "two rows changed places": swapped,
    "one row of another sample": lambda target: torch.cat([target[1:2], target[1:]]),
    "one value lost": lambda target: target.masked_fill(target == target.reshape(-1)[:CLASSES].amax(), 0.0),
    "of another size": lambda target: target * 1.0001,
    "noise of a small variance": lambda target: target * (1 + 1e-3 * torch.randn(target.shape, generator=torch.Generator().manual_seed(5))),
    "rounded to bfloat16": lambda target: target.bfloat16().float(),
    "rounded to float16": lambda target: (target / target.abs().max()).half().float() * target.abs().max(),
    "another number type": lambda target: target.bfloat16(),
    "another shape": lambda target: target[:-1],
    "not finite": lambda target: target / 0,
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("change", REAL)
def test_targets_that_really_differ_are_others(form, change):
    one, other = (FORMS[form](TEACHER(X, halves)) for halves in (False, True))
    assert relation([one], [REAL[change](other)]) == "other"
    assert relation([LABELS, one], [LABELS, REAL[change](other)]) == "other"
    if change not in {"another number type", "another shape"}:
        assert relation([one], [REAL[change](one)]) == "other"


@pytest.mark.parametrize("form", FORMS)
def test_another_teacher_is_no_rounding(form):
    assert relation([FORMS[form](TEACHER(X))], [FORMS[form](Teacher(3)(X))]) == "other"
    slower = Teacher(1)
    slower.second = slower.second + 1e-3 * Teacher(3).second
    assert relation([FORMS[form](TEACHER(X))], [FORMS[form](slower(X))]) == "other"


def smooth(labels: torch.Tensor, by: float) -> torch.Tensor:
    return torch.nn.functional.one_hot(labels, CLASSES) * (1 - by) + by / CLASSES


@pytest.mark.parametrize(
    "other",
    [
        smooth(LABELS, 0.11),
        smooth(LABELS, 0.1001),
        smooth(LABELS, 0.1) + 1e-4,
        smooth(torch.cat([LABELS[:1] + 1, LABELS[1:]]), 0.1),
        smooth(LABELS.flip(0), 0.1),
    ],
    ids=["more smoothing", "hardly more", "an offset", "one label", "labels of other samples"],
)
def test_labels_as_numbers_are_told_apart(other):
    assert relation([smooth(LABELS, 0.1)], [other]) == "other"


def test_a_few_labels_among_very_many_are_seen():
    labels = torch.randint(0, 2, (100_000,), generator=torch.Generator().manual_seed(6)).float()
    few = labels.clone()
    few[[70, 71]] = 1 - few[[70, 71]]
    assert relation([labels], [few]) == "other"
    one = 0.1 * labels + 3.0
    assert relation([one], [torch.nextafter(one, torch.tensor(9.0))]) == "rounding"


def test_small_targets_are_seen_beside_large_ones():
    large = torch.full((ROWS,), 1e5)
    small = torch.rand(ROWS, generator=torch.Generator().manual_seed(6))
    both, moved = torch.stack([large, small], 1), torch.stack([large, small.flip(0)], 1)
    assert relation([both], [moved]) == "other"
    assert relation([large, small], [large, small.flip(0)]) == "other"


def test_the_targets_of_two_calls_may_not_change_places():
    one, other = TEACHER(X), TEACHER(X + 1)
    near = [TEACHER(X, True), TEACHER(X + 1, True)]
    assert relation([one, other], near) == "rounding"
    assert relation([one, other], near[::-1]) == "other"
    many, apart = [TEACHER(X + at) for at in range(40)], [TEACHER(X + at, True) for at in range(40)]
    apart[2], apart[34] = apart[34], apart[2]  # as far from each other as there are sums
    assert relation(many, apart) == "other"


def test_two_values_that_change_places_do_not_cancel_out_in_each_update():
    """At a distance of the number of sums they meet in one sum; the signs are others in each update."""
    one = torch.linspace(1.0, 2.0, ROWS)
    other = one.clone()
    other[0], other[32] = one[32], one[0]
    near = one * (1 + 1e-7)
    other *= 1 + 1e-7
    both = [(update(1, **taken(one, made=at)), update(1, **taken(other, made=at)), update(1, **taken(near, made=at))) for at in range(20)]
    found = [aims.relation(old, new) for old, new, _ in both]
    assert found.count("other") >= 4 and "other" in found[:6]
    assert {aims.relation(old, new) for old, _, new in both} <= {"rounding", "same"}


def test_whole_numbers_and_truth_values_must_be_equal():
    soft, near = TEACHER(X), TEACHER(X, True)
    changed = LABELS.clone()
    changed[5] += 1
    assert relation([LABELS], [changed]) == "other"
    assert relation([LABELS, soft], [changed, near]) == "other"
    assert relation([LABELS > 4, soft], [changed > 5, near]) == "other"
    assert taken(LABELS)["target_sums"] is None


def test_what_could_not_be_looked_at_is_no_rounding(monkeypatch):
    soft, near = update(1, **taken(TEACHER(X))), update(1, **taken(TEACHER(X, True)))
    assert aims.relation(soft, near) == "rounding"
    assert aims.relation(replace(soft, target_sums=None), near) == aims.relation(soft, replace(near, target_sums=None)) == "other"
    forwards = part("record.forwards").Forwards()
    forwards.aim(TEACHER(X))
    monkeypatch.setattr(part("record.aims"), "look", lambda *given: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        forwards.aim(TEACHER(X))
    assert forwards.taken()["target_sums"] is None


def test_looking_draws_from_no_stream_and_changes_nothing():
    target = TEACHER(X)
    before, states = target.clone(), (torch.get_rng_state(), random.getstate())
    taken(target, LABELS)
    assert torch.equal(before, target)
    assert torch.equal(states[0], torch.get_rng_state()) and states[1] == random.getstate()


def distilled(halves: bool = False, change=None, losses: float = 0.0, first: int = 1) -> Record:
    """The usual program with a teacher's answers for targets, and other ones from update `first` on."""
    made = []
    for n in range(1, 31):
        target = TEACHER(X + n, halves and n >= first)
        target = target if change is None or n < first else change(target)
        made.append(update(n, losses=(1.0 / n + (losses if n >= first else 0.0),), **taken(target, LABELS, made=n - 1)))
    return record(stream(made))


def test_rounded_targets_are_numerics_and_never_the_same():
    for losses in (0.0, 1e-7):
        found = compare(distilled(), distilled(halves=True, losses=losses))
        assert (found.verdict, found.changed) == ("close", ("numerics",)), found.reasons
        assert check_of(found, "targets").ok and check_of(found, "target values").ok is False
        assert "update 1: targets agree but for rounding" in check_of(found, "target values").evidence
    assert compare(distilled(), distilled()).verdict == "same"
    assert "loss" in compare(distilled(), distilled(halves=True, losses=0.01)).changed


@pytest.mark.parametrize("change", REAL)
def test_other_targets_are_refused_by_name(change):
    found = compare(distilled(), distilled(halves=True, change=REAL[change]))
    assert found.verdict == "changed" and "targets" in found.changed
    assert "update 1: the same inputs meet other targets" in check_of(found, "targets").evidence
    late = compare(distilled(), distilled(change=REAL[change], first=23))
    assert "targets" in late.changed and "update 23" in check_of(late, "targets").evidence


def test_losses_that_part_late_are_held_against_their_limit_beside_rounded_targets():
    found = compare(distilled(), distilled(halves=True, losses=0.0009, first=12))
    assert "loss" in found.changed and check_of(found, "first difference").ok is False


def test_targets_that_follow_the_trained_weights_may_drift_as_those_do():
    drifting = distilled(change=lambda target: target * 1.001, losses=1e-6)
    nudged = distilled(halves=True, losses=1e-7)
    found = compare(distilled(), drifting, rerun=distilled(), nudged=nudged)
    assert check_of(found, "targets").ok is None
    assert "targets" in compare(distilled(), drifting, rerun=distilled(), nudged=distilled()).changed
    for name in ("turned round", "one row of another sample", "one value lost", "another number type", "another shape"):
        other = distilled(change=REAL[name], losses=1e-6)
        assert "targets" in compare(distilled(), other, rerun=distilled(), nudged=nudged).changed, name
    typed = distilled(change=REAL["another number type"]).streams[0].updates
    coarse = record(stream([replace(each, autocast=("bfloat16",)) for each in typed]))
    assert check_of(compare(distilled(), coarse, rerun=distilled(), nudged=nudged), "targets").ok is None  # the owner agrees to it or not
    rounding = compare(distilled(), distilled(halves=True), rerun=distilled(), nudged=nudged)
    assert rounding.changed == ("numerics",), "equal losses do not make it the same"
