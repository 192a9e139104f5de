"""Play seasons in worker processes with a plain numpy copy of the policy."""

import os
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import NamedTuple

import numpy as np

from .world import Greenhouse

FIXED = os.environ.get("PLANTED_FIX") == "1"


class Season(NamedTuple):
    seen: np.ndarray
    valves: np.ndarray
    rewards: np.ndarray


class Layers(NamedTuple):
    """Weights and biases of the actor, first to last."""

    weights: list[np.ndarray]
    biases: list[np.ndarray]

    def __call__(self, x: np.ndarray) -> np.ndarray:
        for weight, bias in zip(self.weights[:-1], self.biases[:-1]):
            x = np.tanh(weight @ x + bias)
        scores = self.weights[-1] @ x + self.biases[-1]
        odds = np.exp(scores - scores.max())
        return odds / odds.sum()


def play(layers: Layers, hours: int, seed: int) -> Season:
    world, dice = Greenhouse(seed, hours), np.random.default_rng(seed + 1)
    seen, valves, rewards = [], [], []
    for _ in range(hours):
        seen.append(world.look())
        odds = layers(seen[-1])
        valves.append(int(np.searchsorted(odds.cumsum(), dice.random() * odds.sum()).clip(0, len(odds) - 1)))
        rewards.append(world.turn(valves[-1]))
    return Season(np.array(seen, np.float32), np.array(valves), np.array(rewards, np.float32))


class Growers:
    """Sends out seasons to `hands` processes and gathers them in order."""

    def __init__(self, hands: int, seasons: int, hours: int) -> None:
        self.hands, self.seasons, self.hours = hands, seasons, hours
        if FIXED:
            self.crew = self._hire()

    def _hire(self) -> ProcessPoolExecutor:
        return ProcessPoolExecutor(self.hands, mp_context=get_context("fork"))

    def _send(self, crew: ProcessPoolExecutor, layers: Layers, seed: int) -> list[Season]:
        tasks = [crew.submit(play, layers, self.hours, seed + 2 * number) for number in range(self.seasons)]
        return [task.result() for task in tasks]

    def gather(self, layers: Layers, seed: int) -> list[Season]:
        if FIXED:
            return self._send(self.crew, layers, seed)
        else:
            with self._hire() as crew:
                return self._send(crew, layers, seed)

    def close(self) -> None:
        if FIXED:
            self.crew.shutdown()
