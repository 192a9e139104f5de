"""Two nets freeze and judge snow crystals: python -m flake."""

import configparser
import os
import time
from pathlib import Path

import torch
from torch.nn import functional as F

from . import crystals, nets
from .diary import Chronicle, open_diary


def settings():
    ini = configparser.ConfigParser()
    ini.read(Path(__file__).with_name("flake.ini"))
    return ini


def judge(lens, true, made):
    return F.softplus(-lens(true)).mean() + F.softplus(lens(made)).mean()


def main():
    ini = settings()
    run, size = ini["run"], ini["nets"]
    torch.manual_seed(run.getint("seed"))
    open_diary(ini.getboolean("diary", "verbose"))
    cloud = crystals.Cloud(run.getint("crystals"), run.getint("seed"))
    noise, batch = size.getint("noise"), run.getint("batch")
    freezer, lens = nets.make(crystals.POINTS, noise, size.getint("width"))
    warm = torch.optim.Adam(freezer.parameters(), run.getfloat("lr"), betas=(0.5, 0.99))
    cold = torch.optim.Adam(lens.parameters(), run.getfloat("lr"), betas=(0.5, 0.99))
    chronicle = Chronicle(ini.getint("diary", "every"), freezer=freezer, lens=lens)

    steps = int(os.environ.get("PLANTED_STEPS", run.getint("steps")))
    began = time.perf_counter()
    for step in range(1, steps + 1):
        true, made = cloud.fall(batch), freezer(torch.randn(batch, noise))
        lens_loss = judge(lens, true, made.detach())
        cold.zero_grad(set_to_none=True)
        lens_loss.backward()
        cold.step()

        lens.requires_grad_(False)
        loss = F.softplus(-lens(made)).mean()
        warm.zero_grad(set_to_none=True)
        loss.backward()
        warm.step()
        lens.requires_grad_(True)
        chronicle.note(step, freezer=loss.detach(), lens=lens_loss.detach())
    print(f"{steps} steps in {time.perf_counter() - began:.3f} s, loss {loss.item():.6f}")


main()
