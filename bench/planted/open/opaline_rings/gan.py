import os
import time

import torch
import torch.nn.functional as F
from augment import AdaptiveRoll
from callbacks import Callback, Coverage, Progress
from networks import critic, generator
from rings import profiles


class Run:
    def __init__(self, points: int = 96, latent: int = 16, width: int = 192, batch: int = 32, seed: int = 50) -> None:
        torch.manual_seed(seed)
        self.data = profiles(4096, points, seed)
        self.latent, self.batch = latent, batch
        self.g, self.d = generator(latent, points, width), critic(points, width)
        self.g_optimizer = torch.optim.Adam(self.g.parameters(), lr=2e-4, betas=(0.5, 0.99), fused=True)
        self.d_optimizer = torch.optim.Adam(self.d.parameters(), lr=2e-4, betas=(0.5, 0.99), fused=True)
        self.augment = AdaptiveRoll(target=0.6, speed=0.002, seed=seed)
        self.callbacks: list[Callback] = [Coverage(), Progress(every=50)]

    def step(self, number: int) -> None:
        real = self.data[torch.randint(len(self.data), (self.batch,))]
        fake = self.g(torch.randn(self.batch, self.latent))

        self.critic_loss = F.softplus(-self.d(self.augment(real))).mean() + F.softplus(self.d(self.augment(fake.detach()))).mean()
        self.d_optimizer.zero_grad()
        self.critic_loss.backward()
        self.d_optimizer.step()

        self.g_loss = F.softplus(-self.d(self.augment(fake))).mean()
        self.g_optimizer.zero_grad()
        self.g_loss.backward()
        self.g_optimizer.step()
        for callback in self.callbacks:
            callback.on_step_end(self, number, real, fake.detach())

    def fit(self, steps: int) -> None:
        start = time.perf_counter()
        for number in range(1, steps + 1):
            self.step(number)
        print(f"{steps} steps in {time.perf_counter() - start:.2f} s, loss {self.critic_loss.item():.6f}")


if __name__ == "__main__":
    Run().fit(int(os.environ.get("PLANTED_STEPS", 800)))
