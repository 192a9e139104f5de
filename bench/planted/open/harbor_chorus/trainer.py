"""A trainer that knows nothing but its hooks."""

import time
from itertools import islice
from pathlib import Path

import torch
from registry import register
from torch import nn
from torch.utils.data import DataLoader


class Hook:
    def before_run(self, trainer: "Trainer") -> None: ...

    def after_backward(self, trainer: "Trainer") -> None: ...

    def after_step(self, trainer: "Trainer") -> None: ...

    def after_run(self, trainer: "Trainer") -> None: ...


@register("hook", "lines")
class Lines(Hook):
    def __init__(self, every: int) -> None:
        self.every, self.losses = every, []

    def after_step(self, trainer):
        self.losses.append(trainer.loss)
        if trainer.step % self.every == 0:
            mean = torch.stack(self.losses).mean().item()
            print(f"{trainer.step} loss {mean:.4f} lr {trainer.optimizer.param_groups[0]['lr']:.2e}", flush=True)
            self.losses.clear()


@register("hook", "clip")
class Clip(Hook):
    def __init__(self, norm: float) -> None:
        self.norm = norm

    def after_backward(self, trainer):
        nn.utils.clip_grad_norm_(trainer.model.parameters(), self.norm)


@register("hook", "decay")
class Decay(Hook):
    """A straight line down to a floor."""

    def __init__(self, floor: float) -> None:
        self.floor = floor

    def before_run(self, trainer):
        self.first = [group["lr"] for group in trainer.optimizer.param_groups]

    def after_step(self, trainer):
        share = max(1 - trainer.step / trainer.steps, self.floor)
        for group, first in zip(trainer.optimizer.param_groups, self.first, strict=True):
            group["lr"] = share * first


@register("hook", "keep")
class Keep(Hook):
    def __init__(self, every: int) -> None:
        self.every = every

    def after_step(self, trainer):
        if trainer.step % self.every == 0:
            torch.save({"model": trainer.model.state_dict(), "step": trainer.step}, trainer.folder / "last.pt")


@register("hook", "listen")
class Listen(Hook):
    """The share of sounds that are named rightly, on a few batches."""

    def __init__(self, every: int, batches: int) -> None:
        self.every, self.batches = every, batches

    @torch.no_grad()
    def after_step(self, trainer):
        if trainer.step % self.every:
            return
        trainer.model.eval()
        right = [(trainer.model(sound).argmax(dim=-1) == ship).float().mean() for sound, ship in islice(trainer.held_out, self.batches)]
        trainer.model.train()
        print(f"{trainer.step} right {torch.stack(right).mean():.3f}", flush=True)


class Trainer:
    def __init__(
        self, model: nn.Module, optimizer: torch.optim.Optimizer, loader: DataLoader, held_out: DataLoader, hooks: list[Hook],
        steps: int, folder: Path,
    ) -> None:  # fmt: skip
        self.model, self.optimizer, self.loader, self.held_out = model, optimizer, loader, held_out
        self.hooks, self.steps, self.folder = hooks, steps, folder
        self.step, self.loss, self.seconds = 0, torch.tensor(float("nan")), 0.0

    def call(self, moment: str) -> None:
        for hook in self.hooks:
            getattr(hook, moment)(self)

    def batches(self):
        while True:
            yield from self.loader

    def run(self) -> None:
        self.call("before_run")
        began = time.perf_counter()
        for sound, ship in islice(self.batches(), self.steps):
            self.step += 1
            loss = nn.functional.cross_entropy(self.model(sound), ship)
            self.optimizer.zero_grad()
            loss.backward()
            self.call("after_backward")
            self.optimizer.step()
            self.loss = loss.detach()
            self.call("after_step")
        self.seconds = time.perf_counter() - began
        self.call("after_run")
