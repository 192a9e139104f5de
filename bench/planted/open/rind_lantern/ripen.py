"""Heteroscedastic regression of rind traits.  python ripen.py [cellar.ini]"""

import configparser
import os
import sys
import time

import torch
from torch import nn

from cellar import Shelf, age
from footprint import portion


def network(bands, width, depth, traits):
    layers, wide = [], bands
    for _ in range(depth):
        layers += [nn.Linear(wide, width), nn.SiLU()]
        wide = width
    return nn.Sequential(*layers, nn.Linear(wide, 2 * traits))


def surprise(out, answer):
    mean, spread = out.chunk(2, dim=1)
    spread = spread.clamp(-4, 4)
    return 0.5 * ((answer - mean).square() * torch.exp(-spread) + spread).mean(1).sum()


def update(net, optimizer, spectra, answer, rows):
    optimizer.zero_grad()
    total = torch.zeros(())
    for x, y in zip(spectra.split(rows), answer.split(rows)):
        part = surprise(net(x), y) / len(spectra)
        part.backward()
        total += part.detach()
    nn.utils.clip_grad_norm_(net.parameters(), 5.0)
    optimizer.step()
    return total


def main(path):
    ini = configparser.ConfigParser()
    ini.read(path)
    cellar, shape, run = ini["cellar"], ini["net"], ini["run"]
    torch.manual_seed(cellar.getint("seed"))
    spectra, answer = age(cellar.getint("wheels"), cellar.getint("bands"), shape.getint("traits"), cellar.getint("seed"))
    net = network(cellar.getint("bands"), shape.getint("width"), shape.getint("depth"), shape.getint("traits"))
    optimizer = torch.optim.AdamW(net.parameters(), run.getfloat("rate"), weight_decay=run.getfloat("decay"), fused=True)
    rows = portion(net, run.getfloat("ceiling_mb"), run.getint("update_rows"))
    shelf = iter(Shelf(spectra, answer, run.getint("update_rows"), cellar.getint("seed") + 1))
    steps = int(os.environ.get("PLANTED_STEPS", 400))
    began = time.perf_counter()
    for step in range(1, steps + 1):
        loss = update(net, optimizer, *next(shelf), rows)
        if step % run.getint("say_every") == 0:
            print(f"update {step}  surprise {loss.item():.4f}", flush=True)
    print(f"{steps} steps in {time.perf_counter() - began:.3f} s, loss {loss.item():.5f}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "cellar.ini")
