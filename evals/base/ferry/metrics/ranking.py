"""Do urgent tickets come before others? The share of pairs in the right order, ties counting half."""

from __future__ import annotations

import torch

from ferry.registry import METRICS


@METRICS.register("ranking")
class Ranking:
    """Tickets count as urgent from 0.5 on."""

    def __init__(self, queues: int) -> None:
        self.scores: list[torch.Tensor] = []
        self.truth: list[torch.Tensor] = []

    def update(self, queue, urgency, true_queue, true_urgency) -> None:
        self.scores.append(urgency.detach())
        self.truth.append(true_urgency >= 0.5)

    def compute(self) -> dict[str, float]:
        if not self.scores:
            return {}
        scores, urgent = torch.cat(self.scores), torch.cat(self.truth)
        return {"ranking": ordered_pairs(scores, urgent)}


def ordered_pairs(scores: torch.Tensor, urgent: torch.Tensor) -> float:
    """Share of (urgent, other) pairs whose urgent one scores higher; 0.5 when there are none."""
    high, low = scores[urgent], scores[~urgent]
    if len(high) == 0 or len(low) == 0:
        return 0.5
    ranked, _ = low.sort()
    below = torch.searchsorted(ranked, high)
    not_above = torch.searchsorted(ranked, high, right=True)
    won = float(below.sum()) + 0.5 * float((not_above - below).sum())
    return won / (len(high) * len(low))
