"""Metrics that are fed together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import torch

from ferry.registry import METRICS


class Metric(Protocol):
    def update(self, queue: torch.Tensor, urgency: torch.Tensor, true_queue: torch.Tensor, true_urgency: torch.Tensor) -> None: ...

    def compute(self) -> dict[str, float]: ...


class MetricCollection:
    def __init__(self, names: Sequence[str], queues: int) -> None:
        self.metrics: list[Metric] = [METRICS.make(name, queues) for name in names]

    def update(self, queue: torch.Tensor, urgency: torch.Tensor, true_queue: torch.Tensor, true_urgency: torch.Tensor) -> None:
        for metric in self.metrics:
            metric.update(queue, urgency, true_queue, true_urgency)

    def compute(self) -> dict[str, float]:
        found: dict[str, float] = {}
        for metric in self.metrics:
            found.update(metric.compute())
        return found
