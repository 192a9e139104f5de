"""Rules that read cost sites: slow operators, callbacks, growth; and what a healthy program may be called."""

from __future__ import annotations

from dataclasses import replace

import pytest
import scenarios as s
import site_scenarios as c
from compute_scenarios import numerics, operators

from trainflash.diagnosis import DEFAULT, diagnose
from trainflash.diagnosis.slow_forms import known_form
from trainflash.schema import Finding, Location, Operand, SiteOperator, Summary


def first(summary: Summary) -> Finding:
    return diagnose(summary).findings[0]


def kinds(summary: Summary) -> list[str]:
    return [finding.kind for finding in diagnose(summary).findings]


def test_the_five_largest_sites_stand_in_a_healthy_diagnosis_too():
    sites = tuple(c.site(Location("model.py", line, "Net.forward"), 0.12 - 0.01 * line) for line in range(1, 8))
    found = diagnose(replace(s.healthy(), sites=sites))
    assert found.findings[0].kind == "compute"
    assert found.sites == sites[:5]


# --- slow operators


def test_a_call_far_above_its_floor_is_named_with_its_line_shape_and_floor():
    found = first(c.calling("logcumsumexp", 0.7, floor=40))
    assert (found.kind, found.location, found.phase) == ("slow_operator", c.NORM, "Fwd")
    assert found.share == pytest.approx(0.7)
    assert any("2 × 512 × 256, float32" in str(row.value) for row in found.evidence)
    assert any("at least" in row.name for row in found.evidence)
    assert found.ceiling.speedup == pytest.approx(1 / 0.3, rel=0.01)  # without all of it: an upper bound


def test_a_call_near_its_floor_or_of_an_unknown_one_is_no_finding():
    assert first(c.calling("linear", 0.7, floor=3)).kind == "compute"
    assert first(c.calling("gru", 0.7, floor=None)).kind == "compute"


def test_what_a_call_takes_by_itself_is_what_its_floor_is_held_against():
    def by_itself(share: float):
        made = c.calling("logcumsumexp", 0.7, floor=40)
        operator = made.sites[0].operators[0]
        tried = replace(operator, alone_ms=share * (operator.ms + operator.backward_ms))
        return replace(made, sites=(replace(made.sites[0], operators=(tried,)),))

    assert first(by_itself(0.9)).kind == "slow_operator"
    assert first(by_itself(0.1)).kind == "compute"  # cold caches, fresh pages, gradients that are added up


@pytest.mark.parametrize(
    ("name", "more"),
    [
        ("norm", {"dim": 0}),
        ("multinomial", {"shape": (128, 8000), "replacement": False}),
        ("mul", {"layout": "strided", "shape": (512, 512), "floor": 20}),
        ("matmul", {"shape": (2708, 2708), "values": "zeros"}),
        ("bmm", {"shape": (64, 72, 48), "other": (64, 48, 1)}),
        ("softmax", {"shape": (2708, 2708), "values": "zeros"}),
        ("where", {"shape": (2708, 2708), "dtype": "bool", "values": "zeros"}),
        ("sqrt", {"shape": (512, 512), "values": "subnormal", "floor": 20}),
    ],
)
def test_a_form_that_is_known_to_be_slow_is_named_with_the_faster_one(name, more):
    found = first(c.calling(name, 0.6, **more))
    assert found.kind == "slow_operator"
    assert any(row.name == "faster" for row in found.evidence)


@pytest.mark.parametrize(
    ("name", "more"),
    [
        ("norm", {"dim": 1}),  # over 512
        ("multinomial", {"shape": (128, 8000), "replacement": True}),
        ("multinomial", {"shape": (128, 10), "replacement": False}),
        ("conv2d", {"shape": (32, 16, 24, 24)}),  # which layout is faster has to be tried
        ("bmm", {"shape": (64, 72, 48), "other": (64, 48, 8)}),
        ("where", {"shape": (512, 512), "dtype": "bool"}),  # a causal mask
        ("mul", {"shape": (512, 512), "values": "zeros"}),
    ],
)
def test_other_forms_of_the_same_calls_are_not(name, more):
    found = c.calling(name, 0.6, **more)
    assert known_form(found.sites[0].operators[0]) is None
    assert first(found).kind == "compute"


GELU = {"__rmul__": 3, "tanh": 1, "pow": 1, "__add__": 1, "__radd__": 1, "mul": 1}


