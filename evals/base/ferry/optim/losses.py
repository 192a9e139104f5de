"""The loss: cross-entropy of the queue, and a weighted part for the urgency."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch.nn import functional

from ferry.config import OptimConfig
from ferry.data.batches import Batch
from ferry.models.build import Prediction


@dataclass
class Losses:
    total: torch.Tensor
    queue: torch.Tensor
    urgency: torch.Tensor


class Criterion:
    def __init__(self, config: OptimConfig) -> None:
        self.urgency_weight = config.urgency_weight
        self.label_smoothing = config.label_smoothing

    def __call__(self, prediction: Prediction, batch: Batch) -> Losses:
        queue = functional.cross_entropy(prediction.queue, batch.queue, label_smoothing=self.label_smoothing)
        urgency = functional.binary_cross_entropy_with_logits(prediction.urgency, batch.urgency)
        return Losses(queue + self.urgency_weight * urgency, queue, urgency)
