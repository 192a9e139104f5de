"""Message passing over the shelves; foretells how much each wheel will weigh less."""

import configparser
import os
import time
from pathlib import Path

import torch
from torch import nn

import diary
from cave import Cave


class Breath(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.say, self.keep = nn.Linear(2 * width, width), nn.Linear(2 * width, width)

    def forward(self, h, cave):
        told = torch.relu(self.say(torch.cat([h[cave.source], h[cave.target]], 1)))
        heard = torch.zeros_like(h).index_add(0, cave.target, told) / cave.count
        return h + torch.relu(self.keep(torch.cat([h, heard], 1)))


class Cellar(nn.Module):
    def __init__(self, width, hops):
        super().__init__()
        self.enter = nn.Linear(6, width)
        self.hops = nn.ModuleList(Breath(width) for _ in range(hops))
        self.leave = nn.Linear(width, 1)

    def forward(self, x, cave):
        h = self.enter(x)
        for hop in self.hops:
            h = hop(h, cave)
        return self.leave(h).squeeze(1)


conf = configparser.ConfigParser()
conf.read(Path(__file__).with_name("cave.ini"))
torch.manual_seed(90)
cave = Cave(**{key: int(value) for key, value in conf["cave"].items()})
book = diary.opened(conf["diary"])
model = Cellar(conf["net"].getint("width"), conf["net"].getint("hops"))
optimizer = torch.optim.Adamax(model.parameters(), lr=conf["net"].getfloat("rate"))
steps, tell = int(os.environ.get("PLANTED_STEPS", conf["run"]["steps"])), conf["run"].getint("tell")
began = time.perf_counter()
for step in range(1, steps + 1):
    evening, came = cave.night()
    told = model(evening, cave)
    loss = nn.functional.mse_loss(told, came)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    diary.morning(book, step, told.detach(), came)
    if step % tell == 0:
        book.info("night %d loss %.5f", step, loss.item())
        print(f"night {step}: {loss.item():.5f}", flush=True)
print(f"{steps} steps in {time.perf_counter() - began:.3f} s, loss {loss.item():.5f}")
