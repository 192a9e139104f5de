import copy
import json
import os
import tempfile
import time

import torch
from torch.nn.functional import softplus

from keeper import Keeper
from nets import curator, forger
from quilts import sew


class Studio:
    def __init__(self, cfg):
        torch.manual_seed(cfg["seed"])
        self.cfg, self.done, self.hooks = cfg, 0, []
        self.generator = torch.Generator().manual_seed(cfg["seed"] + 1)
        self.real = sew(2000, cfg["patch"], self.generator)
        self.forger = forger(cfg["noise"], cfg["hidden"], cfg["patch"] ** 2)
        self.curator = curator(cfg["hidden"], cfg["patch"] ** 2)
        self.average = copy.deepcopy(self.forger).requires_grad_(False)
        self.opt_f = torch.optim.Adam(self.forger.parameters(), lr=cfg["lr"], betas=(0.5, 0.99))
        self.opt_c = torch.optim.Adam(self.curator.parameters(), lr=cfg["lr"], betas=(0.5, 0.99))

    def state(self):
        parts = ("forger", "curator", "average", "opt_f", "opt_c")
        return {"done": self.done, "generator": self.generator.get_state(), **{p: getattr(self, p).state_dict() for p in parts}}

    def noise(self):
        return torch.randn(self.cfg["batch"], self.cfg["noise"], generator=self.generator)

    def step(self):
        rows = torch.randint(0, len(self.real), (self.cfg["batch"],), generator=self.generator)
        fake = self.forger(self.noise())
        judged = softplus(-self.curator(self.real[rows])).mean() + softplus(self.curator(fake.detach())).mean()
        self.opt_c.zero_grad()
        judged.backward()
        self.opt_c.step()
        fooled = softplus(-self.curator(fake)).mean()
        self.opt_f.zero_grad()
        fooled.backward()
        self.opt_f.step()
        with torch.no_grad():
            torch._foreach_lerp_(list(self.average.parameters()), list(self.forger.parameters()), 1 - self.cfg["ema"])
        for hook in self.hooks:
            hook(self)
        self.done += 1
        return judged.item(), fooled.item()


def main():
    torch.set_num_threads(1)
    with open("forger.json") as f:
        cfg = json.load(f)
    steps = int(os.environ.get("PLANTED_STEPS", cfg["steps"]))
    studio = Studio(cfg)
    with tempfile.TemporaryDirectory() as folder:
        studio.hooks.append(Keeper(folder, cfg["keep"]).after_step)
        start = time.time()
        for _ in range(steps):
            judged, fooled = studio.step()
            if studio.done % 50 == 0:
                print(f"{studio.done}: curator {judged:.4f} forger {fooled:.4f}")
        took = time.time() - start
    print(f"{steps} steps in {took:.2f}s, loss {judged + fooled:.6f}")


if __name__ == "__main__":
    main()
