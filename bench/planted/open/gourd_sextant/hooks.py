"""What happens around the steps. A hook has any of on_epoch(model, epoch) and on_step(model, step)."""

import os

import torch


class Hook:
    def on_epoch(self, model, epoch):
        pass

    def on_step(self, model, step):
        pass


class Clock(Hook):
    """Tells the model how far the firing is."""

    def on_epoch(self, model, epoch):
        if os.environ.get("PLANTED_FIX") == "1":
            model.epoch = torch.tensor(float(epoch))
        else:
            model.epoch = epoch


class Average(Hook):
    """A slow copy of the weights, for the tile catalogue."""

    def __init__(self, model, keep):
        self.keep = keep
        self.live = list(model.parameters())
        self.slow = [p.detach().clone() for p in self.live]

    def on_step(self, model, step):
        if step % 5 == 0:
            torch._foreach_lerp_(self.slow, [p.detach() for p in self.live], 1 - self.keep**5)


class Report(Hook):
    def __init__(self, every):
        self.every, self.sum, self.count = every, torch.zeros(()), 0

    def add(self, loss):
        self.sum += loss
        self.count += 1

    def on_epoch(self, model, epoch):
        if epoch and epoch % self.every == 0:
            print(f"epoch {epoch}: loss {self.sum.item() / self.count:.4f}", flush=True)
            self.sum.zero_()
            self.count = 0
