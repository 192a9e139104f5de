import os
import time

import torch
from torch.nn import functional as F

from drafts import drawdown
from loom import Guildmaster, weaver

NOISE, WIDTH, BATCH = 48, 32, 32
STEPS = int(os.environ.get("PLANTED_STEPS", 400))


def guild_step(guild, loom, optimizer, real):
    with torch.no_grad():
        sham = loom(torch.randn(len(real), NOISE))
    verdict = guild(torch.cat([real, sham]))
    loss = F.relu(1 - verdict[: len(real)]).mean() + F.relu(1 + verdict[len(real) :]).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.detach()


def loom_step(guild, loom, optimizer, n):
    guild.requires_grad_(False)
    loss = -guild(loom(torch.randn(n, NOISE))).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    guild.requires_grad_(True)
    return loss.detach()


def crispness(loom):
    loom.eval()
    with torch.no_grad():
        cloth = loom(torch.randn(64, NOISE))
    loom.train()
    return cloth.abs().mean().item()


def main():
    torch.manual_seed(1804)
    g = torch.Generator().manual_seed(8)
    loom, guild = weaver(NOISE, WIDTH), Guildmaster(WIDTH)
    loom_optimizer = torch.optim.Adam(loom.parameters(), 4e-4, betas=(0.0, 0.9), fused=True)
    guild_optimizer = torch.optim.Adam(guild.parameters(), 5e-5, betas=(0.0, 0.9), fused=True)
    began = time.perf_counter()
    for step in range(1, STEPS + 1):
        judged = guild_step(guild, loom, guild_optimizer, drawdown(BATCH, g))
        wove = loom_step(guild, loom, loom_optimizer, BATCH)
        if step % 100 == 0:
            print(f"{step}: guild {judged.item():.3f}, loom {wove.item():.3f}, crispness {crispness(loom):.3f}", flush=True)
    print(f"{STEPS} steps in {time.perf_counter() - began:.2f} s, loss {judged.item():.5f}")


if __name__ == "__main__":
    main()
