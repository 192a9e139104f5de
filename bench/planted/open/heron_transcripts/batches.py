"""From recordings to what the model takes."""

import os
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from recordings import Recording


@dataclass
class Layout:
    stride: int
    blank: int
    floor: float = -2.0


def _levelled(frames: np.ndarray, length: int, floor: float) -> np.ndarray:
    """Unit variance over the recording, and silence up to the length."""
    frames = frames / (frames.std() + 1e-5)
    return np.pad(frames, ((0, length - len(frames)), (0, 0)), constant_values=floor)


def make_batcher(layout: Layout) -> Callable[[list[Recording]], dict[str, torch.Tensor]]:
    def round_up(length: int) -> int:
        return -(-length // layout.stride) * layout.stride

    def batcher(recordings: list[Recording]) -> dict[str, torch.Tensor]:
        lengths = [len(recording.frames) for recording in recordings]
        longest = round_up(max(lengths))
        frames = [_levelled(recording.frames, longest, layout.floor) for recording in recordings]
        if os.environ.get("PLANTED_FIX") == "1":
            features = torch.from_numpy(np.stack(frames))
        else:
            features = torch.tensor(frames, dtype=torch.float32)
        most = max(len(recording.syllables) for recording in recordings)
        targets = torch.full((len(recordings), most), layout.blank, dtype=torch.long)
        for row, recording in enumerate(recordings):
            targets[row, : len(recording.syllables)] = torch.tensor(recording.syllables) + 1
        return {
            "features": features,
            "feature_lengths": torch.tensor([round_up(length) // layout.stride for length in lengths]),
            "targets": targets,
            "target_lengths": torch.tensor([len(recording.syllables) for recording in recordings]),
        }

    return batcher
