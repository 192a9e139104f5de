import os

import torch
from torch import nn

ALT = os.environ.get("PLANTED_FIX") == "1"


class Vae(nn.Module):
    def __init__(self, pixels, hidden, latent, beta, warmup):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(pixels, hidden), nn.SiLU(), nn.Linear(hidden, 2 * latent))
        self.decoder = nn.Sequential(nn.Linear(latent, hidden), nn.SiLU(), nn.Linear(hidden, pixels))
        self.beta, self.warmup = beta, warmup
        if ALT:
            self.register_buffer("epoch", torch.zeros(()))
        else:
            self.epoch = 0

    def kl_weight(self):
        return self.beta * (self.epoch + 1) / self.warmup

    def forward(self, x, noise):
        mean, log_var = self.encoder(x).chunk(2, 1)
        z = mean + noise * torch.exp(0.5 * log_var)
        error = nn.functional.binary_cross_entropy_with_logits(self.decoder(z), x, reduction="none").sum(1).mean()
        kl = 0.5 * (mean.square() + log_var.exp() - 1 - log_var).sum(1).mean()
        return error + self.kl_weight() * kl
