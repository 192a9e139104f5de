"""Input that is not what it looks like at first: several loaders, samplers, pools of threads, busy machines."""

from __future__ import annotations

from dataclasses import replace

import machine_scenarios as m
import pytest
import scenarios as s

from trainflash.diagnosis import diagnose
from trainflash.schema import Finding, LineCost, Location, Summary, Telemetry


def first(summary: Summary) -> Finding:
    return diagnose(summary).findings[0]


def kinds(summary: Summary) -> list[str]:
    return [finding.kind for finding in diagnose(summary).findings]


def slow_sampler(**changes) -> Summary:
    """A batch sampler computes in the training process, beside one worker that has little to do."""
    lines = (
        LineCost("main", "Data", Location("train.py", 21, "main"), 0.57),
        LineCost("main", "Data", Location("data.py", 16, "Balanced.__iter__"), 0.34),
        LineCost("main", "Other", Location("train.py", 21, "main"), 0.02),
        LineCost("worker", "Data", s.GETITEM, 0.5, "getitem"),
    )
    plain = {"getitem_ms": s.spread(0.13), "collate_ms": s.spread(0.25), "num_workers": 1, "persistent_workers": True}
    return replace(s.run(Data=0.92), lines=lines, loaders=(s.loader(**plain | changes),), processes=2)


def clocked(summary: Summary, *, process: float, thread: float, waited: float = 0.0, torch_threads: int = 1) -> Summary:
    """Seconds in a second: CPU time of the process and its children, of the training thread, and its waiting for a core."""
    wall = summary.threads.wall_seconds
    changes = {"cpu_seconds": process * wall, "thread_cpu_share": thread, "runqueue_share": waited, "torch_threads": torch_threads}
    return replace(summary, threads=replace(summary.threads, **changes))


def starved(summary: Summary, *, fetches: float, waited: float) -> Summary:
    """The fetches, and the training thread in all, waited such shares of their time for a core."""
    loaders = (replace(summary.loaders[0], runqueue_share=fetches),)
    return replace(summary, loaders=loaders, threads=replace(summary.threads, runqueue_share=waited))


def test_of_two_training_loaders_the_one_that_is_waited_for_is_judged():
    slow = s.loader(id=0, fetch_cpu_share=0.014, getitem_ms=s.spread(46.6), wait_s=3.6)
    fast = s.loader(id=1, fetch_cpu_share=1.0, getitem_ms=s.spread(0.1), wait_s=0.01)
    for loaders in ((slow, fast), (fast, slow)):
        assert first(replace(s.slow_getitem(0.9), loaders=loaders)).kind == "input_io"


def test_workers_that_are_never_waited_for_are_not_blamed_for_a_slow_sampler():
    found = first(slow_sampler())
    assert (found.kind, found.location.function, found.knobs) == ("input_cpu", "Balanced.__iter__", ())
    assert "chooses" in found.summary
    assert "collate" not in [finding.kind for finding in diagnose(slow_sampler()).findings]


def test_workers_that_are_waited_for_are_blamed_whatever_runs_beside():
    assert first(slow_sampler(getitem_ms=s.spread(2.5), collate_ms=s.spread(4.7))).kind == "collate"


def test_a_sampler_of_a_loader_without_workers_is_named_where_it_takes_most_of_the_time():
    line = LineCost("main", "Data", Location("data.py", 60, "Buckets.__iter__.<locals>.<lambda>"), 0.5)
    getitem = LineCost("main", "Data", s.GETITEM, 0.1, "getitem")
    assert first(replace(s.run(Data=0.6), lines=(line, getitem))).location == line.location
    swapped = (replace(line, share=0.1), replace(getitem, share=0.5))
    assert first(replace(s.run(Data=0.6), lines=swapped)).location == s.GETITEM


