"""An evaluation of the validation split."""

from __future__ import annotations

import torch
from torch import nn
from torch.utils.data import DataLoader

from ferry.metrics import MetricCollection
from ferry.optim.losses import Criterion


@torch.no_grad()
def evaluate(model: nn.Module, loader: DataLoader, criterion: Criterion, metrics: MetricCollection) -> dict[str, float]:
    """Mean loss and all metrics; the model is left in the mode in which it came."""
    was_training = model.training
    model.eval()
    total, seen = 0.0, 0
    for batch in loader:
        prediction = model(batch.tokens, batch.mask)
        losses = criterion(prediction, batch)
        total += float(losses.total) * len(batch)
        seen += len(batch)
        metrics.update(prediction.queue, prediction.urgency, batch.queue, batch.urgency)
    model.train(was_training)
    return {"loss": total / max(1, seen), **metrics.compute()}
