"""Embeds the people of 18 parishes so that kin lie near: a network guesses the end of a stroll from its beginning."""

import os
import time

import torch
from torch import nn
from torch.nn import functional as F

from reading_room import ReadingRoom

STROLLS, HOPS, SHADES, DIM, STEPS_A_SITTING = 320, 5, 4096, 64, 8
steps = int(os.environ.get("PLANTED_STEPS", 400))

torch.manual_seed(1837)
room = ReadingRoom()
shade = torch.randint(SHADES, (len(room.people), 3))  # a person is the sum of three of the shades
shades = nn.EmbeddingBag(SHADES, DIM, mode="sum")
nn.init.normal_(shades.weight, std=0.3)
guess = nn.Sequential(
    nn.Linear(HOPS * DIM, 576), nn.SiLU(), nn.Linear(576, 576), nn.SiLU(), nn.Linear(576, 576), nn.SiLU(), nn.Linear(576, DIM)
)
optimizer = torch.optim.Adagrad([*shades.parameters(), *guess.parameters()], lr=0.02)


def embed(numbers):
    return shades(shade[numbers.flatten()]).view(*numbers.shape, DIM)


def update(paths):
    who = embed(paths)
    end = guess(who[:, :-1].flatten(1))
    near = end @ who[:, -1].T / DIM**0.5
    same = paths[:, -1][:, None] == paths[:, -1]
    near = near.masked_fill(same & ~torch.eye(len(paths), dtype=torch.bool), -1e4)
    loss = F.cross_entropy(near, torch.arange(len(paths)))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.detach()


began, step = time.perf_counter(), 0
while step < steps:
    with room.sitting():
        for _ in range(min(STEPS_A_SITTING, steps - step)):
            loss = update(room.strolls(STROLLS, HOPS))
            step += 1
    if step % 80 == 0:
        print(f"{step} of {steps}: {loss.item():.4f}", flush=True)
print(f"{steps} steps in {time.perf_counter() - began:.3f} s, loss {loss.item():.6f}")
