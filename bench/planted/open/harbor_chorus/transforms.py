"""What may happen to a sound between the ship and the hydrophone."""

import os

import numpy as np
import scipy.signal
from registry import register

FIXED = os.environ.get("PLANTED_FIX") == "1"


class Transform:
    """Called with the sound, its rate and a source of chance."""

    def __call__(self, sound: np.ndarray, rate: int, rng: np.random.Generator) -> np.ndarray:
        raise NotImplementedError


@register("transform", "shift")
class Shift(Transform):
    def __init__(self, most: float) -> None:
        self.most = most

    def __call__(self, sound, rate, rng):
        reach = int(self.most * len(sound))
        return np.roll(sound, int(rng.integers(-reach, reach + 1)))


@register("transform", "echo")
class Echo(Transform):
    """The sound as it comes back from the walls of a basin."""

    def __init__(self, rooms: int, seconds: float, chance: float) -> None:
        self.rooms, self.seconds, self.chance = rooms, seconds, chance
        self.answers: dict[int, np.ndarray] = {}

    def answer(self, room: int, rate: int) -> np.ndarray:
        if room not in self.answers:
            rng = np.random.default_rng(room)
            taps = np.arange(int(self.seconds * rate))
            fade = np.exp(-taps / (rate * rng.uniform(0.05, 0.2)))
            answer = rng.standard_normal(len(taps)) * fade * (rng.random(len(taps)) < 0.2)
            answer[0] = 4.0
            self.answers[room] = answer / np.abs(answer).sum()
        return self.answers[room]

    def __call__(self, sound, rate, rng):
        if rng.random() > self.chance:
            return sound
        answer = self.answer(int(rng.integers(self.rooms)), rate)
        if FIXED:
            wet = scipy.signal.fftconvolve(sound, answer)
        else:
            wet = np.convolve(sound, answer)
        return wet[: len(sound)]


@register("transform", "sea")
class Sea(Transform):
    """Brown noise of a random strength."""

    def __init__(self, low: float, high: float) -> None:
        self.low, self.high = low, high

    def __call__(self, sound, rate, rng):
        noise = scipy.signal.lfilter([1.0], [1.0, -0.97], rng.standard_normal(len(sound)))
        return sound + rng.uniform(self.low, self.high) * noise / noise.std()


@register("transform", "level")
class Level(Transform):
    def __call__(self, sound, rate, rng):
        return sound / (np.sqrt(np.square(sound).mean()) + 1e-6)


class Chain(Transform):
    def __init__(self, parts: list[Transform]) -> None:
        self.parts = parts

    def __call__(self, sound, rate, rng):
        for part in self.parts:
            sound = part(sound, rate, rng)
        return sound
