"""A trainer that tells its callbacks what happens."""

import time

import torch
from torch import nn
from torch.utils.data import DataLoader


class Callback:
    def on_start(self, trainer: "Trainer") -> None: ...

    def on_step(self, trainer: "Trainer") -> None: ...

    def on_stop(self, trainer: "Trainer") -> None: ...


class Report(Callback):
    def __init__(self, every: int) -> None:
        self.every = every

    def on_start(self, trainer: "Trainer") -> None:
        self.began = time.perf_counter()

    def on_step(self, trainer: "Trainer") -> None:
        if trainer.step % self.every == 0:
            print(f"step {trainer.step} loss {trainer.loss.item():.4f}", flush=True)

    def on_stop(self, trainer: "Trainer") -> None:
        print(f"{trainer.step} steps in {time.perf_counter() - self.began:.2f} s, loss {trainer.loss.item():.6f}")


class CosineRate(Callback):
    def on_start(self, trainer: "Trainer") -> None:
        self.schedule = torch.optim.lr_scheduler.CosineAnnealingLR(trainer.optimizer, trainer.steps)

    def on_step(self, trainer: "Trainer") -> None:
        self.schedule.step()


class Trainer:
    def __init__(self, model: nn.Module, optimizer: torch.optim.Optimizer, callbacks: list[Callback]) -> None:
        self.model, self.optimizer, self.callbacks = model, optimizer, callbacks
        self.step, self.steps = 0, 0
        self.loss = torch.tensor(float("nan"))

    def tell(self, moment: str) -> None:
        for callback in self.callbacks:
            getattr(callback, moment)(self)

    def epochs(self, loader: DataLoader):
        while True:
            yield from loader

    def fit(self, loader: DataLoader, steps: int) -> None:
        self.steps = steps
        self.tell("on_start")
        for batch in self.epochs(loader):
            self.step += 1
            loss = nn.functional.mse_loss(self.model(batch), batch.energy)
            self.optimizer.zero_grad(set_to_none=True)
            loss.backward()
            self.optimizer.step()
            self.loss = loss.detach()
            self.tell("on_step")
            if self.step == steps:
                break
        self.tell("on_stop")
