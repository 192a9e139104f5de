"""A marbler learns from what a stationer says (hinge GAN)."""

import os
import time

import torch
from torch.nn.functional import relu

from pair import Marbler, Stationer
from vat import sheets

BATCH, NOISE, WIDTH = 32, 48, 36
STEPS = int(os.environ.get("PLANTED_STEPS", 320))


def teach_stationer(stationer, opt, real, fake):
    loss = relu(1 - stationer(real)).mean() + relu(1 + stationer(fake)).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    return loss.detach()


def teach_marbler(marbler, stationer, opt, z):
    stationer.requires_grad_(False)
    loss = -stationer(marbler(z)).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    stationer.requires_grad_(True)
    return loss.detach()


def main():
    torch.manual_seed(64)
    paper = sheets(1500, 63)
    marbler, stationer = Marbler(NOISE, WIDTH), Stationer(WIDTH)
    opt_m = torch.optim.Adam(marbler.parameters(), 2e-4, betas=(0.5, 0.99), fused=True)
    opt_s = torch.optim.Adam(stationer.parameters(), 2e-4, betas=(0.5, 0.99), fused=True)
    began = time.perf_counter()
    for step in range(1, STEPS + 1):
        real = paper[torch.randint(0, len(paper), (BATCH,))]
        with torch.no_grad():
            fake = marbler(marbler.noise_for(BATCH))
        said = teach_stationer(stationer, opt_s, real, fake)
        made = teach_marbler(marbler, stationer, opt_m, marbler.noise_for(BATCH))
        if step % 50 == 0:
            print(f"sheet {step}: stationer {said:.3f}, marbler {made:.3f}", flush=True)
    print(f"{STEPS} steps in {time.perf_counter() - began:.2f} s, loss {said + made:.5f}")


if __name__ == "__main__":
    main()
