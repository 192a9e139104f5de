"""What programs do in their own way: writing, starting processes, hooks and modes, equal operators, parts of batches.

Each rule: the trouble, just below its threshold, and without its signal.
"""

from __future__ import annotations

from dataclasses import replace

import compute_scenarios as c
import machine_scenarios as m
import pytest
import scenarios as s
import traces as t

from trainflash.diagnosis import DEFAULT, diagnose
from trainflash.schema import Finding, LineCost, Location, Operators, Parts, Setting, Started, Summary, Written
from trainflash.summary import steady_part
from trainflash.summary.repeats import repeated_work

SAVE = Location("keep.py", 20, "Keeper.save")
LOOP = Location("train.py", 60, "main")
POOL = Location("data.py", 9, "draw")
SENDS = Location("rollout.py", 20, "Crew.send")
SCORES = Location("train.py", 20, "scores")
MODE = Location("watch.py", 8, "Watch.__torch_dispatch__")
FEED = Location("train.py", 31, "batch_loss")


def findings(summary: Summary) -> dict[str, Finding]:
    return {finding.kind: finding for finding in diagnose(summary).findings}


def first(summary: Summary) -> Finding:
    return diagnose(summary).findings[0]


def between(*lines: tuple[Location, float], **phases: float) -> Summary:
    """A run whose Other lies in these lines."""
    costs = tuple(LineCost("main", "Other", where, share) for where, share in lines)
    return replace(s.run(Other=sum(share for _, share in lines), **phases), lines=costs)


# --- code that writes


@pytest.mark.parametrize(("state", "kind"), [(False, "logging"), (True, "checkpoint")])
def test_code_that_writes_is_named_by_what_it_writes(state, kind):
    written = (Written(replace(SAVE, line=12), often=True, state=state),)
    found = first(replace(between((SAVE, 0.4)), written=written))
    assert (found.kind, found.location, found.knobs) == (kind, SAVE, (f"{kind}_cadence",))
    assert first(between((SAVE, 0.4))).kind == "host_code"


def test_a_message_that_nobody_is_shown_is_logging_on_its_own_line_alone():
    quiet = (Written(SAVE, often=True, unheard=True),)
    found = first(replace(between((SAVE, 0.4)), written=quiet))
    assert (found.kind, found.location, found.knobs) == ("logging", SAVE, ())
    elsewhere = first(replace(between((replace(SAVE, line=SAVE.line + 1), 0.4)), written=quiet))
    assert (elsewhere.kind, elsewhere.knobs) == ("host_code", ())
    assert first(between((SAVE, 0.4))).knobs == ()
    assert first(replace(between((SAVE, 0.4)), written=(replace(quiet[0], often=False),))).kind == "host_code"


def in_network(share: float, place: Location = SAVE) -> Summary:
    """A run that spends `share` in forward at that line."""
    return replace(s.run(Fwd=0.7, Bwd=0.25), lines=(LineCost("main", "Fwd", place, share), LineCost("main", "Fwd", LOOP, 0.7 - share)))


def test_a_message_that_a_network_puts_together_for_nobody_is_logging():
    quiet = (Written(SAVE, often=True, unheard=True),)
    found = first(replace(in_network(0.5), written=quiet))
    assert (found.kind, found.location, found.knobs) == ("logging", SAVE, ())
    assert found.share == pytest.approx(0.5)
    assert "logging" not in findings(replace(in_network(0.5, replace(SAVE, line=SAVE.line + 1)), written=quiet))
    assert "logging" not in findings(replace(in_network(DEFAULT.dominant - 0.01), written=quiet))
    assert "logging" not in findings(in_network(0.5))
    assert "logging" not in findings(replace(in_network(0.5), written=(replace(quiet[0], often=False),)))


def test_the_tiny_operators_of_such_a_message_are_no_launch_overhead():
    quiet = (Written(SAVE, often=True, unheard=True),)
    tiny = c.tiny_operators()
    lines = tuple(LineCost("main", name, SAVE, tiny.phases[name].share) for name in ("Fwd", "Bwd"))
    assert first(tiny).kind == "launch_overhead"
    assert [each.kind for each in diagnose(replace(tiny, lines=lines, written=quiet)).findings] == ["logging"]


def test_state_that_was_written_once_is_a_checkpoint_all_the_same():
    assert first(replace(between((SAVE, 0.4)), written=(Written(SAVE, often=False, state=True),))).kind == "checkpoint"


