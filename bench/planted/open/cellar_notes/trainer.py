"""A small trainer that tells its hooks what happens."""

import math

import torch
from settings import Settings
from torch import nn


class Hook:
    def begin(self, trainer: "Trainer") -> None: ...
    def after_step(self, trainer: "Trainer") -> None: ...
    def after_evaluation(self, trainer: "Trainer") -> None: ...


class Trainer:
    def __init__(self, model: nn.Module, notes, settings: Settings, hooks: list[Hook]) -> None:
        self.model, self.notes, self.settings, self.hooks = model, notes, settings, hooks
        self.optimizer = torch.optim.AdamW(model.parameters(), settings.run.lr, fused=True)
        self.decay = math.exp(-math.log(2) / settings.run.halflife)
        self.step, self.loss, self.smoothed, self.held_out = 0, math.nan, math.nan, math.inf

    def _tell(self, event: str) -> None:
        for hook in self.hooks:
            getattr(hook, event)(self)

    def state(self) -> dict:
        return {"step": self.step, "model": self.model.state_dict(), "optimizer": self.optimizer.state_dict()}

    def _train_step(self) -> None:
        taster, wine, score = self.notes.batch(self.settings.run.batch_size)
        loss = nn.functional.mse_loss(self.model(taster, wine), score)
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), 5.0)
        self.optimizer.step()
        self.loss = loss.item()
        self.smoothed = self.loss if math.isnan(self.smoothed) else self.decay * self.smoothed + (1 - self.decay) * self.loss

    @torch.no_grad()
    def evaluate(self) -> float:
        taster, wine, score = self.notes.held_out()
        self.model.eval()
        error = nn.functional.mse_loss(self.model(taster, wine), score).item()
        self.model.train()
        return error

    def run(self, steps: int) -> None:
        self._tell("begin")
        while self.step < steps:
            self._train_step()
            self.step += 1
            self._tell("after_step")
            if self.step % self.settings.run.evaluate_every == 0:
                self.held_out = self.evaluate()
                self._tell("after_evaluation")
