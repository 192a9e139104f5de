"""Composition of volcanic glass from spectra that the laboratory keeps as float64."""

import os
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

NARROW = os.environ.get("PLANTED_FIX") == "1"


def laboratory(n=2000, lines=400):
    rng = np.random.default_rng(30)
    glass = rng.random((n, 9))
    return glass @ rng.random((9, lines)) + 0.05 * rng.normal(size=(n, lines)), glass


def network(lines, parts):
    return nn.Sequential(nn.Linear(lines, 700), nn.ReLU(), nn.Linear(700, 700), nn.ReLU(), nn.Linear(700, parts))


def main():
    torch.set_num_threads(1)
    torch.manual_seed(58)
    steps = int(os.environ.get("PLANTED_STEPS", 200))
    spectra, glass = map(torch.from_numpy, laboratory())
    model = network(spectra.shape[1], glass.shape[1]).to(torch.float32 if NARROW else spectra.dtype)
    if NARROW:
        spectra, glass = spectra.float(), glass.float()
    loader = DataLoader(TensorDataset(spectra, glass), batch_size=200, shuffle=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    done, start = 0, time.time()
    while done < steps:
        for x, y in loader:
            loss = nn.functional.mse_loss(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            done += 1
            if done == steps:
                break
    print(f"{done} steps in {time.time() - start:.2f}s, loss {loss.item():.6f}")


if __name__ == "__main__":
    main()