@pytest.mark.parametrize(("distance", "kind"), [(DEFAULT.writes_near, "logging"), (DEFAULT.writes_near + 1, "host_code")])
def test_in_the_function_that_runs_the_loop_only_lines_close_to_the_write_are_its_own(distance, kind):
    busy = between((LOOP, 0.4))
    busy = replace(busy, lines=(*busy.lines, LineCost("main", "Fwd", replace(LOOP, line=40), 0.1)))
    assert first(replace(busy, written=(Written(replace(LOOP, line=LOOP.line + distance), often=True),))).kind == kind


def test_writing_and_other_code_are_told_apart():
    metric = Location("metrics.py", 7, "confusion")
    summary = replace(between((SAVE, 0.3), (metric, 0.15)), written=(Written(SAVE, often=True),))
    found = findings(summary)
    assert found["logging"].share == pytest.approx(0.3) and found["host_code"].share == pytest.approx(0.15)
    assert found["host_code"].location == metric


def test_writing_below_the_threshold_of_code_between_the_phases_is_healthy():
    assert first(replace(between((SAVE, DEFAULT.dominant - 0.01)), written=(Written(SAVE, often=True),))).kind == "compute"


# --- processes and threads of the program's own


def pools(share: float = 0.4, count: int = 200, phase: str = "Data") -> Summary:
    run = s.run(**{phase: share + 0.06})
    started = Started(POOL, "process", count, share, ((POOL, share),))
    return replace(run, loaders=(), started=(started,), lines=(LineCost("main", phase, POOL, share + 0.06),))


@pytest.mark.parametrize("phase", ["Data", "Other"])
def test_pools_that_are_started_again_and_again_are_worker_startup(phase):
    found = first(pools(phase=phase))
    assert (found.kind, found.phase, found.location) == ("worker_startup", phase, POOL)
    assert "host_code" not in findings(pools(phase=phase))


def executors(wait: float = 0.3, start: float = 0.2) -> Summary:
    """An executor for each step: made in one line, started in another and ended in a third; its results are waited for beside."""
    made, submitted, ended = Location("rollout.py", 8, "Crew.hire"), replace(SENDS, line=21), Location("rollout.py", 30, "Crew.gather")
    lines = ((submitted, start / 2), (ended, start / 2))
    waits = LineCost("main", "Other", replace(SENDS, line=22, function="Crew.send.<locals>.<listcomp>"), wait)
    run = s.run(Other=start + wait)
    costs = tuple(LineCost("main", "Other", place, share) for place, share in lines)
    return replace(run, loaders=(), started=(Started(made, "process", 200, start, lines),), lines=(*costs, waits))


def test_an_executor_is_named_where_it_is_made_and_its_cold_results_stand_beside():
    found = first(executors())
    assert (found.kind, found.location.line, found.share) == ("worker_startup", 8, pytest.approx(0.2))
    beside = findings(executors())["host_code"]
    assert beside.share == pytest.approx(0.3) and beside.location.line == 22


def test_a_wait_that_is_much_longer_than_the_start_is_its_own_cost():
    assert first(executors(wait=0.55, start=0.13)).kind == "host_code"
    assert first(executors(wait=0.55, start=0.14)).kind == "worker_startup"


def test_a_wait_elsewhere_has_nothing_to_do_with_the_start():
    run = executors()
    elsewhere = replace(run.lines[-1], location=Location("metrics.py", 3, "score"))
    assert first(replace(run, lines=(*run.lines[:-1], elsewhere))).kind == "host_code"


def test_what_starting_takes_is_no_input_cost():
    assert findings(pools(0.3))["input_cpu"].share == pytest.approx(0.06)


def test_a_pool_that_is_started_once_or_twice_is_setting_up():
    assert "worker_startup" not in findings(pools(count=DEFAULT.started_times - 1))
    assert "worker_startup" in findings(pools(count=DEFAULT.started_times))


def test_cheap_starts_are_no_finding():
    assert "worker_startup" not in findings(pools(DEFAULT.listed - 0.01))


def test_a_loader_that_is_built_again_for_each_pass_starts_its_workers_again():
    once = s.restarted_workers(passes=1)
    loaders = tuple(replace(once.loaders[0], id=number, epochs=1) for number in range(5))
    rebuilt = replace(s.restarted_workers(), loaders=loaders)
    assert first(rebuilt).kind == "worker_startup"
    apart = tuple(replace(each, location=replace(s.LOADER, line=number)) for number, each in enumerate(loaders))
    assert "worker_startup" not in findings(replace(rebuilt, loaders=apart))


