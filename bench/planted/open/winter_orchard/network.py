"""Motif detectors, then a recurrent reader in both directions."""

import torch
from settings import Network
from torch import nn


class Reader(nn.Module):
    def __init__(self, sizes: Network) -> None:
        super().__init__()
        self.motifs = nn.Conv1d(4, sizes.motifs, 9, padding=4)
        self.read = nn.GRU(sizes.motifs, sizes.width, sizes.depth, batch_first=True, bidirectional=True)
        self.norm = nn.LayerNorm(2 * sizes.width)
        self.score = nn.Linear(2 * sizes.width, 1)

    def forward(self, letters: torch.Tensor) -> torch.Tensor:
        coded = nn.functional.one_hot(letters, 4).float()
        found = torch.relu(self.motifs(coded.transpose(1, 2))).transpose(1, 2)
        states, _ = self.read(found)
        return self.score(self.norm(states.amax(dim=1))).squeeze(-1)


def loss_of(model: nn.Module, letters: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    return nn.functional.binary_cross_entropy_with_logits(model(letters), labels)
