import os
import time
import tomllib

import numpy as np
import torch
from torch.nn.functional import smooth_l1_loss

from cells import build
from network import AgingNet


class Fitter:
    def __init__(self, settings):
        self.plan = settings["fit"]
        torch.manual_seed(self.plan["seed"])
        self.past, self.future = build(settings["cells"], np.random.default_rng(self.plan["seed"]))
        net = AgingNet(self.past.shape[1], self.future.shape[1], **settings["network"])
        self.net = net.to(self.past.dtype)
        self.optimizer = torch.optim.Adam(self.net.parameters(), lr=self.plan["lr"])
        self.order = torch.Generator().manual_seed(self.plan["seed"] + 1)

    def update(self):
        rows = torch.randint(0, len(self.past), (self.plan["batch"],), generator=self.order)
        loss = smooth_l1_loss(self.net(self.past[rows]), self.future[rows])
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()

    def run(self, updates):
        start = time.time()
        for number in range(1, updates + 1):
            loss = self.update()
            if number % self.plan["report"] == 0:
                print(f"update {number}: smooth l1 {loss:.5f}")
        print(f"{updates} steps in {time.time() - start:.2f}s, loss {loss:.6f}")


if __name__ == "__main__":
    torch.set_num_threads(1)
    with open("settings.toml", "rb") as f:
        settings = tomllib.load(f)
    Fitter(settings).run(int(os.environ.get("PLANTED_STEPS", settings["fit"]["updates"])))
