"""Contrastive pre-training of an encoder for optical spectra: two noisy views of each spectrum, NT-Xent loss, nearest-centroid probe."""
import argparse
import math
import os

import torch
import torch.nn.functional as F
from torch import nn


def make_spectra(n, channels, classes, generator):
    grid = torch.linspace(0, 1, channels)
    centres = torch.rand(classes, 6, generator=generator)
    heights = 0.4 + torch.rand(classes, 6, generator=generator)
    label = torch.randint(classes, (n,), generator=generator)
    spectra = torch.zeros(n, channels)
    for peak in range(6):
        c = centres[label, peak, None] + 0.012 * torch.randn(n, 1, generator=generator)
        h = heights[label, peak, None] * (1 + 0.3 * torch.randn(n, 1, generator=generator))
        spectra += h * torch.exp(-((grid - c) / 0.02) ** 2)
    spectra += 0.05 * torch.randn(n, channels, generator=generator)
    return spectra, label


class Augment:
    """A view of a whole batch: gain, slope of the base line, shift, noise and a masked band, drawn for each row."""

    def __init__(self, channels, max_shift=6, band=48):
        self.channels, self.max_shift, self.band = channels, max_shift, band
        self.index = torch.arange(channels)
        self.ramp = torch.linspace(-1, 1, channels)

    def __call__(self, x):
        n = x.shape[0]
        shift = torch.randint(-self.max_shift, self.max_shift + 1, (n, 1))
        x = x.gather(1, (self.index + shift) % self.channels)
        x = x * (0.8 + 0.4 * torch.rand(n, 1)) + 0.2 * torch.randn(n, 1) * self.ramp
        x = x + 0.05 * torch.randn_like(x)
        start = torch.randint(0, self.channels - self.band, (n, 1))
        return x.masked_fill((self.index >= start) & (self.index < start + self.band), 0.0)


class Encoder(nn.Module):
    def __init__(self, channels, width, out):
        super().__init__()
        self.trunk = nn.Sequential(
            nn.Linear(channels, width), nn.LayerNorm(width), nn.GELU(),
            nn.Linear(width, width), nn.LayerNorm(width), nn.GELU(),
            nn.Linear(width, width), nn.LayerNorm(width), nn.GELU())
        self.head = nn.Sequential(nn.Linear(width, width // 2), nn.GELU(), nn.Linear(width // 2, out))

    def forward(self, x):
        return F.normalize(self.head(self.trunk(x)), dim=1)


def nt_xent(a, b, temperature):
    z = torch.cat([a, b])
    sim = z @ z.t() / temperature
    sim.fill_diagonal_(float("-inf"))
    n = a.shape[0]
    target = torch.arange(2 * n).roll(n)
    return F.cross_entropy(sim, target)


@torch.no_grad()
def probe(model, train, valid, classes):
    model.eval()
    features, labels = F.normalize(model.trunk(train[0]), dim=1), train[1]
    centroid = torch.stack([features[labels == c].mean(0) for c in range(classes)])
    guess = (F.normalize(model.trunk(valid[0]), dim=1) @ F.normalize(centroid, dim=1).t()).argmax(1)
    model.train()
    return (guess == valid[1]).float().mean().item()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=24)
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--channels", type=int, default=512)
    parser.add_argument("--width", type=int, default=768)
    parser.add_argument("--lr", type=float, default=5e-4)
    parser.add_argument("--temperature", type=float, default=0.2)
    parser.add_argument("--out", default="runs")
    args = parser.parse_args()
    torch.manual_seed(3)
    classes = 24
    spectra, label = make_spectra(6656, args.channels, classes, torch.Generator().manual_seed(11))
    mean, std = spectra[:5632].mean(), spectra[:5632].std()
    spectra = (spectra - mean) / std
    train, valid = (spectra[:5632], label[:5632]), (spectra[5632:], label[5632:])

    model = Encoder(args.channels, args.width, 64)
    augment = Augment(args.channels)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr, weight_decay=1e-4, fused=True)
    steps = train[0].shape[0] // args.batch
    total = args.epochs * steps
    scheduler = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda s: min(1.0, (s + 1) / 50) * 0.5 * (1 + math.cos(math.pi * min(1.0, s / total))))
    os.makedirs(args.out, exist_ok=True)
    best = 0.0
    for epoch in range(args.epochs):
        order = torch.randperm(train[0].shape[0])
        running = torch.zeros(())
        for step in range(steps):
            x = train[0][order[step * args.batch:(step + 1) * args.batch]]
            z = model(torch.cat([augment(x), augment(x)]))
            loss = nt_xent(*z.chunk(2), args.temperature)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            scheduler.step()
            running += loss.detach()
        message = f"epoch {epoch} loss {running.item() / steps:.4f}"
        if epoch % 4 == 3 or epoch == args.epochs - 1:
            accuracy = probe(model, train, valid, classes)
            message += f" probe {accuracy:.4f}"
            if accuracy > best:
                best = accuracy
                torch.save({"model": model.state_dict(), "epoch": epoch, "args": vars(args)}, os.path.join(args.out, "best.pt"))
        print(message, flush=True)


if __name__ == "__main__":
    main()
