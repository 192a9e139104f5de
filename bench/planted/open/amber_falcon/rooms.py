"""Made-up rooms: impulse responses that colour and smear a clean click train."""

from functools import lru_cache

import numpy as np
import torch
from torch.utils.data import IterableDataset, get_worker_info


def impulse_response(width: float, depth: float, height: float, samples: int, order: int = 6) -> np.ndarray:
    """Image sources of a shoebox room, a source and a microphone at fixed places."""
    size = np.array([width, depth, height])
    source, microphone = size * [0.3, 0.4, 0.5], size * [0.7, 0.5, 0.4]
    steps = np.arange(-order, order + 1)
    cells = np.stack(np.meshgrid(steps, steps, steps, indexing="ij"), axis=-1).reshape(-1, 3)
    images = np.where(cells % 2 == 0, cells * size + source, (cells + 1) * size - source)
    distance = np.linalg.norm(images - microphone, axis=1)
    delay = (distance / 343.0 * 4000).astype(int)
    strength = 0.75 ** np.abs(cells).sum(axis=1) / distance.clip(0.5)
    response = np.zeros(samples)
    np.add.at(response, delay[delay < samples], strength[delay < samples])
    return response / np.abs(response).max()


@lru_cache(maxsize=2)
def rooms(count: int, samples: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Spectra of the responses, and the volume of each room."""
    rng = np.random.default_rng(seed)
    sizes = rng.uniform([2.5, 2.5, 2.2], [12.0, 9.0, 4.5], (count, 3))
    responses = np.stack([impulse_response(*size, samples) for size in sizes])
    return np.fft.rfft(responses, n=2 * samples), np.log(sizes.prod(axis=1))


class Clicks(IterableDataset):
    """An epoch of clips heard in rooms; each worker makes its share."""

    def __init__(self, clips: int, samples: int, room_count: int, seed: int) -> None:
        self.clips, self.samples, self.room_count, self.seed = clips, samples, room_count, seed
        self.epoch = 0

    def __iter__(self):
        info = get_worker_info()
        worker, workers = (info.id, info.num_workers) if info else (0, 1)
        spectra, volumes = rooms(self.room_count, self.samples, self.seed)
        rng = np.random.default_rng((self.seed, worker, 7))
        for _ in range(worker, self.clips, workers):
            number = int(rng.integers(self.room_count))
            clicks = (rng.random(self.samples) < 0.01) * rng.uniform(0.3, 1.0, self.samples)
            heard = np.fft.irfft(np.fft.rfft(clicks, n=2 * self.samples) * spectra[number])[: self.samples]
            heard += 0.01 * rng.standard_normal(self.samples)
            yield torch.tensor(heard, dtype=torch.float32), torch.tensor(volumes[number], dtype=torch.float32)
