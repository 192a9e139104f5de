"""Train a Wasserstein GAN on petals: several updates of the critic for each of the generator."""

import argparse
import logging
import os
import tempfile
import time
from collections import deque
from pathlib import Path

import torch
from nets import Critic, Generator, gradient_penalty
from petals import Petals
from torch import nn

log = logging.getLogger("saffron")


def thaw(network: nn.Module, learns: bool) -> None:
    for parameter in network.parameters():
        parameter.requires_grad_(learns)


class Game:
    def __init__(self, options: argparse.Namespace) -> None:
        torch.manual_seed(options.seed)
        self.options = options
        self.petals = Petals(options.petals, 32, options.seed)
        self.generator, self.critic = Generator(options.noise, options.width), Critic(options.width)
        betas = (0.0, 0.9)
        self.generator_optimizer = torch.optim.Adam(self.generator.parameters(), lr=options.lr, betas=betas)
        self.critic_optimizer = torch.optim.Adam(self.critic.parameters(), lr=2 * options.lr, betas=betas)
        self.random = torch.Generator().manual_seed(options.seed)
        self.gaps: deque[float] = deque(maxlen=25)

    def noise(self, count: int) -> torch.Tensor:
        return torch.randn(count, self.options.noise, generator=self.random)

    def criticise(self) -> dict[str, float]:
        thaw(self.critic, True)
        real = self.petals.batch(self.options.batch_size)
        with torch.no_grad():
            made = self.generator(self.noise(len(real)))
        gap = self.critic(real).mean() - self.critic(made).mean()
        penalty = gradient_penalty(self.critic, real, made, self.random)
        self.critic_optimizer.zero_grad()
        (self.options.penalty * penalty - gap).backward()
        self.critic_optimizer.step()
        self.gaps.append(gap.item())
        return {"gap": gap.item(), "penalty": penalty.item()}

    def generate(self) -> float:
        thaw(self.critic, False)
        loss = -self.critic(self.generator(self.noise(self.options.batch_size))).mean()
        self.generator_optimizer.zero_grad()
        loss.backward()
        self.generator_optimizer.step()
        return loss.item()

    @torch.no_grad()
    def diversity(self) -> float:
        self.generator.eval()
        made = self.generator(self.noise(32)).flatten(1)
        self.generator.train()
        return float(torch.pdist(made).mean())

    def save(self, path: Path) -> None:
        torch.save({"generator": self.generator.state_dict(), "critic": self.critic.state_dict()}, path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--petals", type=int, default=400)
    parser.add_argument("--noise", type=int, default=48)
    parser.add_argument("--width", type=int, default=24)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--critic-updates", type=int, default=3)
    parser.add_argument("--penalty", type=float, default=10.0)
    parser.add_argument("--lr", type=float, default=2e-4)
    parser.add_argument("--seed", type=int, default=52)
    parser.add_argument("--steps", type=int, default=int(os.environ.get("PLANTED_STEPS", "180")))
    options = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    game, folder = Game(options), Path(tempfile.mkdtemp())
    began, loss, figures = time.perf_counter(), 0.0, {}
    for step in range(1, options.steps + 1):
        for _ in range(options.critic_updates):
            figures = game.criticise()
        loss = game.generate()
        if step % 5 == 0:
            log.info("step %d generator %.4f %s", step, loss, {name: round(value, 4) for name, value in figures.items()})
        if step % 50 == 0:
            log.info("diversity %.3f, mean gap %.4f", game.diversity(), sum(game.gaps) / len(game.gaps))
            game.save(folder / "game.pt")
    print(f"{options.steps} steps in {time.perf_counter() - began:.2f}s, loss {loss:.6f}")


if __name__ == "__main__":
    main()
