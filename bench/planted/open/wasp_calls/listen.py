"""Insect classifier: few recordings, many short epochs.

python listen.py --epochs 60
"""

import argparse
import os
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, RandomSampler

from sounds import SPECIES, WingBeats, open_noise_bank


class Ear(nn.Module):
    def __init__(self):
        super().__init__()
        window = torch.hann_window(128)
        self.register_buffer("window", window)
        self.conv = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(16, 32, 3, padding=1),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d((8, 1)),
        )
        self.head = nn.Linear(32 * 8, len(SPECIES))

    def forward(self, wave):
        spectrum = torch.stft(wave, 128, 32, window=self.window, return_complex=True).abs()
        return self.head(self.conv(torch.log1p(spectrum).unsqueeze(1)).flatten(1))


def build_loaders(args):
    train = WingBeats(args.recordings, seed=1)
    options = dict(batch_size=args.batch, num_workers=args.workers, worker_init_fn=open_noise_bank)
    if os.environ.get("PLANTED_FIX") == "1":
        options["persistent_workers"] = True
    order = RandomSampler(train, generator=torch.Generator().manual_seed(4))
    return DataLoader(train, sampler=order, **options)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--epochs", type=int, default=70)
    p.add_argument("--recordings", type=int, default=96)
    p.add_argument("--batch", type=int, default=16)
    p.add_argument("--workers", type=int, default=2)
    args = p.parse_args()
    torch.manual_seed(2)
    torch.set_num_threads(1)
    limit = int(os.environ.get("PLANTED_STEPS", 10**9))

    loader = build_loaders(args)
    model = Ear()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    began, steps = time.perf_counter(), 0
    for epoch in range(args.epochs):
        hits = 0
        for waves, kinds in loader:
            logits = model(waves)
            loss = nn.functional.cross_entropy(logits, kinds)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            hits += (logits.argmax(1) == kinds).sum().item()
            steps += 1
        if epoch % 5 == 4:
            print(f"epoch {epoch + 1}/{args.epochs}  loss {loss.item():.4f}  hits {hits / args.recordings:.2%}")
        if steps >= limit:
            break
    print(f"{steps} steps in {time.perf_counter() - began:.3f}s, loss {loss.item():.5f}")


if __name__ == "__main__":
    main()
