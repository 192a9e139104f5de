"""What a diagnosis does not know: measured ceilings, ties, all costs together, abstention with advice, notes, and what may never happen."""

from __future__ import annotations

from dataclasses import replace

import compute_scenarios as c
import machine_scenarios as m
import pytest
import scenarios as s

from trainflash import knobs
from trainflash.diagnosis import DEFAULT, diagnose
from trainflash.schema import DeviceTime, Location, Summary, WhatIf


def kinds(summary: Summary) -> list[str]:
    return [finding.kind for finding in diagnose(summary).findings]


def replay(kind: str, speedup: float, location: Location | None = None) -> WhatIf:
    return WhatIf(kind, "batches", location, speedup, speedup - 0.1, speedup + 0.1, 6)


def test_a_measured_ceiling_takes_the_place_of_the_bound():
    finding = diagnose(replace(s.slow_getitem(), what_if=(replay("input_cpu", 2.1),))).findings[0]
    assert (finding.ceiling.speedup, finding.ceiling.how) == (2.1, "measured")
    assert any("2.00 to 2.20" in str(row.value) for row in finding.evidence)


def test_a_replay_of_another_kind_or_place_changes_nothing():
    bound = diagnose(s.slow_getitem()).findings[0]
    assert diagnose(replace(s.slow_getitem(), what_if=(replay("evaluation", 2.1),))).findings[0] == bound
    twice = replace(
        s.slow_getitem(),
        repeated=(s.repeated(0.3), s.repeated(0.2, location=Location("data.py", 50, "load"))),
        what_if=(replay("repeated_work", 1.4, Location("data.py", 50, "load")),),
    )
    measured = {finding.location.line: finding.ceiling.how for finding in diagnose(twice).findings if finding.kind == "repeated_work"}
    assert measured == {30: "bound", 50: "measured"}


def test_measured_ceilings_settle_a_tie_and_nothing_else():
    tie = s.run(Eval=0.3, Ckpt=0.28)
    both = (replay("evaluation", 1.2), replay("checkpoint", 1.35))
    found = diagnose(replace(tie, what_if=both)).findings
    assert ([finding.kind for finding in found], found[0].tied_with) == (["checkpoint", "evaluation"], ("evaluation",))
    assert kinds(replace(tie, what_if=both[1:])) == ["evaluation", "checkpoint"]
    assert kinds(replace(s.run(Eval=0.4, Ckpt=0.2), what_if=both)) == ["evaluation", "checkpoint"]


def test_all_costs_of_different_phases_add_up():
    found = diagnose(s.run(Data=0.2, Ckpt=0.3, Log=0.1))
    assert (found.together.how, found.together.speedup) == ("bound", pytest.approx(2.5, abs=0.01))


def test_costs_of_the_same_phases_are_not_counted_twice():
    both = replace(c.handmade_attention(0.9), padding_share=0.8)
    work = sum(both.phases[name].share for name in ("Fwd", "Bwd"))
    shares = {finding.kind: finding.share for finding in diagnose(both).findings}
    assert sum(shares.values()) > work
    left = 1 - work + work * (1 - shares["padding"] / work) * (1 - shares["attention_kernel"] / work)
    assert diagnose(both).together.speedup == pytest.approx(1 / left, abs=0.01)


def test_a_part_of_another_cost_adds_nothing():
    alone = diagnose(s.slow_getitem()).together
    assert diagnose(replace(s.slow_getitem(), repeated=(s.repeated(0.5),))).together == alone


def test_estimates_from_forward_and_backward_stand_beside_what_inflates_them():
    found = replace(s.anomaly(0.0), numerics=c.numerics(parameter_dtype="float64"), operators=c.operators())
    assert kinds(found)[:2] == ["debug_api", "precision"]
    assert diagnose(found).findings[0].tied_with == ()


def test_a_healthy_program_has_nothing_to_gain_together():
    assert diagnose(s.healthy()).together is None


def test_too_few_steps_say_the_option_that_helps():
    stopped = diagnose(replace(s.run(steps=5), stopped=True))
    assert "trainflash diagnose --steps" in stopped.advice[0]
    assert stopped.together is None
    ended = diagnose(s.run(steps=5))
    assert "more steps or epochs" in ended.advice[0]


def test_time_that_nothing_explains_asks_for_marks_by_hand():
    found = diagnose(s.busy_callback(0.5, found=0.1))
    marks = found.advice[-1]
    assert "try: from trainflash_probe import phase\nexcept ImportError: from contextlib import nullcontext as phase" in marks
    assert 'with phase("Data")' in marks


