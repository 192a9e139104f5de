"""Join hauls of different length."""

import os

import numpy as np
import torch

FIXED = os.environ.get("PLANTED_FIX") == "1"


class Joiner:
    """A callable for `DataLoader(collate_fn=...)`: pads the readings, standardises them, and builds the mask."""

    def __init__(self, channels: int, means: list[float], scales: list[float]) -> None:
        self.channels, self.means, self.scales = channels, means, scales

    def __call__(self, hauls: list[dict]) -> dict[str, torch.Tensor]:
        longest = max(len(haul["readings"]) for haul in hauls)
        return {
            "readings": self._padded([haul["readings"] for haul in hauls], longest),
            "mask": torch.arange(longest)[None] < torch.tensor([len(haul["readings"]) for haul in hauls])[:, None],
            "vessel": torch.tensor([haul["vessel"] for haul in hauls]),
            "catch": torch.tensor([haul["catch"] for haul in hauls]),
        }

    def _padded(self, sequences, longest: int) -> torch.Tensor:
        if FIXED:
            joined = np.zeros((len(sequences), longest, self.channels), dtype=np.float32)
            for row, sequence in zip(joined, sequences, strict=True):
                row[: len(sequence)] = (sequence - np.float32(self.means)) / np.float32(self.scales)
            return torch.from_numpy(joined)
        blank = [0.0] * self.channels
        rows = []
        for sequence in sequences:
            scaled = [[(x - m) / s for x, m, s in zip(reading, self.means, self.scales)] for reading in sequence]
            rows.append(scaled + [blank] * (longest - len(sequence)))
        return torch.tensor(rows)
