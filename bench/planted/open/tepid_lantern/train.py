import os
import time

import torch
from torch import nn

from kiln import PROBES, Forecast, Windows, fire
from notebook import open_notebook
from settings import Settings


class Campaign:
    def __init__(self, settings):
        self.s = settings
        torch.manual_seed(settings.seed)
        self.windows = Windows(fire(settings), settings)
        self.net = Forecast(settings)
        self.opt = torch.optim.AdamW(self.net.parameters(), settings.lr, weight_decay=1e-3)
        self.log = open_notebook(settings)

    def row(self, step, loss, miss, norm):
        off, bias = torch.stack([miss.abs().mean(0), miss.mean(0)]).tolist()
        return {
            "step": step,
            "loss": loss,
            "norm": norm,
            "off": dict(zip(PROBES, off)),
            "bias": dict(zip(PROBES, bias)),
        }

    def step(self, number):
        past, goal = self.windows.draw()
        guess = self.net(past)
        loss = nn.functional.smooth_l1_loss(guess, goal, beta=0.05)
        self.opt.zero_grad()
        loss.backward()
        norm = nn.utils.clip_grad_norm_(self.net.parameters(), 1.0)
        self.opt.step()
        value = loss.item()
        with torch.no_grad():
            row = self.row(number, value, guess - goal, norm.item())
        self.log.info("%5d  loss %.6f", number, value, extra={"row": row})
        return value

    def run(self, steps):
        began = time.perf_counter()
        for number in range(1, steps + 1):
            loss = self.step(number)
        return loss, time.perf_counter() - began


if __name__ == "__main__":
    steps = int(os.environ.get("PLANTED_STEPS", 1300))
    loss, seconds = Campaign(Settings()).run(steps)
    print(f"{steps} steps in {seconds:.3f} s, loss {loss:.6f}")
