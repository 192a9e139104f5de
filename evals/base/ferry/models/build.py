"""The router: an encoder, and a head for each of its two tasks."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn

from ferry.config import ModelConfig
from ferry.models.layers import MaskedMean
from ferry.registry import ENCODERS


@dataclass
class Prediction:
    """`queue` (B, Q) logits; `urgency` (B,) logits."""

    queue: torch.Tensor
    urgency: torch.Tensor


class Router(nn.Module):
    def __init__(self, encoder: nn.Module, width: int, queues: int) -> None:
        super().__init__()
        self.encoder = encoder
        self.pool = MaskedMean()
        self.queue_head = nn.Linear(width, queues)
        self.urgency_head = nn.Sequential(nn.Linear(width, width // 2), nn.Tanh(), nn.Linear(width // 2, 1))

    def forward(self, tokens: torch.Tensor, mask: torch.Tensor) -> Prediction:
        pooled = self.pool(self.encoder(tokens, mask), mask)
        return Prediction(self.queue_head(pooled), self.urgency_head(pooled).squeeze(-1))


def build_model(config: ModelConfig, words: int, longest: int) -> Router:
    encoder = ENCODERS.make(config.encoder, words, config.width, config.heads, config.layers, config.hidden, config.dropout, longest)
    model = Router(encoder, config.width, config.queues)
    for name, parameter in model.named_parameters():
        if parameter.dim() > 1 and "embed" not in name and "rnn" not in name:
            nn.init.xavier_uniform_(parameter)
    return model


def parameter_count(model: nn.Module) -> int:
    return sum(parameter.numel() for parameter in model.parameters())
