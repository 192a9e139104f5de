"""Greenhouse beds that dry out under made-up weather."""

import numpy as np

BEDS = 6
SEEN = 2 * BEDS + 3


class Greenhouse:
    def __init__(self, seed: int, hours: int) -> None:
        rng = np.random.default_rng(seed)
        clock = np.arange(hours) / 24 * 2 * np.pi
        self.sun = np.clip(np.sin(clock - 1.5), 0, None) * (0.7 + 0.3 * rng.random(hours))
        self.rng, self.hours, self.hour = rng, hours, 0
        self.moisture = rng.uniform(0.3, 0.8, BEDS)
        self.thirst = rng.uniform(0.02, 0.06, BEDS)

    def look(self) -> np.ndarray:
        clock = self.hour / 24 * 2 * np.pi
        sun = self.sun[min(self.hour, self.hours - 1)]
        return np.concatenate([self.moisture, self.thirst * 10, [sun, np.sin(clock), np.cos(clock)]])

    def turn(self, valve: int) -> float:
        """Open one valve for an hour (BEDS: none). Reward: nearness to 0.6, less the water."""
        self.moisture -= self.thirst * (0.3 + self.sun[self.hour])
        if valve < BEDS:
            self.moisture[valve] += 0.25
        np.clip(self.moisture, 0, 1, out=self.moisture)
        self.hour += 1
        return float(-np.abs(self.moisture - 0.6).sum() - 0.05 * (valve < BEDS))
