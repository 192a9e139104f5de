"""How often the queue is right."""

from __future__ import annotations

import torch

from ferry.registry import METRICS


@METRICS.register("accuracy")
class Accuracy:
    def __init__(self, queues: int) -> None:
        self.right = self.seen = 0

    def update(self, queue, urgency, true_queue, true_urgency) -> None:
        self.right += int((queue.argmax(-1) == true_queue).sum())
        self.seen += len(true_queue)

    def compute(self) -> dict[str, float]:
        return {"accuracy": self.right / max(1, self.seen)}


@METRICS.register("macro_f1")
class MacroF1:
    def __init__(self, queues: int) -> None:
        self.queues = queues
        self.confusion = torch.zeros(queues, queues, dtype=torch.long)

    def update(self, queue, urgency, true_queue, true_urgency) -> None:
        cells = true_queue * self.queues + queue.argmax(-1)
        self.confusion += torch.bincount(cells, minlength=self.queues**2).view(self.queues, self.queues)

    def compute(self) -> dict[str, float]:
        right = self.confusion.diag().float()
        precision = right / self.confusion.sum(0).clamp(min=1)
        recall = right / self.confusion.sum(1).clamp(min=1)
        f1 = 2 * precision * recall / (precision + recall).clamp(min=1e-9)
        return {"macro_f1": float(f1.mean())}