@pytest.mark.parametrize(("starts", "kind"), [(5, "worker_startup"), (1, "input_cpu"), (None, "input_cpu")])
def test_workers_that_persist_in_loaders_that_do_not(starts, kind):
    persistent = s.restarted_workers(persistent=True)
    summary = replace(persistent, loaders=(replace(persistent.loaders[0], starts=starts),))
    assert (first(summary).kind == "worker_startup") == (kind == "worker_startup")


# --- hooks and modes


def scored(share: float, in_library: float) -> Summary:
    lines = (LineCost("main", "Fwd", SCORES, share, "", in_library), LineCost("main", "Fwd", FEED, 0.3))
    return replace(s.run(), lines=lines)


def test_other_libraries_inside_the_network_are_host_code_for_as_long_as_they_work():
    found = first(scored(0.35, 0.3))
    assert (found.kind, found.phase, found.location) == ("host_code", "Fwd", SCORES)
    assert found.share == pytest.approx(0.3) and "other libraries than torch" in found.summary


def test_a_line_of_the_network_that_hardly_calls_them_is_healthy():
    assert first(scored(0.35, 0.0)).kind == "compute"
    assert first(scored(0.35, DEFAULT.dominant - 0.01)).kind == "compute"


def watched(per_step: float, body: float = 0.0) -> Summary:
    census = c.operators(per_step=per_step)
    lines = (LineCost("main", "Fwd", replace(MODE, line=10), 0.5), LineCost("main", "Fwd", replace(MODE, line=12), body))
    setting = Setting("python_mode", "Watch sees each call of torch", MODE)
    return replace(s.healthy(), settings=(setting,), operators=census, lines=lines)


def enough_calls(census: Operators) -> float:
    return DEFAULT.listed * census.step_ms * 1000 / DEFAULT.mode_call_us


def test_a_mode_costs_by_the_calls_that_it_sees():
    least = enough_calls(c.operators())
    assert first(watched(least + 1)).kind == "debug_api"
    assert first(watched(least - 1)).kind == "compute"


def test_a_counter_of_torch_s_costs_more_a_call():
    run = watched(enough_calls(c.operators()) * DEFAULT.mode_call_us / DEFAULT.looking_call_us + 1)
    counter = Setting("looking_mode", "_FlopCounterMode sees each call of torch", None)
    assert first(run).kind == "compute"
    assert first(replace(run, settings=(counter,))).kind == "debug_api"


def test_a_mode_costs_what_was_measured():
    run = watched(10)
    seen = first(replace(run, operators=replace(run.operators, mode_share=0.4)))
    assert (seen.kind, seen.share) == ("debug_api", pytest.approx(0.4))
    assert first(replace(run, operators=replace(run.operators, mode_share=0.01))).kind == "compute"


def test_a_mode_costs_by_what_it_does_itself():
    assert first(watched(10, body=0.2)).kind == "debug_api"
    assert first(watched(10, body=0.01)).kind == "compute"


# --- parts of a batch


def parts(calls: int = 32, rows: int = 1, overhead: float = 0.7, used: float | None = 0.1) -> Summary:
    census = c.operators(op_ms=(1 - overhead) * s.STEP_MS, small_share=0.0)
    memory = None if used is None else c.memory(used)
    return replace(s.run(), parts=Parts(FEED, calls, rows), operators=census, memory=memory, updates=c.updates())


def test_samples_that_are_fed_one_by_one_are_small_micro_batches():
    found = first(parts())
    assert (found.kind, found.location) == ("small_microbatch", FEED)
    assert found.share == pytest.approx(0.9 * (1 - 1 / 32) * 0.7, abs=0.03)


@pytest.mark.parametrize(
    "summary",
    [
        parts(overhead=DEFAULT.micro_overhead - 0.05),
        parts(rows=DEFAULT.micro_rows + 1),
        parts(used=DEFAULT.recompute_room + 0.01),
        parts(used=None),
        replace(parts(), operators=None),
        replace(parts(), parts=None),
    ],
)
def test_parts_that_cost_little_or_fill_memory_are_left_alone(summary):
    assert "small_microbatch" not in findings(summary)


# --- equal operators


