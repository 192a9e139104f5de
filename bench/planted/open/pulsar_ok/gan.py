"""WGAN-GP-free hinge GAN of folded pulsar profiles (1-D)."""

import os
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.set_num_threads(1)
LEN, Z = 128, 24


def up(i, o):
    return nn.Sequential(nn.Upsample(scale_factor=2), nn.Conv1d(i, o, 5, padding=2), nn.ReLU())


class Generator(nn.Module):
    def __init__(self, w=96):
        super().__init__()
        self.seed = nn.Linear(Z, w * 16)
        self.net = nn.Sequential(up(w, w), up(w, w), up(w, w), nn.Conv1d(w, 1, 5, padding=2))
        self.w = w

    def forward(self, z):
        return self.net(self.seed(z).view(-1, self.w, 16))


class Critic(nn.Module):
    def __init__(self, w=96):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv1d(1, w, 5, padding=2),
            nn.LeakyReLU(0.2),
            nn.Conv1d(w, w, 5, 2, 2),
            nn.LeakyReLU(0.2),
            nn.Conv1d(w, w, 5, 2, 2),
            nn.LeakyReLU(0.2),
            nn.Flatten(),
            nn.Linear(w * LEN // 4, 1),
        )

    def forward(self, x):
        return self.net(x)


def profiles(n, g):
    phase = torch.rand(n, 1, generator=g)
    width = 0.02 + 0.05 * torch.rand(n, 1, generator=g)
    t = torch.linspace(0, 1, LEN)
    return torch.exp(-((t - phase) ** 2) / (2 * width**2))[:, None]


def main():
    torch.manual_seed(0)
    g = torch.Generator().manual_seed(1)
    gen, critic = Generator(), Critic()
    og = torch.optim.Adam(gen.parameters(), lr=1e-4, betas=(0.0, 0.9), fused=True)
    oc = torch.optim.Adam(critic.parameters(), lr=4e-4, betas=(0.0, 0.9), fused=True)
    steps = int(os.environ.get("PLANTED_STEPS", 200))
    began = time.time()
    for step in range(steps):
        real, z = profiles(48, g), torch.randn(48, Z, generator=g)
        fake = gen(z)
        loss_c = F.relu(1 - critic(real)).mean() + F.relu(1 + critic(fake.detach())).mean()
        oc.zero_grad()
        loss_c.backward()
        oc.step()
        loss_g = -critic(fake).mean()
        og.zero_grad()
        loss_g.backward()
        og.step()
        if step % 20 == 0:
            print(f"{step} critic {loss_c.item():.3f} generator {loss_g.item():.3f}", flush=True)
    print(f"{steps} steps in {time.time() - began:.2f}s, loss {loss_c.item():.4f}")


if __name__ == "__main__":
    main()
