"""Which ops a comparison calls regressed or improved: none that changed its place in a list only, and all that changed."""

from __future__ import annotations

from profile_scenarios import flat, launched, profile, step, trace, work

from trainflash.profile.analysis.build import summarize
from trainflash.profile.compare import compare


def program(kernels, steps=3, length=200_000):
    """Steps of these (name, microseconds)."""
    events = []
    for n in range(steps):
        at = n * length + 10
        events.append(step(n, n * length, length))
        for number, (name, took) in enumerate(kernels):
            events += launched(name, at - 5, at, took, 1000 * n + number + 1)
            at += took + 100
    return summarize(profile(trace(flat(events))))


def lettered(number):
    return f"op_{chr(97 + number % 26)}{chr(97 + number // 26)}x"


def names(rows):
    return [each.name for each in rows]


def test_an_op_whose_variant_came_into_the_list_is_not_regressed():
    others = [(lettered(number), 2000 + number) for number in range(23)]
    variants = [(f"void at::native::vectorized_elementwise_kernel<{4 + n}>(int)", 1000 - 100 * n) for n in range(2)]
    found = compare(program([*others, ("fused_away", 1500), *variants]), program([*others, *variants]))
    assert found.regressed_ops == () and names(found.improved_ops) == ["fused_away"]
    assert found.improved_ops[0].per_unit_us.change == -1500


def test_the_largest_improvement_is_listed_however_many_ops_stay():
    small = [(lettered(number), 1000 + number) for number in range(30)]
    found = compare(program([*small, ("huge", 150_000)]), program(small, length=100_000))
    assert names(found.improved_ops) == ["huge"] and found.regressed_ops == ()


def test_an_op_beyond_the_list_may_take_as_much_as_the_least_listed_one():
    """More ops than are listed: what one side does not list is compared with the most that it may take there."""
    many = [(lettered(number), 1000 - number) for number in range(210)]
    found = compare(program([*many, ("huge", 150_000), ("tiny", 10)], length=500_000), program(many, length=500_000))
    (gone,) = found.improved_ops
    assert gone.name == "huge" and gone.per_unit_us.change == -150_000 + (1000 - 199) and found.regressed_ops == ()


def test_fewer_iterations_without_marks_are_no_improvement():
    def iterations(count, took=800):
        return summarize(profile(trace(flat(*[work("gemm", 1000 * n + 100, took) for n in range(count)]))))

    found = compare(iterations(20), iterations(10))
    assert found.improved_ops == () and found.regressed_ops == () and found.ops_normalized_by == "call"
    assert any("the windows differ, 19.8 ms and 9.8 ms" in said for said in found.said)
    (slower,) = compare(iterations(20), iterations(10, 900)).regressed_ops
    assert slower.per_unit_us.change == 100