def equal_operators(share: float = 0.3, repeats: int = 6) -> Summary:
    work = s.repeated(share, repeats=repeats, calls=8, during="operators", hashable=False, location=Location("net.py", 31, "Mesh.forward"))
    return replace(s.healthy(), repeated=(replace(work, qualname="Mesh.forward"),))


def test_equal_operators_in_the_forward_are_repeated_work_without_a_cache_for_the_function():
    found = first(equal_operators())
    assert (found.kind, found.phase, found.knobs, found.location.line) == ("repeated_work", "Fwd", (), 31)


@pytest.mark.parametrize("changes", [{"share": DEFAULT.listed - 0.01}, {"repeats": DEFAULT.repeated_times - 1}])
def test_few_or_cheap_equal_operators_are_healthy(changes):
    assert first(equal_operators(**changes)).kind == "compute"


def operators_of(*changes: dict):
    rank = t.rank([10.0] * 40, {"Fwd": 6.0, "Bwd": 3.0, "Opt": 1.0})
    calls = tuple(t.call(where="operators", window_ns=40_000_000, calls=4, repeats=3, **each) for each in changes)
    rank = replace(rank, repeated=calls)
    return repeated_work(t.trace(rank), rank, steady_part(rank), {"Fwd": 0.6, "Bwd": 0.3, "Opt": 0.1})


def test_equal_operators_of_one_function_are_one_finding_at_the_costliest_line():
    lines = [Location("net.py", line, "Mesh.forward") for line in (30, 31)]
    found = operators_of(
        {"location": lines[0], "qualname": "Mesh.forward", "inclusive_ns": 4_000_000},
        {"location": lines[1], "qualname": "Mesh.forward", "inclusive_ns": 8_000_000},
    )
    assert [(work.location.line, work.during) for work in found] == [(31, "operators")]
    assert found[0].share == pytest.approx(12 / 40 * 0.6)


def test_operators_inside_a_function_that_repeats_itself_are_told_once():
    where = Location("net.py", 30, "mask")
    rank = t.rank([10.0] * 40, {"Fwd": 6.0, "Bwd": 4.0})
    shared = {"location": where, "qualname": "mask", "window_ns": 40_000_000, "calls": 4, "repeats": 3, "inclusive_ns": 8_000_000}
    rank = replace(rank, repeated=(t.call(where="forward", **shared), t.call(where="operators", **shared)))
    found = repeated_work(t.trace(rank), rank, steady_part(rank), {"Fwd": 0.6, "Bwd": 0.4})
    assert [work.during for work in found] == ["forward"]


def test_a_function_traced_in_few_forwards_repeats_itself_as_often_as_its_costliest_line_of_torch():
    lines = [Location("net.py", line, "mask") for line in (30, 31)]
    rank = t.rank([10.0] * 40, {"Fwd": 6.0, "Bwd": 4.0})
    shared = {"qualname": "mask", "window_ns": 40_000_000}
    rank = replace(
        rank,
        repeated=(
            t.call(where="forward", location=lines[0], calls=3, repeats=2, inclusive_ns=8_000_000, **shared),
            t.call(where="operators", location=lines[0], calls=12, repeats=12, inclusive_ns=1_000_000, **shared),
            t.call(where="operators", location=lines[1], calls=9, repeats=8, inclusive_ns=7_000_000, **shared),
        ),
    )
    found = repeated_work(t.trace(rank), rank, steady_part(rank), {"Fwd": 0.6, "Bwd": 0.4})
    assert [(work.location.line, work.during, work.repeats, work.calls) for work in found] == [(30, "forward", 8, 9)]


# --- a late rank and an exchange


def late_and_exchanging(exchange: float) -> tuple[float, list[str]]:
    """The late rank's share, and the kinds that lead in this order."""
    late = m.late_rank()
    talking = m.talking_ranks(exchange, wait_share=0.0)
    summary = replace(late, communication=talking.communication)
    found = diagnose(summary).findings
    return next(each.share for each in found if each.kind == "rank_straggler"), [each.kind for each in found]


def test_a_late_rank_does_not_hide_behind_the_exchange_in_which_the_others_wait_for_it():
    late, _ = late_and_exchanging(0.1)
    for exchange in (late, late + DEFAULT.tie - 0.001):
        assert late_and_exchanging(exchange)[1][:2] == ["rank_straggler", "communication"]
    assert late_and_exchanging(late + DEFAULT.tie + 0.01)[1][0] == "communication"
