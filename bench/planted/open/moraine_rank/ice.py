import numpy as np
import torch


def profiles(count=6000, points=96, seed=2):
    """Ground radar across a moraine: travel times, and the depth of the ice to be found."""
    rng = np.random.default_rng(seed)
    x = np.linspace(0, 1, points)
    depth = sum(rng.normal(0, 1, (count, 1)) / k * np.sin(np.pi * k * x + rng.uniform(0, 6, (count, 1))) for k in range(1, 6))
    speed = 1 + 0.1 * np.cumsum(rng.normal(0, 0.1, (count, points)), 1)
    times = depth / speed + 0.05 * rng.normal(size=(count, points))
    return torch.tensor(times, dtype=torch.float32), torch.tensor(depth, dtype=torch.float32)