def test_a_generator_around_a_loader_is_named_where_it_takes_more_than_the_samples():
    around = [LineCost("main", "Data", Location("data.py", 70 + at, "augmented"), 0.2) for at in range(2)]
    getitem = LineCost("main", "Data", Location("data.py", 68, "augmented"), 0.1, "getitem")
    assert first(replace(s.run(Data=0.6), lines=(*around, getitem))).location.line in (70, 71)
    trained = LineCost("main", "Bwd", Location("data.py", 80, "augmented"), 0.3)
    assert first(replace(s.run(Data=0.6), lines=(*around, getitem, trained))).location == getitem.location


def test_collate_is_never_said_with_a_line_that_makes_samples():
    getitem = LineCost("main", "Data", s.GETITEM, 0.4, "getitem")
    found = first(replace(s.slow_collate(), lines=(getitem,)))
    assert (found.kind, found.location) == ("collate", s.LOADER)
    joined = LineCost("main", "Data", Location("data.py", 40, "join"), 0.1, "collate")
    assert first(replace(s.slow_collate(), lines=(getitem, joined))).location == joined.location


def test_a_fetch_that_threads_compute_for_is_no_disk():
    waits = s.slow_disk(0.9, cpu=0.02)
    assert first(waits).kind == "input_io"
    assert first(clocked(waits, process=0.1, thread=0.1)).kind == "input_io"
    assert first(clocked(waits, process=1.6, thread=0.1)).kind == "input_cpu"


def test_processes_that_compute_for_a_batch_get_a_core_as_seldom_as_the_program():
    batches = s.hand_made_batches(0.97)
    assert first(clocked(batches, process=0.28, thread=0.03, waited=0.18)).kind == "input_cpu"
    assert first(clocked(batches, process=0.04, thread=0.03, waited=0.18)).kind == "input_io"


def test_a_second_compute_thread_does_not_hide_that_data_sleeps():
    batches = s.hand_made_batches(0.62)
    assert first(clocked(batches, process=0.81, thread=0.374, waited=0.0, torch_threads=2)).kind == "input_io"
    assert first(clocked(batches, process=1.38, thread=1.0, waited=0.0, torch_threads=2)).kind == "input_cpu"


def test_a_loader_that_had_no_core_is_not_said_to_read():
    found = first(starved(s.slow_disk(cpu=0.038), fetches=0.979, waited=0.68))
    assert found.kind == "input_cpu"
    assert "not known" in found.summary
    assert first(starved(s.slow_disk(cpu=0.038), fetches=0.5, waited=0.5)).kind == "input_io"


def test_late_batches_of_fetches_without_a_core_are_the_machines():
    late = starved(s.late_batches(workers=0), fetches=0.95, waited=0.3)
    assert "input_tail" not in kinds(late)
    assert "input_tail" in kinds(starved(s.late_batches(workers=0), fetches=0.2, waited=0.3))


def test_input_is_judged_by_what_it_would_take_if_all_had_a_core():
    late = starved(s.late_batches(workers=0), fetches=0.99, waited=0.9)
    late = replace(late, loaders=(replace(late.loaders[0], fetch_cpu_share=0.003),))
    assert not any(finding.kind.startswith("input") for finding in diagnose(late).findings)


def busy_machine(waited: float | None, load: float | None, own: float = 0.5) -> tuple[str, ...]:
    """The notes of a program that used half a core of two (`own` by its own count), on a machine of which `load` cores were busy."""
    plain = s.healthy()
    telemetry = None if load is None else Telemetry(0.5, m.host(cpu_used=0.5, load=load))
    threads = replace(plain.threads, runqueue_share=waited, cpu_seconds=own * plain.threads.wall_seconds)
    return diagnose(replace(plain, threads=threads, telemetry=telemetry)).notes


def test_that_the_program_had_no_core_is_said():
    assert any("no core for 92 %" in note for note in busy_machine(0.92, 2.0))
    assert any("no core for 92 %" in note for note in busy_machine(0.92, None))
    assert any("others kept" in note for note in busy_machine(0.3, 2.0))
    assert any("others kept" in note for note in busy_machine(None, 2.0))


def test_busy_cores_that_the_program_did_not_miss_are_no_word_worth():
    for waited, load in ((0.02, 2.0), (0.92, 0.6), (None, 0.6), (None, None)):
        assert not any("core" in note or "busy" in note for note in busy_machine(waited, load))
    assert not any("core" in note for note in busy_machine(0.92, None, own=1.9))  # its own threads wait for each other


