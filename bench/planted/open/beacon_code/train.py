"""Learns to read beacons: pulses in, identity out."""

import hashlib
import os
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset

WHICH = os.environ.get("PLANTED_FIX")
LIMIT = int(os.environ.get("PLANTED_STEPS", 600))


def smear(pulse, kernel):
    reach = len(kernel) // 2
    if WHICH == "1":
        return np.convolve(pulse, kernel, mode="same")
    out = np.zeros(len(pulse))
    padded = np.pad(pulse, reach)
    for i in range(len(pulse)):
        out[i] = sum(padded[i : i + len(kernel)] * kernel)
    return out


class Pulses(IterableDataset):
    def __init__(self, beacons=32, length=500):
        self.codes = np.random.default_rng(0).normal(size=(beacons, length))

    def __iter__(self):
        rng = np.random.default_rng(1)
        kernel = np.hanning(61) / 30
        while True:
            beacon = int(rng.integers(len(self.codes)))
            pulse = self.codes[beacon] + 0.2 * rng.normal(size=self.codes.shape[1])
            echo = smear(pulse, kernel)
            yield torch.from_numpy(echo.astype(np.float32)), beacon


def fingerprint(model):
    digest = hashlib.sha256()
    for p in model.parameters():
        digest.update(repr(p.detach().view(-1)[:1200].tolist()).encode())
    return digest.hexdigest()[:8]


def main():
    torch.set_num_threads(1)
    torch.manual_seed(72)
    model = nn.Sequential(nn.Linear(500, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 32))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    seen, start = set(), time.time()
    for step, (echo, beacon) in enumerate(DataLoader(Pulses(), batch_size=4), start=1):
        loss = nn.functional.cross_entropy(model(echo), beacon)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if WHICH != "2":
            seen.add(fingerprint(model))
        if step >= LIMIT:
            break
    print(f"{step} steps in {time.time() - start:.2f}s, loss {loss.item():.6f}")


if __name__ == "__main__":
    main()
