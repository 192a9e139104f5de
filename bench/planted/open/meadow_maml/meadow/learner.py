"""MAML with learnt inner rates, to second order."""

import torch
from torch import nn
from torch.func import functional_call

from meadow.tasks import Task


class Growth(nn.Module):
    def __init__(self, inputs: int, width: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(inputs, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh()
        )
        self.head = nn.Linear(width, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.body(x)).squeeze(1)


class MetaLearner:
    def __init__(self, width: int, inner_lr: float, inner_steps: int, lr: float) -> None:
        self.model = Growth(7, width)
        self.log_rates = nn.Parameter(torch.full((inner_steps,), inner_lr).log())
        self.optimizer = torch.optim.Adam([*self.model.parameters(), self.log_rates], lr=lr)

    def rates(self) -> list[float]:
        return self.log_rates.exp().tolist()

    def _loss(self, weights: dict[str, torch.Tensor], points: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
        return nn.functional.mse_loss(functional_call(self.model, weights, (points[0],)), points[1])

    def _adapted(self, task: Task, second_order: bool) -> dict[str, torch.Tensor]:
        weights = dict(self.model.named_parameters())
        for rate in self.log_rates.exp():
            loss = self._loss(weights, task.support)
            slopes = torch.autograd.grad(loss, list(weights.values()), create_graph=second_order)
            weights = {name: weight - rate * slope for (name, weight), slope in zip(weights.items(), slopes, strict=True)}
        return weights

    def update(self, tasks: list[Task]) -> float:
        self.optimizer.zero_grad()
        total = 0.0
        for task in tasks:
            loss = self._loss(self._adapted(task, second_order=True), task.query) / len(tasks)
            loss.backward()
            total += loss.item()
        nn.utils.clip_grad_norm_(self.model.parameters(), 5.0)
        self.optimizer.step()
        return total

    def evaluate(self, tasks: list[Task]) -> float:
        losses = []
        for task in tasks:
            weights = {name: weight.detach() for name, weight in self._adapted(task, second_order=False).items()}
            with torch.no_grad():
                losses.append(float(self._loss(weights, task.query)))
        return sum(losses) / len(losses)