def test_without_line_samples_they_are_the_first_advice():
    assert "line samples" in diagnose(replace(s.busy_callback(0.5), sampled_s=None)).advice[0]


def test_a_loop_in_which_no_training_was_seen_is_said():
    found = s.run(Other=0.9)
    unknown = replace(found, phases={"Other": found.phases["Other"]})
    assert "no forward or backward" in diagnose(unknown).advice[0]


def test_a_named_cost_explains_other_without_line_samples():
    collecting = replace(m.collecting(0.5), sampled_s=None, lines=())
    named = replace(collecting, lines=m.collecting(0.5).lines)
    assert diagnose(named).abstained is None


def test_a_diagnosis_that_holds_needs_no_advice():
    assert diagnose(s.slow_getitem()).advice == ()


def half_frozen(part, **shares):
    """No optimizer takes this part of the gradients."""
    found = c.updates(graded=1000, unheld=int(1000 * part), first_unheld="body.0.weight")
    return replace(s.run(**shares), updates=found)


@pytest.mark.parametrize(
    ("summary", "said"),
    [
        (
            replace(s.healthy(), swallowed={"boundary": 3, "lines": 1}),
            "kept 4 errors of its own away from the program, most of them in boundary",
        ),
        (replace(s.healthy(), dropped_events=7), "7 events were lost"),
        (replace(s.healthy(), device_time=DeviceTime(400, 0.9, 1.0, 0.1, 12)), "12 device times were lost"),
        (replace(s.healthy(), ranks=2), "rank 0 of 2"),
        (replace(s.healthy(), ranks=2), "a late rank would not be seen"),
        (replace(s.healthy(), rank_stats=(m.rank(0), m.rank(0))), "not ranks of one job"),
        (replace(s.healthy(), memory=c.memory(0.95)), "memory is 95 % full"),
        (half_frozen(0.5), "gradients that no optimizer takes, 50 % of all elements, from `body.0.weight` on"),
    ],
)
def test_what_a_reader_has_to_know_is_noted(summary, said):
    assert any(said in note for note in diagnose(summary).notes)


@pytest.mark.parametrize("summary", [half_frozen(0.1), half_frozen(0.5, Bwd=0.01), half_frozen(0.0)])
def test_few_gradients_in_vain_are_no_note(summary):
    assert not any("gradients" in note for note in diagnose(summary).notes)


EVERYTHING = (
    s.slow_getitem(), s.slow_disk(), s.late_batches(), s.slow_collate(), s.restarted_workers(), s.evaluating(grad=True), s.saving(),
    s.printing(), s.anomaly(), s.many_threads(), s.busy_callback(), s.padded(), s.short_run(), c.heavy_update(zero_to_none=False),
    c.tiny_micro_batches(), c.handmade_attention(), c.checkpointed_blocks(), c.compiling(by_shape=True), c.tiny_operators(),
    m.reading_tensors(), m.collecting(), m.late_rank(), m.talking_ranks(), m.hot_gpu(), m.emptying_the_cache(), m.launching(),
    m.full_float32(), m.half_precision_cnn(), m.searching_algorithms(), m.stopped_by_quota(),
)  # fmt: skip


def test_every_knob_that_a_finding_names_exists():
    catalogue = {knob.name for knob in knobs.catalogue()}
    named = {knob for summary in EVERYTHING for finding in diagnose(summary).findings for knob in finding.knobs}
    assert named and named <= catalogue


def test_shares_of_findings_never_exceed_their_phases():
    for summary in EVERYTHING:
        for finding in diagnose(summary).findings:
            assert 0 <= finding.share <= 1
            if finding.kind != "startup":
                assert finding.ceiling is None or finding.ceiling.speedup >= 1


@pytest.mark.parametrize(
    "healthy",
    [
        s.healthy(),
        s.stalled(),
        m.on_gpu(s.healthy()),
        replace(s.healthy(), operators=c.operators(), numerics=c.numerics(), updates=c.updates(), memory=c.memory()),
        replace(c.tiny_operators(per_step=150), updates=c.updates(), numerics=c.numerics()),
        replace(m.talking_ranks(0.04), operators=c.operators()),
        replace(s.run(Opt=0.25), updates=c.updates(), operators=c.operators()),
    ],
    ids=["plain", "busy machine", "gpu", "all measured", "small network", "two ranks", "a quarter in Adam"],
)
def test_healthy_programs_are_never_accused(healthy):
    assert kinds(healthy)[0] == "compute"
    assert diagnose(healthy).findings[0].ceiling is None


def test_thresholds_can_be_set():
    assert diagnose(s.slow_getitem(0.2), replace(DEFAULT, dominant=0.25)).findings[0].kind == "compute"
