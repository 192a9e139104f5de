"""Wasserstein GAN with weight clipping on synthetic snowflakes. Settings in config.toml."""

import os
import sys
import time
import tomllib
from pathlib import Path

import torch

from data import snowflakes
from networks import Critic, Generator, clip_weights, init_weights


def load_config():
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).with_name("config.toml")
    with open(path, "rb") as f:
        cfg = tomllib.load(f)
    cfg["train"]["iterations"] = int(os.environ.get("PLANTED_STEPS", cfg["train"]["iterations"]))
    return cfg


def critic_step(gen, critic, opt, real, z, clip):
    fake = gen(z)
    if os.environ.get("PLANTED_FIX") == "1":
        fake = fake.detach()
    opt.zero_grad()
    loss = critic(fake).mean() - critic(real).mean()
    loss.backward()
    opt.step()
    clip_weights(critic, clip)
    return loss.item()


def generator_step(gen, critic, opt, z):
    critic.requires_grad_(False)
    opt.zero_grad()
    loss = -critic(gen(z)).mean()
    loss.backward()
    opt.step()
    critic.requires_grad_(True)
    return loss.item()


def main():
    cfg = load_config()
    torch.manual_seed(cfg["seed"])
    t, m = cfg["train"], cfg["model"]

    images = snowflakes(cfg["data"]["count"], cfg["data"]["size"], cfg["seed"])
    gen = Generator(m["latent"], m["gen_width"])
    critic = Critic(m["critic_width"])
    gen.apply(init_weights)
    critic.apply(init_weights)
    opt_g = torch.optim.RMSprop(gen.parameters(), lr=t["lr_g"])
    opt_c = torch.optim.RMSprop(critic.parameters(), lr=t["lr_c"])
    print(f"generator {sum(p.numel() for p in gen.parameters()):,} parameters, critic {sum(p.numel() for p in critic.parameters()):,}")

    loss_c = loss_g = float("nan")
    start = time.perf_counter()
    for it in range(1, t["iterations"] + 1):
        real = images[torch.randint(len(images), (t["batch"],))]
        z = torch.randn(t["batch"], m["latent"])
        loss_c = critic_step(gen, critic, opt_c, real, z, t["clip"])
        if it % t["critic_iters"] == 0:
            loss_g = generator_step(gen, critic, opt_g, torch.randn(t["batch"], m["latent"]))
        if it % t["log_every"] == 0:
            print(f"iteration {it:4d}  critic {loss_c:+.5f}  generator {loss_g:+.5f}")
    wall = time.perf_counter() - start

    gen.eval()
    with torch.no_grad():
        sample = gen(torch.randn(64, m["latent"]))
    print(f"sample mean {sample.mean():+.3f} std {sample.std():.3f} (data {images.mean():+.3f}, {images.std():.3f})")
    print(f"{t['iterations']} steps in {wall:.1f} s, loss {loss_c:.6f}")


if __name__ == "__main__":
    main()
