"""How far the urgency is off."""

from __future__ import annotations

import torch

from ferry.registry import METRICS


@METRICS.register("urgency_error")
class UrgencyError:
    def __init__(self, queues: int) -> None:
        self.total = 0.0
        self.seen = 0

    def update(self, queue, urgency, true_queue, true_urgency) -> None:
        self.total += float((torch.sigmoid(urgency) - true_urgency).abs().sum())
        self.seen += len(true_urgency)

    def compute(self) -> dict[str, float]:
        return {"urgency_error": self.total / max(1, self.seen)}
