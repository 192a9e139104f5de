"""What both sides save, on synthetic records: values beside the tensors, files that are left, what nobody saw, and what chance moves."""

from __future__ import annotations

import struct
from dataclasses import replace

import pytest
from training_records import check_of, checkpoint, later, record, rounded, stream

from trainflash.fidelity import compare
from trainflash.fidelity.judgement import hard_changes
from trainflash.fidelity.record import Record

PLACES = (10, 20, 30)


def state(n: int, history: str = "", **changes) -> dict:
    """A checkpoint with a list, an epoch and a setting."""
    values = {"history": [history or f"h{n}", n, float(n)], "optimizer.param_groups": ["g", 4, 1.0]}
    return {**checkpoint(n), "target": f"{n}.pt", "values": values, "counts": {"epoch": n // 10, "workers": 2}, **changes}


def saving(*lines: dict, **changes) -> Record:
    return later(checkpoints=lines or tuple(map(state, PLACES)), **changes)


def left(n: int, name: str = "", **changes) -> dict:
    return {"k": "stored", "n": n, "target": name or f"{n}.pt", "keys": "k", "digest": f"c{n}", "left": True, **changes}


def without(line: dict, *names: str) -> dict:
    return {name: value for name, value in line.items() if name not in names}


STALE = {
    "a list": tuple(state(n, history="h10") for n in PLACES),
    "an epoch": tuple(state(n, counts={"epoch": 1, "workers": 2}) for n in PLACES),
    "an array is lost": tuple(state(n, values=without(state(n)["values"], "history")) for n in PLACES),
}


@pytest.mark.parametrize("case", STALE)
def test_values_of_an_earlier_update_are_found(case):
    found = compare(saving(), saving(*STALE[case]), rerun=saving())
    assert (found.verdict, found.changed) == ("changed", ("checkpoint",))
    assert check_of(found, "checkpoint values").ok is False
    assert check_of(found, "checkpoint contents").ok


def test_settings_and_times_beside_the_tensors_are_no_change():
    other = tuple(state(n, counts={"epoch": n // 10, "workers": 8}, scalars=f"{n} at another time") for n in PLACES)
    assert compare(saving(), saving(*other)).verdict == "same"


def test_values_that_two_runs_of_the_baseline_do_not_share_are_left_out_by_name():
    timed = [saving(*(state(n, history=f"{run} {n}") for n in PLACES)) for run in ("a", "b", "c")]
    assert compare(timed[0], timed[1]).changed == ("checkpoint",)
    assert "checkpoint" not in hard_changes(timed[0], timed[1]), "not hopeless before the second run"
    assert compare(timed[0], timed[1], chance_known=False).verdict == "same"
    found = compare(timed[0], timed[1], rerun=timed[2])
    assert found.verdict == "same"
    assert "history" in check_of(found, "checkpoint values").evidence
    stale = [{**each, "counts": {"epoch": 1}} for each in timed[1].streams[0].checkpoints]
    assert compare(timed[0], saving(*stale), rerun=timed[2]).changed == ("checkpoint",), "another value beside it is judged"


def test_values_of_a_training_that_is_close_may_be_as_far_apart_as_its_tensors():
    def near(size: float) -> Record:
        lines = tuple(state(n, values={"history": [f"r{n}", n, n * size]}) for n in PLACES)
        return later(checkpoints=lines, weights=rounded(0, 1e-7).streams[0].weights)

    plain = saving(*(state(n, values={"history": [f"h{n}", n, float(n)]}) for n in PLACES))
    assert check_of(compare(plain, near(1.001), rerun=plain), "checkpoint values").ok
    assert check_of(compare(plain, near(1.5), rerun=plain), "checkpoint values").ok is False
    flat, turned = ({"average": ["h" + str(way[0]), 4, 2.0, way]} for way in ([2.0, 0.0], [0.0, 2.0]))
    sketched = [later(checkpoints=tuple(state(n, values=each) for n in PLACES)) for each in (flat, turned)]
    moved = replace(sketched[1].streams[0], weights=rounded(0, 1e-7).streams[0].weights)
    found = compare(sketched[0], record(moved), rerun=sketched[0])
    assert check_of(found, "checkpoint values").ok is False, "other numbers of the same size"


KEPT = (left(20), left(30))


def rotated(**changes) -> Record:
    """Of three checkpoints the last two are left."""
    return saving(stored=({"k": "stored", "n": 10, "target": "10.pt", "gone": True, "left": True}, *KEPT), **changes)


BROKEN_FILES = {
    "the newest is deleted": ((left(20), without(left(30), "digest", "keys") | {"gone": True}), "30.pt, saved after update 30, is gone at"),
    "all are torn": (tuple(without(line, "digest") | {"unreadable": "EOFError"} for line in KEPT), "cannot be read back (EOFError)"),
    "one is overwritten": ((without(left(20), "left"), left(30, "20.pt")), "20.pt, saved after update 20, is overwritten"),
    "other values": ((left(20), left(30, digest="other")), "30.pt, saved after update 30, holds other values than were handed over"),
}


@pytest.mark.parametrize("case", BROKEN_FILES)
def test_a_file_of_the_baseline_that_is_gone_excuses_no_other(case):
    stored, evidence = BROKEN_FILES[case]
    found = compare(rotated(), saving(stored=stored))
    assert found.changed == ("checkpoint",)
    assert evidence in check_of(found, "checkpoint files").evidence


def test_honest_files():
    assert compare(rotated(), saving(stored=(left(10), *KEPT))).verdict == "same", "more is left"
    assert compare(rotated(), saving(stored=(left(20, "a.pt"), left(30, "b.pt")))).verdict == "same", "other names"
    assert compare(rotated(), saving()).verdict == "same", "written where nobody follows it"
    assert compare(saving(stored=KEPT), rotated()).verdict == "same", "an older one is gone"
    odd = tuple(without(line, "digest") | {"unreadable": "BadZipFile"} for line in KEPT)
    assert compare(saving(stored=odd), saving(stored=odd)).verdict == "same", "packed by the program itself"


def test_what_was_saved_and_not_seen_is_said():
    blind = tuple(without(state(n), "keys", "digest", "names", "sketch", "norm") for n in PLACES)
    found = compare(saving(), saving(*blind))
    assert "3 checkpoints were written whose contents were not seen" in found.notes
    big = (left(30, unread="9000 MiB"),)
    assert "30.pt was not read back: 9000 MiB" in compare(saving(), saving(stored=big)).notes


def test_of_two_files_that_are_saved_together_none_may_be_left_out():
    both = [line for n in PLACES for line in (state(n), state(n, keys="opt", names=["step:float32[]"], digest=f"o{n}", target="opt.pt"))]
    swapped = [both[at + 1 - 2 * (at % 2)] for at in range(6)]
    assert compare(saving(*both), saving(*swapped)).verdict == "same"
    found = compare(saving(*both), saving())
    assert "checkpoint" in found.changed
    assert "opt.pt is not saved any more" in check_of(found, "checkpoint contents").evidence


def test_a_record_without_values_is_no_difference():
    plain = record(stream())
    assert check_of(compare(plain, plain), "checkpoint values").ok is None


def test_a_file_that_was_saved_before_the_training_began_is_no_torn_checkpoint():
    kept = {"n": 10, "target": "a.pt", "digest": "c10", "left": True}
    data = {"n": 0, "target": "data.pt", "digest": "samples", "left": True}
    assert compare(later(stored=(kept,)), later(stored=(kept, data))).verdict == "same"
    found = compare(later(stored=(kept,)), later(stored=(kept, {**data, "n": 10})))
    assert check_of(found, "checkpoint files").ok is False


def test_what_a_thread_writes_late_counts_where_it_was_taken_beside_files_of_another_kind():
    def both(late: int, taken: int = 0, **changes) -> Record:
        """A file of the weights alone, and one of everything, written `late` updates later and as it was `taken` updates before."""
        lines = []
        for n in PLACES:
            lines.append(state(n, keys="best", names=["best:float32[]"], digest=f"b{n}", target="best.pt"))
            lines.append(state(n - taken, scalars=None) | {"n": min(n + late, PLACES[-1]), "digest": f"c{n - taken}"} | changes)
        return later(checkpoints=tuple(sorted(lines, key=lambda line: line["n"])))

    assert compare(both(0), both(1, thread="other")).verdict == "same"
    assert compare(both(0), both(1)).changed == ("cadence",), "the training itself writes later"
    assert "checkpoint" in compare(both(0), both(1, taken=10, thread="other")).changed, "what it writes is stale"


def average(n: int, far: float = 0.0, **changes) -> dict:
    """A checkpoint with an average of the weights, so far off, relatively."""
    scaled = struct.pack("<2d", 3.0, 4.0 + far).hex()
    return checkpoint(n, **{"digest": f"c{n}{far}", "scaled": scaled, "exact": "e", "current": 4, "live": 4, **changes})


def averages(far: float, **changes) -> Record:
    return later(checkpoints=tuple(average(n, far, **changes) for n in PLACES))


def test_an_average_that_is_rounded_otherwise_is_close_where_the_training_is_bitwise_the_same():
    found = compare(averages(0.0), averages(3e-6), rerun=averages(0.0), nudged=averages(1e-6))
    assert (found.verdict, found.changed) == ("close", ("numerics",))
    assert check_of(found, "checkpoint contents").ok


@pytest.mark.parametrize(("far", "other"), [(1e-3, {}), (3e-6, {"exact": "f"}), (3e-6, {"current": 3})], ids=["far", "count", "weights"])
def test_what_is_no_rounding_of_saved_numbers_is_refused(far, other):
    found = compare(averages(0.0), averages(far, **other), rerun=averages(0.0), nudged=averages(1e-6))
    assert "checkpoint" in found.changed


def drawn(state: str, **changes) -> Record:
    """Checkpoints with a random generator's state beside the tensors."""
    same = {"current": 4, "live": 4}
    return later(checkpoints=tuple(checkpoint(n, **{**same, "digest": f"{n}{state}", "undrawn": f"u{n}", **changes}) for n in PLACES))


def test_a_generator_from_which_less_is_drawn_is_saved_with_another_state_by_consent_alone():
    def found(candidate, *agreed):
        return check_of(compare(drawn("a"), candidate, rerun=drawn("a"), agreed=frozenset(agreed)), "checkpoint contents").ok

    assert found(drawn("b"), "cadence")
    assert found(drawn("b"), "order")
    assert found(drawn("b")) is False
    assert found(drawn("b"), "numerics") is False
    assert found(drawn("b", undrawn="other tensors"), "cadence") is False
    assert found(drawn("b", current=3), "cadence") is False
