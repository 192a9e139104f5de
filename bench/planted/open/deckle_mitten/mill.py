import json
import os
import time
from pathlib import Path

import torch

from hooks import KNOWN
from sheets import Archive
from twins import Jury, Twins


class Run:
    def __init__(self, config):
        torch.manual_seed(1282)
        self.generator = torch.Generator().manual_seed(1390)
        both = Archive(config["sheets"] + config["held"], config["wires"], self.generator)
        held = Archive.__new__(Archive)
        held.light, held.rub = both.light[config["sheets"] :], both.rub[config["sheets"] :]
        both.light, both.rub = both.light[: config["sheets"]], both.rub[: config["sheets"]]
        self.archive, self.jury = both, Jury(held)
        self.twins = Twins(config["wires"], config["width"], config["dim"], config["temperature"])
        self.rate, self.batch, self.beat = config["rate"], config["batch"], config["beat"]
        self.optimizer = torch.optim.SGD(self.twins.parameters(), self.rate, config["momentum"], nesterov=True)
        self.best, self.kept, self.last = 0.0, None, None
        self.hooks = [KNOWN[name](self, **settings) for name, settings in config["hooks"].items()]

    def step(self):
        self.optimizer.zero_grad()
        self.last = self.twins.loss(*self.archive.draw(self.batch, self.generator))
        self.last.backward()
        self.optimizer.step()

    def go(self, steps):
        began = time.perf_counter()
        for step in range(1, steps + 1):
            self.step()
            if step % self.beat == 0:
                for hook in self.hooks:
                    hook.on_beat(step)
        print(f"{steps} steps in {time.perf_counter() - began:.3f} s, loss {self.last.item():.6f}")


if __name__ == "__main__":
    Run(json.loads(Path(__file__).with_name("mill.json").read_text())).go(int(os.environ.get("PLANTED_STEPS", 700)))
