import os
import time
from pathlib import Path

import torch
from torch import nn

torch.set_num_threads(1)
torch.manual_seed(3)
ITERATIONS = int(os.environ.get("PLANTED_STEPS", 700))
SNAPSHOT = 1 if os.environ.get("PLANTED_FIX") != "1" else 500


class Sketcher:
    def __init__(self, size=400, noise=48):
        self.noise = noise
        self.g = nn.Sequential(nn.Linear(noise, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, size), nn.Tanh())
        self.d = nn.Sequential(nn.Linear(size, 1024), nn.LeakyReLU(0.2), nn.Linear(1024, 1))
        self.optim_g = torch.optim.RMSprop(self.g.parameters(), lr=5e-5)
        self.optim_d = torch.optim.RMSprop(self.d.parameters(), lr=5e-5)

    def critic_step(self, real):
        with torch.no_grad():
            fake = self.g(torch.randn(len(real), self.noise))
        loss = self.d(fake).mean() - self.d(real).mean()
        self.optim_d.zero_grad()
        loss.backward()
        self.optim_d.step()
        for p in self.d.parameters():
            p.data.clamp_(-0.05, 0.05)
        return loss

    def generator_step(self, count):
        loss = -self.d(self.g(torch.randn(count, self.noise))).mean()
        self.optim_g.zero_grad()
        loss.backward()
        self.optim_g.step()
        return loss

    def snapshot(self, folder, iteration):
        folder.mkdir(exist_ok=True)
        for name in ("g", "d", "optim_g", "optim_d"):
            torch.save(getattr(self, name).state_dict(), folder / f"{name}_{iteration % 10}.pt")


def strokes(n):
    t = torch.linspace(0, 6.28, 400)
    return torch.sin(t * torch.randint(1, 6, (n, 1))) * torch.rand(n, 1)


if __name__ == "__main__":
    gan = Sketcher()
    data = strokes(2048)
    start = time.time()
    for it in range(1, ITERATIONS + 1):
        loss_d = gan.critic_step(data[torch.randint(0, 2048, (8,))])
        if it % 2 == 0:
            loss_g = gan.generator_step(8)
        if it % SNAPSHOT == 0:
            gan.snapshot(Path("checkpoints"), it)
    print(f"{ITERATIONS} steps in {time.time() - start:.2f}s, loss {loss_d.item():.6f}")
