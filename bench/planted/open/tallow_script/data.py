"""A made-up script of quills and seals: a Markov chain over 64 signs, with phrases that come back."""

import numpy as np
import torch


def make_script(length: int, vocab: int, seed: int) -> torch.Tensor:
    rng = np.random.default_rng(seed)
    phrases = [rng.integers(0, vocab, size=rng.integers(6, 20)) for _ in range(60)]
    parts, total = [], 0
    while total < length:
        part = phrases[rng.zipf(1.4) % len(phrases)] if rng.random() < 0.8 else rng.integers(0, vocab, size=4)
        parts.append(part)
        total += len(part)
    return torch.from_numpy(np.concatenate(parts)[:length].astype(np.int64))


def get_batch(script: torch.Tensor, block: int, batch: int, generator: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
    starts = torch.randint(len(script) - block - 1, (batch,), generator=generator).tolist()
    x = torch.stack([script[i : i + block] for i in starts])
    y = torch.stack([script[i + 1 : i + 1 + block] for i in starts])
    return x, y
