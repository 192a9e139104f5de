"""Student / momentum pair that predicts contextual latents of hidden patches."""

import copy
import os

import torch
import torch.nn as nn
import torch.nn.functional as F

FIXED = os.environ.get("PLANTED_FIX") == "1"


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.n1 = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.proj = nn.Linear(width, width)
        self.n2 = nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        b, n, d = x.shape
        q, k, v = self.qkv(self.n1(x)).view(b, n, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        a = F.scaled_dot_product_attention(q, k, v)
        x = x + self.proj(a.transpose(1, 2).reshape(b, n, d))
        return x + self.mlp(self.n2(x))


class Encoder(nn.Module):
    def __init__(self, in_dim, n_patches, cfg):
        super().__init__()
        self.embed = nn.Linear(in_dim, cfg.width)
        self.pos = nn.Parameter(0.02 * torch.randn(n_patches, cfg.width))
        self.blocks = nn.ModuleList(Block(cfg.width, cfg.heads) for _ in range(cfg.depth))

    def forward(self, x, keep=None):
        x = self.embed(x) + self.pos
        if keep is not None:
            x = x[:, keep]
        layers = []
        for block in self.blocks:
            x = block(x)
            layers.append(x)
        return layers


class LatentPair(nn.Module):
    def __init__(self, in_dim, n_patches, cfg):
        super().__init__()
        self.cfg = cfg
        self.n_patches = n_patches
        self.student = Encoder(in_dim, n_patches, cfg)
        self.teacher = copy.deepcopy(self.student)
        if FIXED:
            self.teacher.requires_grad_(False)
        self.query = nn.Parameter(0.02 * torch.randn(n_patches, cfg.width))
        self.predictor = Block(cfg.width, cfg.heads)
        self.out = nn.Linear(cfg.width, cfg.width)

    def trainable(self):
        yield from self.student.parameters()
        yield self.query
        yield from self.predictor.parameters()
        yield from self.out.parameters()

    def latents(self, x):
        layers = self.teacher(x)[-self.cfg.top_k :]
        return sum(F.layer_norm(h, h.shape[-1:]) for h in layers) / len(layers)

    def split(self, generator):
        order = torch.randperm(self.n_patches, generator=generator)
        n = int(self.cfg.keep * self.n_patches)
        return order[:n].sort().values, order[n : 2 * n].sort().values

    def forward(self, x, generator):
        keep, hidden = self.split(generator)
        context = self.student(x, keep)[-1]
        ask = self.query[hidden].expand(len(x), -1, -1)
        guess = self.out(self.predictor(torch.cat([context, ask], 1))[:, len(keep) :])
        return F.smooth_l1_loss(guess, self.latents(x)[:, hidden])

    @torch.no_grad()
    def follow(self, tau):
        for slow, fast in zip(self.teacher.parameters(), self.student.parameters()):
            slow.lerp_(fast, 1 - tau)
