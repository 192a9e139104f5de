"""Made-up tasting notes, and the model that predicts the score of a taster for a wine."""

import torch
from settings import Data, Model
from torch import nn


class Notes:
    """All notes as tensors, with batches drawn at random."""

    def __init__(self, data: Data, seed: int) -> None:
        source = torch.Generator().manual_seed(seed)
        taste = torch.randn(data.tasters, data.traits, generator=source)
        wine = torch.randn(data.wines, data.traits, generator=source)
        self.taster = torch.randint(data.tasters, (data.notes,), generator=source)
        self.wine = torch.randint(data.wines, (data.notes,), generator=source)
        score = 6.0 + (taste[self.taster] * wine[self.wine]).sum(-1) / data.traits**0.5
        self.score = score + 0.1 * torch.randn(data.notes, generator=source)
        self.border, self.source = int(data.notes * 0.98), source

    def batch(self, size: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        rows = torch.randint(self.border, (size,), generator=self.source)
        return self.taster[rows], self.wine[rows], self.score[rows]

    def held_out(self) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        return self.taster[self.border :], self.wine[self.border :], self.score[self.border :]


class Sommelier(nn.Module):
    def __init__(self, data: Data, model: Model) -> None:
        super().__init__()
        self.taster = nn.Embedding(data.tasters, model.width)
        self.wine = nn.Embedding(data.wines, model.width)
        sizes = [2 * model.width] + [model.hidden] * model.layers
        layers = []
        for before, after in zip(sizes, sizes[1:], strict=False):
            layers += [nn.Linear(before, after), nn.LayerNorm(after), nn.GELU(), nn.Dropout(model.dropout)]
        self.mixer = nn.Sequential(*layers, nn.Linear(sizes[-1], 1))

    def forward(self, taster: torch.Tensor, wine: torch.Tensor) -> torch.Tensor:
        left, right = self.taster(taster), self.wine(wine)
        return self.mixer(torch.cat([left * right, left - right], dim=-1)).squeeze(-1) + (left * right).mean(-1)
