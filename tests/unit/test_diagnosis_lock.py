"""A thread beside training that holds Python's lock: named by what it does, and silent wherever standing still may have other reasons."""

from __future__ import annotations

from dataclasses import replace

import machine_scenarios as m
import pytest
import scenarios as s

from trainflash.diagnosis import diagnose
from trainflash.schema import Location, Telemetry, ThreadBeside, Written

TRAIL = Location("trail.py", 38, "Trail._write")


def beside(summary, *, cpu=0.5, standing=0.4, helpers=0.0, makes=False, location=TRAIL):
    thread = ThreadBeside("trail", cpu, location, makes)
    return replace(summary, threads=replace(summary.threads, beside=(thread,), standing_share=standing, helpers_cpu_share=helpers))


def lock(summary):
    return next((found for found in diagnose(summary).findings if "lock" in found.summary), None)


@pytest.mark.parametrize(("makes", "written", "kind"), [(True, (), "input_cpu"), (False, (), "host_code"), (False, (TRAIL,), "logging")])
def test_it_is_named_by_what_the_thread_does(makes, written, kind):
    places = tuple(Written(location=place, often=True) for place in written)
    found = diagnose(replace(beside(s.run(Data=0.02), makes=makes), written=places)).findings[0]
    assert (found.kind, found.location, found.phase) == (kind, TRAIL, {"input_cpu": "Data", "logging": "Log"}.get(kind, "Other"))
    assert found.share == pytest.approx(0.4 * 0.98)


def test_it_costs_no_more_than_the_threads_used():
    assert lock(beside(s.run(Data=0.0), cpu=0.15, standing=0.9)).share == pytest.approx(0.15)


@pytest.mark.parametrize("changes", [{"cpu": 0.09}, {"helpers": 0.2}, {"location": None}, {"standing": 0.04}])
def test_it_is_silent_where_the_thread_is_idle_or_unknown_or_others_are_waited_for(changes):
    assert lock(beside(s.run(Data=0.0), **changes)) is None


def test_on_a_device_training_waits_for_that_too():
    assert lock(replace(beside(s.run(Data=0.0)), device="cuda:NVIDIA H100")) is None


def test_what_a_quota_stops_is_not_the_locks():
    summary = beside(s.run(Data=0.0), standing=0.4)
    assert lock(replace(summary, telemetry=Telemetry(0.5, m.host(throttled_share=0.38)))) is None


def fetched(summary, cpu, **changes):
    return beside(replace(summary, loaders=(s.loader(fetch_cpu_share=cpu, runqueue_share=0.0),)), **changes)


def test_batches_that_the_training_thread_makes_are_held_up_as_well():
    findings = diagnose(fetched(s.run(Data=0.4), 0.6)).findings
    shares = {("lock" in found.summary): (found.kind, found.share) for found in findings[:2]}
    assert shares[False] == ("input_cpu", pytest.approx(0.4 * 0.6))
    assert shares[True] == ("host_code", pytest.approx(0.6 * 0.4 + 0.4 * 0.4))


def test_fetches_that_stand_still_far_more_often_wait_for_something_else():
    summary = fetched(s.run(Data=0.4), 0.05, standing=0.2)
    assert diagnose(summary).findings[0].kind == "input_io" and diagnose(summary).findings[0].share == pytest.approx(0.4)
    assert lock(summary).share == pytest.approx(0.6 * 0.2)
