"""Keep the weights that score best on the sequences held out."""

import torch
from settings import SelectionSettings
from torch import nn


def auc(scores: torch.Tensor, labels: torch.Tensor) -> float:
    """Area under the ROC curve by ranks."""
    ranks = torch.empty_like(scores)
    ranks[scores.argsort()] = torch.arange(1, len(scores) + 1, dtype=scores.dtype)
    positives = labels.sum()
    negatives = len(labels) - positives
    return float((ranks[labels == 1].sum() - positives * (positives + 1) / 2) / (positives * negatives))


class Paced:
    """Something that wants to be looked at several times an epoch."""

    def __init__(self, steps_per_epoch: int, per_epoch: int) -> None:
        self.steps_per_epoch, self.per_epoch, self.step = steps_per_epoch, per_epoch, 0

    @property
    def gap(self) -> int:
        return max(1, self.steps_per_epoch // self.per_epoch)

    @property
    def due(self) -> bool:
        return self.step % self.gap == 0


class KeepBest(Paced):
    """Remembers the best score and the weights that reached it."""

    METRICS = {"auc": auc, "accuracy": lambda scores, labels: float(((scores > 0) == labels.bool()).float().mean())}

    def __init__(
        self, model: nn.Module, held_out: tuple[torch.Tensor, torch.Tensor], steps_per_epoch: int, settings: SelectionSettings
    ) -> None:
        super().__init__(steps_per_epoch, settings.per_epoch)
        self.model, self.held_out, self.patience = model, held_out, settings.patience
        self.metric = self.METRICS[settings.metric]
        self.best, self.weights, self.without_gain = float("-inf"), {}, 0

    @torch.no_grad()
    def score(self) -> float:
        bases, labels = self.held_out
        self.model.eval()
        scores = torch.cat([self.model(part) for part in bases.split(64)])
        self.model.train()
        return self.metric(scores, labels)

    def after_step(self) -> bool:
        """True where training should go on."""
        self.step += 1
        if not self.due:
            return True
        score = self.score()
        if score > self.best:
            self.best, self.without_gain = score, 0
            self.weights = {name: value.clone() for name, value in self.model.state_dict().items()}
        else:
            self.without_gain += 1
        return self.without_gain < self.patience
