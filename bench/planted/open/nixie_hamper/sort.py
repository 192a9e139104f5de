import configparser
import os
import time
from pathlib import Path

import torch

from mailbag import Mailbag
from reader import Sorter


class Trainer:
    def __init__(self, conf):
        self.conf = conf["training"]
        self.bag = Mailbag(conf["mail"])
        self.net = Sorter(conf["reader"], conf["mail"].getint("lines"), self.bag.offices)
        self.opt = torch.optim.AdamW(self.net.parameters(), self.conf.getfloat("rate"))
        self.steps = int(os.environ.get("PLANTED_STEPS", self.conf["steps"]))

    def step(self):
        envelopes, office = self.bag.draw(self.conf.getint("batch"))
        guess = self.net(envelopes)
        loss = torch.nn.functional.cross_entropy(guess, office)
        self.opt.zero_grad(set_to_none=True)
        loss.backward()
        self.opt.step()
        return loss.detach(), guess.detach(), office

    def fit(self):
        began = time.perf_counter()
        for n in range(1, self.steps + 1):
            loss, guess, office = self.step()
            if n % self.conf.getint("report") == 0:
                print(f"{n}: loss {loss:.4f}, sorted right {(guess.argmax(-1) == office).float().mean():.3f}", flush=True)
        print(f"{self.steps} steps in {time.perf_counter() - began:.2f} s, loss {loss:.5f}")


if __name__ == "__main__":
    conf = configparser.ConfigParser()
    conf.read(Path(__file__).with_name("office.ini"))
    torch.manual_seed(conf["mail"].getint("seed"))
    Trainer(conf).fit()
