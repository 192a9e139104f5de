import json
import os
import time
from pathlib import Path
from types import SimpleNamespace

import torch

from classer import Classer, pairing_loss
from fleeces import Clip
from yard import ShowRing, Tally

conf = SimpleNamespace(**json.loads(Path("grade.json").read_text()))


class Shed:
    def __init__(self, hooks):
        self.hooks, self.step, self.loss = hooks, 0, None
        self.clip = Clip(conf.fleeces, conf.seed)
        self.net = Classer(conf.width, conf.mark)
        self.opt = torch.optim.Adam(self.net.parameters(), conf.rate, fused=True)

    def one_round(self, steps):
        for rows in torch.randperm(self.clip.count, generator=self.clip.g).split(conf.batch):
            if self.step == steps:
                return
            one, other = self.net(self.clip.staples(rows)), self.net(self.clip.staples(rows))
            self.loss = pairing_loss(one, other, conf.heat)
            self.opt.zero_grad()
            self.loss.backward()
            self.opt.step()
            self.step += 1
            for hook in self.hooks:
                hook.on_step(self)
        for hook in self.hooks:
            hook.on_round(self)

    def work(self, steps):
        while self.step < steps:
            self.one_round(steps)


torch.manual_seed(conf.seed)
home = Clip(conf.kept_home, conf.seed + 1)
shed = Shed([Tally(conf.tally), ShowRing(home, 300, conf.seed + 2)])
steps = int(os.environ.get("PLANTED_STEPS", conf.steps))
began = time.perf_counter()
shed.work(steps)
print(f"{steps} steps in {time.perf_counter() - began:.2f} s, loss {shed.loss.item():.5f}")