def chained(calls: dict, share: float, each_ms: float = 0.05):
    """A function of two lines that makes these calls, each of `each_ms`, forward alone."""
    whole = sum(calls.values())
    operators = [SiteOperator(name, times, times * each_ms, 0.0, share * times / whole) for name, times in calls.items()]
    lines = [replace(c.NORM, line=line) for line in (30, 31)]
    halves = (operators[::2], operators[1::2])
    return c.with_sites(*(c.site(line, share / 2, operators=tuple(half)) for line, half in zip(lines, halves, strict=True)))


def test_a_chain_of_elementwise_calls_is_one_cause_over_the_lines_of_its_function():
    found = first(chained(GELU, 0.5))
    assert (found.kind, found.location.file) == ("slow_operator", c.NORM.file)
    assert found.share == pytest.approx(0.5)
    assert any(row.name == "form" and "chain" in str(row.value) for row in found.evidence)


@pytest.mark.parametrize(
    ("calls", "share", "each_ms"),
    [
        ({"add": 12, "mul": 12}, 0.5, 0.05),  # twelve layers, two calls each
        (GELU, 0.1, 0.05),  # too little of the time
        (GELU, 0.5, 0.005),  # calling them takes the time
        ({"linear": 1, "softmax": 7}, 0.5, 0.05),
    ],
)
def test_no_chain(calls, share, each_ms):
    assert first(chained(calls, share, each_ms)).kind == "compute"


def test_calls_of_a_library_below_one_line_are_no_chain_of_that_line():
    run = chained(GELU, 0.5)
    below = (Location("gpytorch/variational/strategy.py", 353, "Strategy.forward"),)
    assert first(replace(run, sites=tuple(replace(site, path=below) for site in run.sites))).kind == "compute"


def tried(saves: dict[str, float], share: float = 0.25, **more):
    """A network whose calls, `share` each on a line of its own, were tried in both layouts, and saved so much in channels_last."""
    calls = [c.calling(name, share, shape=(32, 16, 24, 24), **more).sites[0] for name in saves]
    sites = [
        replace(
            place,
            location=replace(c.NORM, line=30 + number),
            operators=(replace(place.operators[0], channels_last_saves=saved),),
        )
        for number, (place, saved) in enumerate(zip(calls, saves.values(), strict=True))
    ]
    return replace(c.with_sites(*sites), numerics=numerics(convolutions=2, channels_last=False), operators=operators())


def test_what_channels_last_saved_when_it_was_tried_is_one_cause_over_all_calls():
    (found,) = diagnose(tried({"conv2d": 0.2, "max_pool2d": 0.6})).findings
    assert (found.kind, found.location) == ("memory_format", replace(c.NORM, line=31))
    assert found.share == pytest.approx(0.25 * 0.8) and "max_pool2d and conv2d" in found.summary


@pytest.mark.parametrize(
    "run",
    [
        tried({"conv2d": 0.4, "max_pool2d": -0.4}),  # a network has one layout
        tried({"conv2d": 0.05}),
        tried({"conv2d": 0.0, "batch_norm": 0.1}, floor=40.0),  # far above its floor in either: no other kernel is known
    ],
)
def test_a_layout_that_saves_nothing_is_not_blamed(run):
    assert first(run).kind == "compute"


# --- callbacks


@pytest.mark.parametrize("kind", ["metric", "hook", "tracker", "engine"])
def test_what_is_called_back_is_no_network(kind):
    found = first(c.called_back(0.3, kind))
    assert (found.kind, found.location) == ("callback", c.METRIC)
    assert found.share == pytest.approx(0.3)


def test_a_bound_is_no_less_than_what_goes_away_without_the_callback():
    found = first(c.called_back(0.5))
    assert found.ceiling.how == "bound" and found.ceiling.speedup >= 1 / (1 - 0.5) - 1e-3


# --- growth


