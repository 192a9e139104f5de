"""Convolutions over time with a CTC head."""

import torch
from recordings import BANDS, SYLLABLES
from torch import nn

BLANK = 0


class Block(nn.Module):
    def __init__(self, width: int, kernel: int) -> None:
        super().__init__()
        self.norm = nn.GroupNorm(4, width)
        self.depth = nn.Conv1d(width, width, kernel, padding=kernel // 2)
        self.point = nn.Conv1d(width, width, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.point(nn.functional.gelu(self.depth(self.norm(x))))


class Listener(nn.Module):
    def __init__(self, width: int = 96, blocks: int = 3, stride: int = 4) -> None:
        super().__init__()
        self.stem = nn.Conv1d(BANDS, width, stride, stride)
        self.blocks = nn.Sequential(*[Block(width, 5) for _ in range(blocks)])
        self.head = nn.Linear(width, len(SYLLABLES) + 1)
        self.ctc = nn.CTCLoss(blank=BLANK, zero_infinity=True)

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        hidden = self.blocks(self.stem(features.transpose(1, 2)))
        return self.head(hidden.transpose(1, 2)).log_softmax(-1)

    def loss(self, batch: dict[str, torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
        scores = self(batch["features"])
        loss = self.ctc(scores.transpose(0, 1), batch["targets"], batch["feature_lengths"], batch["target_lengths"])
        return loss, scores


def transcribe(scores: torch.Tensor) -> list[int]:
    """The best path of one recording, without repeats and blanks."""
    path = torch.unique_consecutive(scores.argmax(-1)).tolist()
    return [symbol for symbol in path if symbol != BLANK]


def edits(left: list[int], right: list[int]) -> int:
    """How many insertions, deletions and substitutions lead from one to the other."""
    row = list(range(len(right) + 1))
    for i, a in enumerate(left, 1):
        above, row[0] = row[0], i
        for j, b in enumerate(right, 1):
            above, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, above + (a != b))
    return row[-1]
