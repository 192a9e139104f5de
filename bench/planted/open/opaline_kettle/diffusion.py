import math

import torch
import torch.nn.functional as F


class Diffusion:
    """Epsilon prediction with a cosine schedule; DDIM sampling."""

    def __init__(self, timesteps):
        self.timesteps = timesteps
        t = torch.arange(timesteps + 1, dtype=torch.float64) / timesteps
        f = torch.cos((t + 0.008) / 1.008 * math.pi / 2).square()
        betas = (1 - f[1:] / f[:-1]).clamp(max=0.999)
        self.alpha_bar = torch.cumprod(1 - betas, 0).float()

    def loss(self, model, x0):
        t = torch.randint(self.timesteps, (len(x0),))
        noise = torch.randn_like(x0)
        a = self.alpha_bar[t].view(-1, 1, 1, 1)
        return F.mse_loss(model(a.sqrt() * x0 + (1 - a).sqrt() * noise, t), noise)

    @torch.no_grad()
    def sample(self, model, shape, steps, generator):
        x = torch.randn(shape, generator=generator)
        times = torch.linspace(self.timesteps - 1, 0, steps).long()
        for i, t in enumerate(times):
            a = self.alpha_bar[t]
            prev = self.alpha_bar[times[i + 1]] if i + 1 < steps else torch.tensor(1.0)
            eps = model(x, t.expand(shape[0]))
            x0 = ((x - (1 - a).sqrt() * eps) / a.sqrt()).clamp(-1, 1)
            x = prev.sqrt() * x0 + (1 - prev).sqrt() * eps
        return x