@pytest.mark.parametrize(
    ("late_ms", "cpu", "parts", "said"),
    [
        (
            3.0,
            False,
            (6.0, 6.0, 6.0, 3.0, 3.0, 3.0),
            "steps got shorter, from 6.0 ms in the first third of the steady steps to 3.0 ms in the last, in one stair at about 50 %",
        ),
        (
            3.0,
            False,
            (6.0, 5.4, 4.8, 4.2, 3.6, 3.0),
            "steps got shorter, from 6.0 ms in the first third of the steady steps to 3.0 ms in the last: shares",
        ),
        (
            9.0,
            None,
            (6.0, 6.0, 9.0, 9.0, 6.0, 9.0),
            "steps got longer, from 6.0 ms in the first third of the steady steps to 9.0 ms in the last, and their CPU time did not",
        ),
        (6.5, True, (6.0, 6.1, 6.2, 6.3, 6.4, 6.5), None),
    ],
)
def test_steps_that_change_without_one_place_that_grows_are_told(late_ms, cpu, parts, said):
    run = c.growing(late_ms, place=0.1, cpu=bool(cpu), parts=parts)
    if cpu is None:
        run = replace(run, trend=replace(run.trend, cpu_early_ms=6.0, cpu_late_ms=6.1))
    changed = [note for note in diagnose(run).notes if note.startswith("steps got")]
    assert len(changed) == (said is not None)
    assert said is None or changed[0].startswith(said)


def test_growth_is_named_at_the_place_that_grows():
    found = first(c.growing())
    assert (found.kind, found.location) == ("growth", c.METRIC)
    assert "6.0 ms" in found.summary and "15.0 ms" in found.summary


def test_a_machine_that_slows_all_places_is_no_growth():
    assert "growth" not in kinds(c.growing(place=0.3))


def test_a_while_of_other_work_is_no_growth():
    assert "growth" not in kinds(c.growing(parts=(6.0, 7.0, 9.0, 15.0, 13.0, 7.0)))


def test_growth_of_the_wall_clock_alone_has_to_be_steady():
    uneven = (6.0, 9.0, 7.0, 8.5, 13.0, 15.0)
    assert "growth" in kinds(c.growing(parts=uneven))
    assert "growth" not in kinds(c.growing(parts=uneven, cpu=False))
    assert "growth" in kinds(c.growing(cpu=False))


def test_what_grows_and_is_called_back_is_claimed_once():
    both = replace(c.growing(), sites=(c.site(c.METRIC, 0.6, called_back="metric"),))
    found = diagnose(both)
    assert [finding.kind for finding in found.findings][:2] == ["growth", "callback"]
    assert found.together.speedup <= 1 / (1 - 0.6) + 0.01


def test_hooks_that_an_operator_leaves_in_the_engine_are_told_at_its_line():
    backward, sends = Location("train.py", 48, "main"), Location("train.py", 25, "synchronize")
    engine = c.site(backward, 0.5, called_back="engine", forward=0.0, backward=0.5)
    sender = c.site(sends, 0.1, phase="Other", path=(Location("torch/distributed/distributed_c10d.py", 3145, "broadcast"),))
    grown = c.growing()
    found = first(replace(grown, sites=(engine, sender), trend=replace(grown.trend, location=backward, in_hooks=True)))
    assert (found.kind, found.location) == ("growth", sends)


# --- memory of workers


def test_memory_that_workers_copy_stands_beside_the_input():
    found = kinds(c.copying_workers())
    assert found[0] == "input_cpu" and "worker_memory" in found
    assert "worker_memory" not in kinds(c.copying_workers(DEFAULT.worker_grown_mb - 1))


# --- beside the network


def test_work_outside_of_modules_through_which_no_gradient_flows_is_no_network():
    place = replace(c.NORM, line=70)
    found = first(c.with_sites(c.site(place, 0.4, beside=0.4), c.site(c.NORM, 0.3)))
    assert (found.kind, found.location, found.phase) == ("host_code", place, "Fwd")
    assert found.share == pytest.approx(0.4)


def test_what_builds_the_graph_outside_of_modules_is_the_network():
    assert first(c.with_sites(c.site(c.NORM, 0.4, beside=0.3, backward=0.1, forward=0.3))).kind == "compute"


def test_a_modules_own_python_through_which_no_gradient_flows_is_no_network():
    made, layer = Location("model.py", 40, "Net.pool.<locals>.<listcomp>"), c.site(c.NORM, 0.5, forward=0.25, backward=0.25)
    filled = c.site(replace(made, line=41, function="Net.pool"), 0.05)
    found = first(c.with_sites(layer, c.site(made, 0.15), filled))
    assert (found.kind, found.location, found.phase) == ("host_code", made, "Fwd") and found.share == pytest.approx(0.2)


@pytest.mark.parametrize(
    "more",
    [
        {"backward": 0.1, "forward": 0.1},
        {"path": (Location("torch/nn/modules/linear.py", 134, "Linear.forward"),)},
        {"operators": c.calling("embedding", 0.2).sites[0].operators},
    ],
    ids=["builds the graph", "is torch's", "is operators"],
)
def test_a_function_of_forward_that_computes_is_the_network(more):
    layer = c.site(c.NORM, 0.5, forward=0.25, backward=0.25)
    assert kinds(c.with_sites(layer, c.site(Location("model.py", 40, "Net.pool"), 0.2, **more))) == ["compute"]