def test_without_a_core_stalls_are_not_called_code_between_the_phases():
    callback = s.busy_callback(0.6)
    line = callback.lines[0]
    both = replace(callback, lines=(line, replace(line, phase="Bwd", share=0.1)))
    busy = replace(callback.threads, runqueue_share=0.6)
    assert kinds(replace(callback, threads=busy))[0] == kinds(both)[0] == "host_code"
    found = diagnose(replace(both, threads=busy))
    assert "no core" in found.abstained
    assert not found.findings


def asked_anew(passes: int = s.STEPS, **changes) -> Summary:
    """`x, y = next(iter(loader))` in each step: the order of all samples is drawn anew, and let go of again."""
    line = Location("train.py", 44, "main")
    begun = s.loader(epochs=passes, start_ms=s.spread(1.0, passes), first_batch_ms=s.spread(5.0, passes), **changes)
    begun = replace(begun, getitem_ms=s.spread(0.6), collate_ms=s.spread(0.2))
    lines = (LineCost("main", "Data", line, 0.6), LineCost("main", "Other", line, 0.2))
    return replace(s.run(Data=0.6, Other=0.2), loaders=(begun,), lines=lines)


def test_a_loader_that_is_iterated_anew_in_each_step_is_one_cause_and_wants_no_workers():
    found = diagnose(asked_anew()).findings
    assert [finding.kind for finding in found] == ["worker_startup", "input_cpu"]
    assert found[0].share == pytest.approx(0.72) and str(found[0].location).startswith("train.py:44")
    assert (found[0].knobs, found[1].knobs) == ((), ())
    assert diagnose(asked_anew(num_workers=2)).findings[0].knobs == ("persistent_workers",)


@pytest.mark.parametrize("usual", [asked_anew(passes=5), asked_anew(batch_size=2560), asked_anew(passes=150)])
def test_passes_of_many_steps_or_of_one_batch_are_no_beginning_anew(usual):
    assert "worker_startup" not in kinds(usual) and "dataloader_workers" in diagnose(usual).findings[0].knobs


def test_batches_made_inside_the_step_are_named_there_and_want_no_workers():
    place = Location("train.py", 52, "step")
    lines = (
        LineCost("main", "Data", place, 0.4, "in_step"),
        LineCost("main", "Data", Location("data.py", 3, "__getitem__"), 0.1, "getitem"),
    )
    found = diagnose(replace(s.run(Data=0.5), loaders=(s.loader(),), lines=lines)).findings[0]
    assert (found.kind, found.location) == ("input_cpu", place)
    assert "dataloader_workers" not in found.knobs
    fetched = replace(lines[0], share=0.1), replace(lines[1], share=0.4)
    assert "dataloader_workers" in diagnose(replace(s.run(Data=0.5), loaders=(s.loader(),), lines=fetched)).findings[0].knobs


def test_what_repeats_for_training_and_for_evaluations_is_one_finding():
    for_training, for_evaluations = s.repeated(0.3), s.repeated(0.1)
    found = diagnose(replace(s.slow_getitem(), repeated=(for_training, for_evaluations))).findings
    (work,) = [finding for finding in found if finding.kind == "repeated_work"]
    assert work.share == pytest.approx(0.4)


@pytest.mark.parametrize(("beside", "listed"), [(0.0, True), (0.5, False)])
def test_joining_is_measured_by_all_that_makes_a_batch(beside, listed):
    """A generator around the loader augments what it gives: joining is a large part of the fetch, and a small one of the batch."""
    plain = replace(s.run(Data=0.6), loaders=(s.loader(getitem_ms=s.spread(0.6), collate_ms=s.spread(0.4)),))
    generator = LineCost("main", "Data", Location("train.py", 12, "augmented"), beside)
    found = kinds(replace(plain, lines=(generator,) if beside else ()))
    assert found[0] == "input_cpu" and ("collate" in found) is listed
