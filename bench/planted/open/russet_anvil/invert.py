"""Full-waveform inversion of a hammer survey over a mound, from low to high frequencies."""

import configparser
import os
import time
from pathlib import Path

import torch
import torch.nn.functional as F

from mound import ricker, sponge, true_speed
from wave import shoot

ini = configparser.ConfigParser()
ini.read(Path(__file__).with_name("survey.ini"))
ground, survey, inversion = ini["ground"], ini["survey"], ini["inversion"]
torch.manual_seed(31)
torch.set_num_threads(1)
torch.set_flush_denormal(True)

rows, columns = ground.getint("rows"), ground.getint("columns")
slow, fast = ground.getfloat("slowest"), ground.getfloat("fastest")
shots, ticks, leg = survey.getint("shots"), survey.getint("ticks"), survey.getint("leg")
bands = [float(b) for b in survey["bands"].split()]
per_band, smooth = inversion.getint("steps_per_band"), inversion.getfloat("smooth")

damp = sponge(rows, columns)
source = torch.zeros(shots, 1, rows, columns)
source[torch.arange(shots), 0, 2, torch.linspace(4, columns - 5, shots).long()] = 1.0
coarse = torch.zeros(1, 1, inversion.getint("coarse"), inversion.getint("coarse"), requires_grad=True)


def speed_of(coarse):
    fine = F.interpolate(coarse, (rows, columns), mode="bilinear", align_corners=True)
    return slow + (fast - slow) * torch.sigmoid(fine - 0.4)


def roughness(field):
    return field.diff(dim=-1).square().mean() + field.diff(dim=-2).square().mean()


optimizer = torch.optim.Adam([coarse], inversion.getfloat("rate"), (0.8, 0.98))
steps = int(os.environ.get("PLANTED_STEPS", 420))
began, done = time.perf_counter(), 0
while done < steps:
    band = bands[min(done // per_band, len(bands) - 1)]
    pulse = ricker(ticks, band)
    with torch.no_grad():
        field_data = shoot(true_speed(rows, columns, slow, fast), damp, source, pulse, leg)
        field_data += 0.01 * field_data.std() * torch.randn_like(field_data)
        scale = field_data.square().mean()

    def misfit():
        optimizer.zero_grad()
        heard = shoot(speed_of(coarse), damp, source, pulse, leg)
        loss = (heard - field_data).square().mean() / scale + smooth * roughness(coarse)
        loss.backward()
        return loss

    for _ in range(min(per_band, steps - done)):
        loss = optimizer.step(misfit)
        done += 1
        if done % 40 == 0:
            print(f"{done}: band {band}, misfit {loss.item():.5f}", flush=True)
print(f"{steps} steps in {time.perf_counter() - began:.3f} s, loss {loss.item():.5f}")