def test_nothing_is_called_python_where_no_graph_was_recorded():
    assert kinds(c.with_sites(c.site(Location("model.py", 40, "Net.pool"), 0.2))) == ["compute"]


def test_a_smaller_slow_operator_does_not_hide_work_beside_the_network():
    place = replace(c.NORM, line=70)
    slow = c.calling("norm", 0.2, dim=0)
    found = first(replace(slow, sites=(c.site(place, 0.4, beside=0.4), *slow.sites)))
    assert (found.kind, found.location) == ("host_code", place)


# --- many small places of a library


def rollouts(share: float, functions: int, under: Location | None = c.METRIC) -> Summary:
    """What makes batches is spread evenly over the functions of a library that runs the loop, or of the owner's own (`under` None)."""
    places = [Location("sb3/common.py", 10 * n, f"step{n}") for n in range(functions)]
    part = share / functions
    made = s.run(Data=share)
    lines = tuple(s.LineCost("main", "Data", place, part) for place in places)
    sites = tuple(c.site(place, part, phase="Data", forward=0.0, under=under) for place in places)
    return replace(made, loaders=(), lines=lines, sites=sites)


def test_many_small_functions_of_a_library_are_listed_and_nobody_is_accused_of_them():
    found = diagnose(rollouts(0.24, 12)).findings
    assert [each.kind for each in found] == ["compute", "input_cpu"]
    assert "input_cpu (24 %)" in found[0].summary


@pytest.mark.parametrize("cost", [rollouts(0.24, 4), rollouts(0.36, 12), rollouts(0.24, 12, under=None)])
def test_one_large_function_a_third_of_the_time_and_code_of_the_owner_are_costs(cost):
    assert first(cost).kind == "input_cpu"


# --- all pairs, summed up again


def pairs(*calls: tuple[str, tuple, tuple], share: float = 0.6, rows: int = 1024):
    """A function that makes these calls, each (name, shapes given, shape made), where 0 stands for `rows`."""

    def operand(shape) -> Operand:
        return Operand(tuple(size or rows for size in shape), "float32", "contiguous", True)

    each = [
        SiteOperator(name, 1.0, 5.0, 5.0, share / len(calls), given=tuple(map(operand, given)), made=(operand(made),))
        for name, given, made in calls
    ]
    return c.with_sites(c.site(c.NORM, share, operators=tuple(each)))


WHOLE, SUMMED = (0, 512, 64), (0, 512)
SPREAD = ("sub", ((0, 1, 64), (512, 64)), WHOLE)
SQUARED, SUM = ("pow", (WHOLE,), WHOLE), ("sum", (WHOLE,), SUMMED)


@pytest.mark.parametrize(
    "calls",
    [
        (SPREAD, SQUARED, SUM),
        (SPREAD, ("mul", (WHOLE, WHOLE), WHOLE), ("mean", (WHOLE,), SUMMED)),
        (SPREAD, ("norm", (WHOLE,), SUMMED)),
        (("__mul__", ((0, 1, 64), (512, 64)), WHOLE), SUM),
        (("cosine_similarity", ((0, 1, 64), (1, 512, 64)), SUMMED),),
    ],
)
def test_pairs_that_a_product_of_matrices_would_make(calls):
    found = first(pairs(*calls))
    assert found.kind == "slow_operator" and "all pairs" in found.summary
    assert first(pairs(*calls, rows=4)).kind == "compute"  # too few


@pytest.mark.parametrize(
    "calls",
    [
        (SPREAD, SQUARED),  # not summed up
        (SPREAD, ("abs", (WHOLE,), WHOLE), SUM),
        (SPREAD, SQUARED, ("exp", (WHOLE,), WHOLE), SUM),
        (("add", ((0, 1, 64), (512, 64)), WHOLE), ("tanh", (WHOLE,), WHOLE), SUM),
        (("mul", (WHOLE, (64,)), WHOLE), SUM),  # a weighted sum: nothing is spread
        (("cosine_similarity", (WHOLE, WHOLE), SUMMED),),
    ],
)
def test_pairs_that_no_product_makes(calls):
    assert first(pairs(*calls)).kind == "compute"
