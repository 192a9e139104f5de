import torch
from torch import Tensor, nn


class LineModel(nn.Module):
    def __init__(self, cards: int, lines: int, width: int) -> None:
        super().__init__()
        self.card, self.hour = nn.Embedding(cards, width), nn.Embedding(24, width)
        self.head = nn.Sequential(nn.LayerNorm(2 * width), nn.Linear(2 * width, 64), nn.GELU(), nn.Linear(64, lines))

    def forward(self, card: Tensor, hour: Tensor) -> Tensor:
        return self.head(torch.cat([self.card(card), self.hour(hour)], dim=1))
