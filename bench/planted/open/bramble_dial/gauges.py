"""Photographs of dial gauges, drawn with numpy: read the needle's angle."""

import numpy as np
import torch
from torch.utils.data import TensorDataset

SIZE = 24


def draw(count: int, seed: int) -> TensorDataset:
    rng = np.random.default_rng(seed)
    turn = rng.uniform(-0.75 * np.pi, 0.75 * np.pi, size=(count, 1, 1))
    y, x = np.mgrid[0:SIZE, 0:SIZE] / (SIZE / 2) - 1
    along = x * np.sin(turn) - y * np.cos(turn)
    across = x * np.cos(turn) + y * np.sin(turn)
    needle = np.exp(-((across / 0.12) ** 2)) * (along > -0.15) * (along < 0.8)
    rim = np.exp(-(((x**2 + y**2) ** 0.5 - 0.9) ** 2) / 0.004)
    light = rng.uniform(0.4, 1.0, size=(count, 1, 1))
    image = light * (needle + rim) + rng.normal(0, 0.1, size=(count, SIZE, SIZE))
    goal = np.concatenate([np.sin(turn[:, 0]), np.cos(turn[:, 0])], axis=1)
    return TensorDataset(torch.from_numpy(image[:, None].astype(np.float32)), torch.from_numpy(goal.astype(np.float32)))
