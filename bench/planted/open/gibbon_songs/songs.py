"""Great calls of gibbons as pitch contours; each call has its own length."""

import numpy as np
import torch

GROUPS = 5


def calls(count: int, seed: int = 31):
    rng = np.random.default_rng(seed)
    out = []
    for _ in range(count):
        group = int(rng.integers(GROUPS))
        length = int(np.clip(rng.normal(110, 32), 40, 200))
        t = np.linspace(0, 1, length)
        pitch = 0.6 + group * 0.08 + t ** (1 + group * 0.5) + 0.1 * np.sin(2 * np.pi * (4 + group) * t * (1 + t))
        loud = np.exp(-((t - 0.6) ** 2) / 0.1)
        contour = np.stack([pitch, loud, np.gradient(pitch) * 20], 1) + rng.normal(0, 0.12, (length, 3))
        out.append((torch.tensor(contour, dtype=torch.float32), group))
    return out


def together(rows, step: int):
    """Pads the calls of a batch to one length (a multiple of `step`)."""
    longest = max(len(contour) for contour, _ in rows)
    longest = -(-longest // step) * step
    block, present = torch.zeros(len(rows), longest, 3), torch.zeros(len(rows), longest, 1)
    for i, (contour, _) in enumerate(rows):
        block[i, : len(contour)] = contour
        present[i, : len(contour)] = 1
    return block, present, torch.tensor([group for _, group in rows])
