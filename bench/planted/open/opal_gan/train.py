"""A small GAN with a hinge loss and a gradient penalty every few steps."""

import argparse
import os
import time
from pathlib import Path

import torch
import torch.nn.functional as F

from gems import bank
from nets import Critic, Generator
from tracker import Tracker


def options() -> argparse.Namespace:
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--steps", type=int, default=1100)
    p.add_argument("--batch", type=int, default=20)
    p.add_argument("--latent", type=int, default=32)
    p.add_argument("--lr", type=float, default=2e-4)
    p.add_argument("--penalty-every", type=int, default=16)
    p.add_argument("--penalty", type=float, default=1.0)
    p.add_argument("--seed", type=int, default=77)
    p.add_argument("--run", type=Path, default=Path("runs/gems"))
    return p.parse_args()


def penalty_of(critic: Critic, real: torch.Tensor) -> torch.Tensor:
    real = real.clone().requires_grad_(True)
    (grad,) = torch.autograd.grad(critic(real).sum(), real, create_graph=True)
    return grad.pow(2).sum((1, 2, 3)).mean()


class Gan:
    def __init__(self, opt: argparse.Namespace):
        self.opt = opt
        self.generator, self.critic = Generator(opt.latent), Critic()
        self.opt_g = torch.optim.Adam(self.generator.parameters(), lr=opt.lr, betas=(0.0, 0.9))
        self.opt_c = torch.optim.Adam(self.critic.parameters(), lr=opt.lr, betas=(0.0, 0.9))

    def critic_step(self, real: torch.Tensor, step: int) -> float:
        with torch.no_grad():
            fake = self.generator(torch.randn(len(real), self.opt.latent))
        loss = F.relu(1 - self.critic(real)).mean() + F.relu(1 + self.critic(fake)).mean()
        if step % self.opt.penalty_every == 0:
            loss = loss + self.opt.penalty * penalty_of(self.critic, real)
        self.opt_c.zero_grad()
        loss.backward()
        self.opt_c.step()
        return loss.item()

    def generator_step(self, count: int) -> float:
        loss = -self.critic(self.generator(torch.randn(count, self.opt.latent))).mean()
        self.opt_g.zero_grad()
        loss.backward()
        self.opt_g.step()
        return loss.item()


def main() -> None:
    torch.set_num_threads(1)
    opt = options()
    torch.manual_seed(opt.seed)
    gems = bank(2048, 16, seed=3)
    gan = Gan(opt)
    tracker = Tracker(opt.run)
    tracker.watch(generator=gan.generator, critic=gan.critic)
    limit = int(os.environ.get("PLANTED_STEPS", opt.steps))
    begun = time.perf_counter()
    for step in range(1, limit + 1):
        real = gems[torch.randint(len(gems), (opt.batch,))]
        loss_c = gan.critic_step(real, step)
        loss_g = gan.generator_step(opt.batch)
        tracker.log(step, critic=loss_c, generator=loss_g)
        print(f"[{step}/{limit}] critic {loss_c:.4f} generator {loss_g:.4f}", flush=True)
    seconds = time.perf_counter() - begun
    tracker.close()
    print(f"{limit} steps in {seconds:.2f}s, loss {loss_c:.6f}")


if __name__ == "__main__":
    main()
