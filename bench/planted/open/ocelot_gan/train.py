"""Spotted coats: a Wasserstein GAN on procedurally drawn fur profiles."""

import os

import torch
from torch import nn

from journal import journal
from trainer import Beat, GanTrainer, History, Shadow

POINTS, LATENT, BATCH = 256, 24, 96


class Coats:
    """Rosettes along a line: bumps of random place and width."""

    def __init__(self, count, seed):
        g = torch.Generator().manual_seed(seed)
        x = torch.linspace(0, 1, POINTS)
        place = torch.rand(count, 5, 1, generator=g)
        width = 0.02 + 0.03 * torch.rand(count, 5, 1, generator=g)
        self.lines = torch.exp(-((x - place) ** 2) / (2 * width**2)).sum(1) - 0.5
        self.g = g

    def __call__(self, count):
        return self.lines[torch.randint(len(self.lines), (count,), generator=self.g)]


def mlp(*sizes):
    layers = []
    for a, b in zip(sizes, sizes[1:]):
        layers += [nn.Linear(a, b), nn.LeakyReLU(0.2)]
    return nn.Sequential(*layers[:-1])


def main():
    torch.manual_seed(12)
    torch.set_num_threads(1)
    generator, critic = mlp(LATENT, 128, 192, POINTS), mlp(POINTS, 160, 96, 1)
    callbacks = [Shadow(generator), History(journal()), Beat(100)]
    trainer = GanTrainer(generator, critic, Coats(4000, 5), LATENT, BATCH, callbacks=callbacks)
    steps = int(os.environ.get("PLANTED_STEPS", 5000))
    seconds, loss = trainer.fit(steps)
    torch.save({"generator": generator.state_dict(), "shadow": callbacks[0].shadow}, "ocelot.pt")
    print(f"{steps} steps in {seconds:.3f}s, loss {loss:.5f}")


if __name__ == "__main__":
    main()
