"""Callbacks shared by our projects."""

import time

from lightning.pytorch.callbacks import Callback
from torch import nn
from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import apply_activation_checkpointing


class Lines(Callback):
    """A line every few steps, and the time of the loop."""

    def __init__(self, every: int = 20) -> None:
        self.every, self.began, self.seconds = every, 0.0, 0.0

    def on_train_start(self, trainer, module) -> None:
        self.began = time.perf_counter()

    def on_train_batch_end(self, trainer, module, outputs, batch, index) -> None:
        if trainer.global_step % self.every == 0:
            figures = {name: round(float(value), 4) for name, value in trainer.callback_metrics.items()}
            print(trainer.global_step, figures, flush=True)

    def on_train_end(self, trainer, module) -> None:
        self.seconds = time.perf_counter() - self.began


class Lean(Callback):
    """Room for bigger clouds: blocks of the named types keep only what goes in."""

    def __init__(self, *types: type[nn.Module]) -> None:
        self.types = types

    def setup(self, trainer, module, stage: str) -> None:
        if stage == "fit":
            apply_activation_checkpointing(module, check_fn=lambda part: isinstance(part, self.types))


class GradientWatch(Callback):
    """The norm of each stage's gradient, now and then."""

    def __init__(self, every: int = 50) -> None:
        self.every = every

    def on_before_optimizer_step(self, trainer, module, optimizer) -> None:
        if trainer.global_step % self.every:
            return
        for name, part in module.named_children():
            norms = [p.grad.norm() for p in part.parameters() if p.grad is not None]
            if norms:
                module.log(f"norm/{name}", sum(n**2 for n in norms) ** 0.5)
