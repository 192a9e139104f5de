import os
import time

import torch

FIXED = os.environ.get("PLANTED_FIX") == "1"


class Callback:
    def on_start(self, trainer): ...
    def on_step(self, trainer): ...
    def on_end(self, trainer): ...


class CollapseWatch(Callback):
    """Effective rank of each layer's node representations (exp of the spectrum's entropy)."""

    def __init__(self, layers, every):
        self.layers, self.every = layers, every
        self.rank, self.names, self.handles = {}, {}, []

    def on_start(self, trainer):
        self.trainer = trainer
        for name in self.layers:
            module = trainer.model.get_submodule(name)
            self.names[module] = name
            self.handles.append(module.register_forward_hook(self._look))

    def _look(self, module, inputs, output):
        if FIXED:
            if (self.trainer.step + 1) % self.every:
                return
        nodes = output.detach().flatten(0, -2)
        s = torch.linalg.svdvals(nodes - nodes.mean(0))
        p = s / s.sum()
        self.rank[self.names[module]] = torch.exp(-(p * torch.log(p + 1e-9)).sum())

    def on_step(self, trainer):
        if trainer.step % self.every == 0:
            trainer.logged.update({f"rank/{k}": round(float(v), 1) for k, v in self.rank.items()})

    def on_end(self, trainer):
        for handle in self.handles:
            handle.remove()


class CosineRate(Callback):
    def __init__(self, total):
        self.total = total

    def on_start(self, trainer):
        self.sched = torch.optim.lr_scheduler.CosineAnnealingLR(trainer.opt, self.total)

    def on_step(self, trainer):
        self.sched.step()


class Printer(Callback):
    def __init__(self, every):
        self.every = every

    def on_start(self, trainer):
        self.t0 = time.perf_counter()

    def on_step(self, trainer):
        if trainer.step % self.every == 0:
            extra = "  ".join(f"{k}={v}" for k, v in trainer.logged.items())
            print(f"{trainer.step:4d}  loss={trainer.loss:.4f}  {extra}", flush=True)

    def on_end(self, trainer):
        spent = time.perf_counter() - self.t0
        print(f"{trainer.step} steps in {spent:.2f} s, loss {trainer.loss:.6f}")
