"""Where along a run a start times its steps, with programs of known step times and a clock of their own."""

from __future__ import annotations

import pytest

from trainflash.bench import far


class Programs:
    """Both sides at once: `ours(step)` and `theirs(step)` seconds; the run has `steps` steps."""

    def __init__(self, ours, theirs, steps: int, at: int = 100) -> None:
        self.sides, self.steps, self.at, self.now = (ours, theirs), steps, at, 0.0
        self.windows: list[tuple[int, int]] = []

    def clock(self) -> float:
        return self.now

    def step_s(self):
        return tuple(side(self.at) for side in self.sides)

    def timed(self, steps: int) -> bool:
        self.windows.append((self.at, min(steps, self.steps - self.at)))
        return self._go(steps, sum)

    def passed(self, steps: int) -> bool:
        return self._go(steps, max)

    def _go(self, steps: int, cost) -> bool:
        made = min(steps, self.steps - self.at)
        self.now += sum(cost(side(self.at + step) for side in self.sides) for step in range(made))
        self.at += made
        return made < steps


def look(programs, left: int | None, near: float = 60.0, reach: float = 90.0, **options):
    far.look(programs, 25, left, far.Limits(near, reach), programs.clock, **options)
    return programs


def test_a_short_run_is_timed_whole():
    seen = look(Programs(lambda n: 0.01, lambda n: 0.008, 1256), 1156)
    assert sum(steps for _, steps in seen.windows) == 1156
    assert seen.at == 1256
    assert all(steps >= 25 for _, steps in seen.windows[:-2]), "shorter slices measure the resume"
    assert max(steps for _, steps in seen.windows) * 0.01 <= far.PIECE_S + 0.01


def test_a_longer_run_is_seen_to_its_end_in_windows():
    seen = look(Programs(lambda n: 0.01, lambda n: 0.01, 6000), 5900)
    assert seen.at == 6000
    assert seen.now <= 90.0
    assert len(seen.windows) >= far.WINDOWS
    gaps = [b - (a + steps) for (a, steps), (b, _) in zip(seen.windows, seen.windows[1:], strict=False)]
    assert max(gaps) <= 1.3 * (5900 / far.WINDOWS), "windows lie evenly"


@pytest.mark.parametrize("left", [3_000_000, None])
def test_an_hour_is_seen_as_far_as_the_time_goes(left):
    seen = look(Programs(lambda n: 0.01, lambda n: 0.01, 3_000_100), left)
    assert 0.7 * 60 <= seen.now <= 1.2 * 60
    assert len(seen.windows) == far.WINDOWS
    assert seen.at > 1500


def test_steps_that_get_slower_are_given_the_time_that_is_left():
    seen = look(Programs(lambda n: 0.002 + n / 5e4, lambda n: 0.002, 1200), 1100)
    assert seen.at == 1200
    assert seen.now <= 90.0


def test_further_starts_see_as_far_as_the_first_did():
    seen = look(Programs(lambda n: 0.01, lambda n: 0.01, 10**6), 2000, to_end=False)
    assert seen.at == 2100


def test_without_time_nothing_is_timed():
    assert look(Programs(lambda n: 1.0, lambda n: 1.0, 1000), 900, near=10.0, reach=12.0).windows == []
    assert look(Programs(lambda n: 1.0, lambda n: 1.0, 1000), 0, to_end=False).windows == []
