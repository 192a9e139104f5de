"""Two worn views of one sherd shall lie near each other."""

import configparser
import os
import time

import torch
from torch import nn
from torch.nn import functional as F

from drawings import Drawings


class Encoder(nn.Module):
    def __init__(self, channels, embedding):
        super().__init__()
        sizes = [1, channels, 2 * channels, 3 * channels]
        layers = []
        for a, b in zip(sizes, sizes[1:]):
            layers += [nn.Conv1d(a, b, 7, stride=2, padding=3), nn.GroupNorm(4, b), nn.SiLU()]
        self.layers = nn.Sequential(*layers)
        self.head = nn.Linear(sizes[-1], embedding)

    def forward(self, profile):
        return F.normalize(self.head(self.layers(profile[:, None]).mean(-1)), dim=-1)


class Trainer:
    def __init__(self, config):
        torch.manual_seed(12)
        t = config["training"]
        self.encoder = Encoder(config.getint("model", "channels"), config.getint("model", "embedding"))
        self.optimizer = torch.optim.SGD(self.encoder.parameters(), t.getfloat("rate"), momentum=t.getfloat("momentum"))
        self.drawings = Drawings(config["store"], t.getint("batch"))
        self.temperature, self.report = t.getfloat("temperature"), t.getint("report")

    def worn(self, profile):
        """Another scale, a chipped rim, a little noise."""
        count, points = profile.shape
        scale = 0.8 + 0.4 * torch.rand(count, 1)
        chipped = torch.arange(points) < torch.randint(0, points // 4, (count, 1))
        return (profile * scale + 0.02 * torch.randn_like(profile)).masked_fill(chipped, 0)

    def loss(self, profile):
        both = self.encoder(torch.cat([self.worn(profile), self.worn(profile)]))
        near = both @ both.T / self.temperature
        near.fill_diagonal_(float("-inf"))
        partner = torch.arange(len(both)).roll(len(profile))
        return F.cross_entropy(near, partner)

    def fit(self, steps):
        began = time.perf_counter()
        for step, profile in zip(range(1, steps + 1), self.drawings):
            loss = self.loss(profile)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            if step % self.report == 0:
                print(f"[{step}/{steps}] contrastive loss {loss.item():.4f}", flush=True)
        print(f"{steps} steps in {time.perf_counter() - began:.3f} s, loss {loss.item():.5f}")


if __name__ == "__main__":
    config = configparser.ConfigParser()
    config.read("kiln.ini")
    trainer = Trainer(config)
    try:
        trainer.fit(int(os.environ.get("PLANTED_STEPS", 450)))
    finally:
        trainer.drawings.close()
