"""Denoising diffusion on 16x16 glyphs."""

import math
import os
import time
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn


@dataclass
class Config:
    image_size: int = 16
    channels: int = 16
    time_dim: int = 32
    timesteps: int = 200
    num_images: int = 2048
    steps: int = 450
    batch_size: int = 32
    micro_batch_size: int = 2
    lr: float = 1e-3
    grad_clip: float = 1.0
    log_every: int = 50
    seed: int = 21


def make_glyphs(cfg):
    g = torch.Generator().manual_seed(cfg.seed)
    s = cfg.image_size
    axis = torch.arange(s).float()
    cx, cy = torch.randint(4, s - 4, (2, cfg.num_images, 1, 1), generator=g).float()
    r = torch.randint(2, 5, (cfg.num_images, 1, 1), generator=g).float()
    dx, dy = (axis.view(1, 1, s) - cx).abs(), (axis.view(1, s, 1) - cy).abs()
    disc = (dx**2 + dy**2 <= r**2).float()
    square = (torch.maximum(dx, dy) <= r).float()
    cross = ((torch.minimum(dx, dy) <= 1) & (torch.maximum(dx, dy) <= r)).float()
    kind = torch.randint(3, (cfg.num_images, 1, 1), generator=g)
    img = torch.where(kind == 0, disc, torch.where(kind == 1, square, cross))
    return img.unsqueeze(1) * 2 - 1


class TimeEmbedding(nn.Module):
    def __init__(self, dim):
        super().__init__()
        half = dim // 2
        self.register_buffer("freqs", torch.exp(-math.log(1000) * torch.arange(half) / half))
        self.mlp = nn.Sequential(nn.Linear(dim, dim), nn.SiLU(), nn.Linear(dim, dim))

    def forward(self, t):
        angles = t.float()[:, None] * self.freqs
        return self.mlp(torch.cat([angles.sin(), angles.cos()], 1))


class ResBlock(nn.Module):
    def __init__(self, ch, time_dim):
        super().__init__()
        self.norm1, self.norm2 = nn.GroupNorm(4, ch), nn.GroupNorm(4, ch)
        self.conv1 = nn.Conv2d(ch, ch, 3, padding=1)
        self.conv2 = nn.Conv2d(ch, ch, 3, padding=1)
        self.time = nn.Linear(time_dim, ch)

    def forward(self, x, emb):
        h = self.conv1(F.silu(self.norm1(x)))
        h = h + self.time(emb)[:, :, None, None]
        return x + self.conv2(F.silu(self.norm2(h)))


class Denoiser(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        ch = cfg.channels
        self.embed = TimeEmbedding(cfg.time_dim)
        self.inp = nn.Conv2d(1, ch, 4, stride=2, padding=1)
        self.blocks = nn.ModuleList(ResBlock(ch, cfg.time_dim) for _ in range(2))
        self.out = nn.ConvTranspose2d(ch, 1, 4, stride=2, padding=1)

    def forward(self, x, t):
        emb = self.embed(t)
        h = self.inp(x)
        for block in self.blocks:
            h = block(h, emb)
        return self.out(h)


class DiffusionTrainer:
    def __init__(self, cfg):
        self.cfg = cfg
        torch.manual_seed(cfg.seed)
        self.images = make_glyphs(cfg)
        self.model = Denoiser(cfg)
        self.opt = torch.optim.Adam(self.model.parameters(), lr=cfg.lr)
        betas = torch.linspace(1e-4, 0.05, cfg.timesteps)
        self.alpha_bar = torch.cumprod(1 - betas, 0)

    def draw_batch(self):
        idx = torch.randint(len(self.images), (self.cfg.batch_size,))
        x0 = self.images[idx]
        t = torch.randint(self.cfg.timesteps, (len(idx),))
        noise = torch.randn_like(x0)
        ab = self.alpha_bar[t].view(-1, 1, 1, 1)
        return ab.sqrt() * x0 + (1 - ab).sqrt() * noise, t, noise

    def train_step(self):
        noisy, t, noise = self.draw_batch()
        micro = self.cfg.micro_batch_size
        if os.environ.get("PLANTED_FIX") == "1":
            micro = self.cfg.batch_size
        self.opt.zero_grad()
        total = torch.zeros(())
        for x, ts, eps in zip(noisy.split(micro), t.split(micro), noise.split(micro)):
            loss = F.mse_loss(self.model(x, ts), eps) * (len(x) / len(noisy))
            loss.backward()
            total += loss.detach()
        nn.utils.clip_grad_norm_(self.model.parameters(), self.cfg.grad_clip)
        self.opt.step()
        return total

    def fit(self, steps):
        self.model.train()
        start = time.perf_counter()
        for step in range(1, steps + 1):
            loss = self.train_step()
            if step % self.cfg.log_every == 0:
                print(f"step {step:5d}  eps-mse {loss.item():.4f}")
        elapsed = time.perf_counter() - start
        print(f"{steps} steps in {elapsed:.2f} s, loss {loss.item():.6f}")


if __name__ == "__main__":
    config = Config()
    DiffusionTrainer(config).fit(int(os.environ.get("PLANTED_STEPS", config.steps)))
