import json
import os
import time
from pathlib import Path

import torch
from torch.nn import functional as F

from braid import Closure
from meter import Meter
from reader import Reader


class Trainer:
    def __init__(self, config):
        torch.manual_seed(config["seed"])
        self.config = config
        strands, crossings = config["strands"], config["crossings"]
        self.data = Closure(config["words"], strands, crossings, config["seed"])
        self.model = Reader(2 * (strands - 1), crossings, strands, **config["model"])
        self.optimizer = torch.optim.AdamW(self.model.parameters(), config["lr"])
        self.warmup = torch.optim.lr_scheduler.LinearLR(self.optimizer, 0.1, total_iters=config["warmup"])
        self.gen = torch.Generator().manual_seed(config["seed"])
        self.meter = Meter(config["peak_gflops"])

    def step(self):
        tokens, labels = self.data.draw(self.config["batch"], self.gen)
        self.optimizer.zero_grad(set_to_none=True)
        with self.meter.lap():
            loss = F.cross_entropy(self.model(tokens), labels)
            loss.backward()
        self.optimizer.step()
        self.warmup.step()
        return loss.detach()

    def fit(self, steps):
        began = time.perf_counter()
        for number in range(1, steps + 1):
            loss = self.step()
            if number % self.config["report"] == 0:
                print(f"[{number}] loss {loss.item():.4f}, {self.meter.summary()}", flush=True)
        print(f"{steps} steps in {time.perf_counter() - began:.3f} s, loss {loss.item():.6f}")


if __name__ == "__main__":
    config = json.loads(Path(__file__).with_name("config.json").read_text())
    Trainer(config).fit(int(os.environ.get("PLANTED_STEPS", config["steps"])))
