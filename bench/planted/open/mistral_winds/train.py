"""Denoising diffusion over wind profiles."""

import time

import torch

from denoiser import Denoiser, Schedule
from options import parse
from steady import build, warm
from winds import Draw, profiles


def main():
    options = parse()
    torch.manual_seed(options.seed)
    data = profiles(options.profiles, options.levels, options.seed)
    model = Denoiser(data.shape[1], options.width, options.blocks)
    schedule = Schedule(options.noise_steps)
    optimizer = build(model, options)
    rate = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda s: warm(s, options.warmup, 20_000))
    generator = torch.Generator().manual_seed(options.seed)
    began, value, step = time.time(), float("nan"), 0
    for clean in Draw(data, options.batch, options.seed):
        t = torch.randint(options.noise_steps, (len(clean),), generator=generator)
        noise = torch.randn(clean.shape, generator=generator)
        loss = (model(schedule.spoil(clean, t, noise), t) - noise).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        rate.step()
        value = loss.item()
        step += 1
        if step % 25 == 0:
            print(f"step {step} loss {value:.4f} rate {rate.get_last_lr()[0]:.2e}", flush=True)
        if step % options.sample_every == 0:
            drawn = schedule.sample(model, 16, data.shape[1])
            print(f"step {step} spread of samples {drawn.std():.3f}", flush=True)
        if step >= options.steps:
            break
    print(f"{step} steps in {time.time() - began:.3f}s, loss {value:.6f}")


if __name__ == "__main__":
    main()
