"""A GAN for heartbeats, with Fabric."""

import argparse
import os
import time
import warnings
from itertools import chain, repeat

import torch
from lightning.fabric import Fabric
from networks import Critic, Generator, critic_loss, generator_loss
from signals import Beats
from torch.utils.data import DataLoader
from whitening import OPTIMIZERS

warnings.filterwarnings("ignore")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--beats", type=int, default=4096)
    parser.add_argument("--length", type=int, default=128)
    parser.add_argument("--batch", type=int, default=96)
    parser.add_argument("--latent", type=int, default=32)
    parser.add_argument("--width", type=int, default=160)
    parser.add_argument("--depth", type=int, default=2)
    parser.add_argument("--generator-optimizer", choices=OPTIMIZERS, default="shampoo")
    parser.add_argument("--critic-optimizer", choices=OPTIMIZERS, default="gentle")
    parser.add_argument("--rate", type=float, default=5e-4)
    parser.add_argument("--steps", type=int, default=int(os.environ.get("PLANTED_STEPS", "320")))
    return parser.parse_args()


@torch.no_grad()
def spectrum_gap(generator: Generator, data: Beats, count: int = 256) -> float:
    """How far the mean power spectrum of the made beats is from that of the real ones."""
    noise = torch.randn(count, generator.latent, generator=torch.Generator().manual_seed(0))
    made, real = torch.fft.rfft(generator(noise)).abs().mean(0), torch.fft.rfft(data.beats[:count]).abs().mean(0)
    return ((made - real).norm() / real.norm()).item()


def main() -> None:
    options = arguments()
    fabric = Fabric(accelerator="cpu", devices=1)
    fabric.seed_everything(31, verbose=False)
    data = Beats(options.beats, options.length, 31)
    loader = fabric.setup_dataloaders(
        DataLoader(data, options.batch, shuffle=True, drop_last=True, generator=torch.Generator().manual_seed(31))
    )
    maker = Generator(options.latent, options.width, options.depth, options.length)
    judge = Critic(options.width, options.depth, options.length)
    generator, generator_step = fabric.setup(maker, OPTIMIZERS[options.generator_optimizer](maker.parameters(), lr=options.rate))
    critic, critic_step = fabric.setup(judge, OPTIMIZERS[options.critic_optimizer](judge.parameters(), lr=options.rate))

    batches = chain.from_iterable(repeat(loader))
    began = time.perf_counter()
    for step in range(1, options.steps + 1):
        real = next(batches)
        fake = generator(torch.randn(len(real), options.latent))
        critic_step.zero_grad()
        loss = critic_loss(critic, real, fake.detach())
        fabric.backward(loss)
        critic_step.step()

        generator_step.zero_grad()
        fooled = generator_loss(critic, fake)
        fabric.backward(fooled)
        fabric.clip_gradients(generator, generator_step, max_norm=5.0)
        generator_step.step()
        if step % 10 == 0:
            print(f"step {step} critic {loss.item():.4f} generator {fooled.item():.4f}", flush=True)
        if step % 80 == 0:
            print(f"step {step} spectrum gap {spectrum_gap(maker, data):.4f}", flush=True)
    print(f"{options.steps} steps in {time.perf_counter() - began:.2f}s, loss {loss.item():.6f}")


if __name__ == "__main__":
    main()
