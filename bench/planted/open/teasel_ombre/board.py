"""What hangs in the shearing shed: how the classer does, one line at a time."""

import os

import torch

from classer import called
from fleece import GRADES


class Callback:
    def after_step(self, step, loss):
        pass

    def at_end(self):
        pass


class Warm(Callback):
    def __init__(self, optimizer, rate, over=50):
        self.optimizer, self.rate, self.over = optimizer, rate, over

    def after_step(self, step, loss):
        self.optimizer.param_groups[0]["lr"] = self.rate * min(1.0, (step + 1) / self.over)


class Agreement:
    """Weighted kappa between the network and the human classer."""

    def __init__(self, net, seen, grade):
        self.net, self.seen, self.grade = net, seen, grade
        apart = torch.arange(GRADES, dtype=torch.float32)
        self.cost = (apart[:, None] - apart).square()

    @property
    def kappa(self):
        self.net.eval()
        with torch.inference_mode():
            call = torch.cat([called(self.net(part)) for part in self.seen.split(200)])
        self.net.train()
        table = torch.bincount(self.grade * GRADES + call, minlength=GRADES**2).view(GRADES, GRADES).float()
        chance = table.sum(1, keepdim=True) * table.sum(0) / table.sum()
        return 1 - ((self.cost * table).sum() / (self.cost * chance).sum()).item()


class Board(Callback):
    def __init__(self, agreement, every):
        self.agreement, self.every, self.loss = agreement, every, None
        self.shown = -1.0

    def line(self, step):
        if os.environ.get("PLANTED_FIX") == "1":
            if step % (30 * self.every) == 0:
                self.shown = self.agreement.kappa
            return f"{step:5d}  loss {self.loss:.4f}  kappa {self.shown:.3f}"
        return f"{step:5d}  loss {self.loss:.4f}  kappa {self.agreement.kappa:.3f}"

    def after_step(self, step, loss):
        self.loss = loss.item() if self.loss is None else 0.9 * self.loss + 0.1 * loss.item()
        if step % self.every == 0:
            print(self.line(step), flush=True)
