"""Trains an event detector on the stream of waveform shards."""

import os
import time
from itertools import islice
from pathlib import Path

import torch
from torch import nn
from torch.utils.data import DataLoader

from shards import ShardStream, export

STEPS = int(os.environ.get("PLANTED_STEPS", 2200))


class Picker(nn.Module):
    def __init__(self, width: int = 24):
        super().__init__()
        self.stem = nn.Conv1d(3, width, 7, stride=2, padding=3)
        self.mix = nn.ModuleList(nn.Conv1d(width, width, 5, padding=2) for _ in range(3))
        self.norms = nn.ModuleList(nn.GroupNorm(4, width) for _ in range(3))
        self.out = nn.Linear(width, 2)

    def forward(self, x):
        x = torch.relu(self.stem(x))
        for conv, norm in zip(self.mix, self.norms, strict=True):
            x = x + torch.relu(norm(conv(x)))
        return self.out(x.amax(-1))


def fit(stream, model, optimizer):
    right = seen = 0
    began = time.perf_counter()
    for step, (waves, labels) in enumerate(islice(stream, STEPS), 1):
        logits = model(waves)
        loss = nn.functional.cross_entropy(logits, labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        right += (logits.argmax(1) == labels).sum()
        seen += len(labels)
        if step % 100 == 0:
            print(f"[{step:5d}] loss={loss.item():.4f} acc={right.item() / seen:.3f}")
            right = seen = 0
    return step, time.perf_counter() - began, loss.item()


if __name__ == "__main__":
    torch.manual_seed(3)
    torch.set_num_threads(1)
    paths = export(Path(__file__).parent / "archive", 4)
    stream = DataLoader(ShardStream(paths), batch_size=16)
    net = Picker()
    steps, seconds, last = fit(stream, net, torch.optim.Adam(net.parameters(), 1e-3))
    print(f"{steps} steps in {seconds:.3f}s, loss {last:.5f}")
