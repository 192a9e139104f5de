"""Wrist-worn accelerometer/gyroscope recordings, simulated."""

import torch


def simulate(cfg):
    g = torch.Generator().manual_seed(cfg.seed)
    t = torch.linspace(0, 8, cfg.samples)
    n, c = cfg.recordings, cfg.channels
    freq = 0.5 + 4 * torch.rand(n, c, 1, generator=g)
    phase = 6.28 * torch.rand(n, c, 1, generator=g)
    amp = 0.3 + torch.rand(n, c, 1, generator=g)
    x = amp * torch.sin(6.28 * freq * t + phase)
    x = x + 0.4 * torch.sin(6.28 * 2 * freq * t) + 0.1 * torch.randn(x.shape, generator=g)
    x = (x - x.mean(-1, keepdim=True)) / x.std(-1, keepdim=True)
    n_patches = cfg.samples // cfg.patch
    x = x.view(n, c, n_patches, cfg.patch).permute(0, 2, 1, 3)
    return x.reshape(n, n_patches, c * cfg.patch).contiguous()


def endless(x, batch, seed):
    g = torch.Generator().manual_seed(seed + 1)
    while True:
        order = torch.randperm(len(x), generator=g)
        for i in range(0, len(x) - batch + 1, batch):
            yield x[order[i : i + batch]]
