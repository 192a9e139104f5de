import numpy as np
import torch


def ripples(count: int, size: int = 32, steps: int = 12, seed: int = 1) -> tuple[torch.Tensor, torch.Tensor]:
    """Sand heights before and after some wind: a toy of saltation and creep."""
    rng = np.random.default_rng(seed)
    before = rng.normal(0, 0.3, (count, size, size)).astype(np.float32)
    before += np.sin(np.linspace(0, 12, size) * rng.uniform(0.5, 1.5, (count, 1)))[:, None, :].astype(np.float32)
    after = before.copy()
    for _ in range(steps):
        hop = 0.1 * np.maximum(after, 0)
        after = after - hop + np.roll(hop, 2, axis=2)
        after += 0.05 * (np.roll(after, 1, 1) + np.roll(after, -1, 1) - 2 * after)
    return torch.from_numpy(before[:, None]), torch.from_numpy(after[:, None])
