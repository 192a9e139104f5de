"""Callbacks: how fast the training goes, and a line now and then."""

import os
import time
from collections import deque

from lightning.pytorch.callbacks import Callback
from torch.utils.flop_counter import FlopCounterMode

FIXED = os.environ.get("PLANTED_FIX") == "1"


class Clock(Callback):
    def __init__(self) -> None:
        self.began = self.seconds = 0.0

    def on_train_start(self, trainer, module) -> None:
        self.began = time.perf_counter()

    def on_train_end(self, trainer, module) -> None:
        self.seconds = time.perf_counter() - self.began


class Throughput(Callback):
    """Clips and gigaflops a second over the last steps, as figures beside the loss."""

    def __init__(self, window: int = 20) -> None:
        self.ends: deque[tuple[float, int, int]] = deque(maxlen=window)
        self.flops: int | None = None
        self.counter: FlopCounterMode | None = None

    def on_train_batch_start(self, trainer, module, batch, index) -> None:
        if FIXED:
            if self.flops is not None:
                return
        self.counter = FlopCounterMode(display=False)
        self.counter.__enter__()

    def on_train_batch_end(self, trainer, module, outputs, batch, index) -> None:
        if self.counter is not None:
            self.counter.__exit__(None, None, None)
            self.flops, self.counter = self.counter.get_total_flops(), None
        self.ends.append((time.monotonic(), len(batch[0]), self.flops))
        if len(self.ends) > 1:
            seconds = self.ends[-1][0] - self.ends[0][0]
            later = list(self.ends)[1:]
            module.log("clips_per_s", sum(clips for _, clips, _ in later) / seconds)
            module.log("gflops", sum(flops for _, _, flops in later) / seconds / 1e9)


class Lines(Callback):
    def __init__(self, every: int) -> None:
        self.every = every

    def on_train_batch_end(self, trainer, module, outputs, batch, index) -> None:
        if trainer.global_step % self.every == 0:
            figures = " ".join(f"{name} {float(value):.4g}" for name, value in sorted(trainer.callback_metrics.items()))
            print(f"{trainer.global_step} {figures}", flush=True)
