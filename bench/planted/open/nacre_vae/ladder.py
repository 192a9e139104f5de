import torch
from torch import nn
from torch.nn import functional as F


class Rung(nn.Module):
    """One level: a deterministic way up, and on the way down a prior that is combined with what came up."""

    def __init__(self, inside, width, latent):
        super().__init__()
        self.up = nn.Sequential(nn.Linear(inside, width), nn.LayerNorm(width), nn.SiLU())
        self.posterior = nn.Linear(width, 2 * latent)
        self.down = nn.Sequential(nn.Linear(latent, width), nn.LayerNorm(width), nn.SiLU())

    def infer(self, h, prior):
        mean, raw = self.posterior(h).chunk(2, -1)
        precision = F.softplus(raw) + 0.5
        if prior is None:
            prior = torch.zeros_like(mean), torch.ones_like(mean)
        p_mean, p_precision = prior
        total = precision + p_precision
        mean = (mean * precision + p_mean * p_precision) / total
        z = mean + torch.randn_like(mean) * total.rsqrt()
        kl = 0.5 * (p_precision / total + (mean - p_mean) ** 2 * p_precision - 1 + total.log() - p_precision.log())
        return z, kl


class LadderVAE(nn.Module):
    def __init__(self, points, widths=(288, 160, 80), latents=(16, 8, 4)):
        super().__init__()
        insides = (points, *widths[:-1])
        self.rungs = nn.ModuleList([Rung(i, w, z) for i, w, z in zip(insides, widths, latents)])
        self.priors = nn.ModuleList([nn.Linear(widths[k + 1], 2 * latents[k]) for k in range(len(widths) - 1)])
        self.decode = nn.Sequential(nn.Linear(widths[0], 288), nn.SiLU(), nn.Linear(288, points))

    def forward(self, x):
        ups, h = [], x
        for rung in self.rungs:
            h = rung.up(h)
            ups.append(h)
        kls, prior, h = [], None, None
        for k in reversed(range(len(self.rungs))):
            z, kl = self.rungs[k].infer(ups[k], prior)
            kls.append(kl)
            h = self.rungs[k].down(z)
            if k:
                mean, raw = self.priors[k - 1](h).chunk(2, -1)
                prior = mean, F.softplus(raw) + 0.5
        return self.decode(h), kls

    @torch.no_grad()
    def sample(self, n):
        z = torch.randn(n, self.rungs[0].posterior.out_features // 2)
        return self.decode(self.rungs[0].down(z))
