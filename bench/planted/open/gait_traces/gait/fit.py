import argparse
import os
import time

import torch
from torch import nn
from torch.utils.data import DataLoader

from gait.records import CHANNELS, Steps, ToTensors


def network():
    return nn.Sequential(
        nn.Conv1d(CHANNELS, 16, 15, stride=5),
        nn.ReLU(),
        nn.Conv1d(16, 32, 9, stride=4),
        nn.ReLU(),
        nn.AdaptiveAvgPool1d(1),
        nn.Flatten(),
        nn.Linear(32, 1),
    )


def fit(steps, batch, lr):
    loader = DataLoader(Steps(), batch, shuffle=True, collate_fn=ToTensors(), drop_last=True)
    net = network()
    optimizer = torch.optim.Adam(net.parameters(), lr=lr)
    n, began = 0, time.time()
    while n < steps:
        for traces, paces in loader:
            loss = ((net(traces).squeeze(1) - paces) ** 2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            n += 1
            if n == steps:
                break
    print(f"{n} steps in {time.time() - began:.2f}s, loss {loss.item():.6f}")


if __name__ == "__main__":
    cli = argparse.ArgumentParser()
    cli.add_argument("--steps", type=int, default=int(os.environ.get("PLANTED_STEPS", 450)))
    cli.add_argument("--batch", type=int, default=48)
    cli.add_argument("--lr", type=float, default=3e-3)
    torch.set_num_threads(1)
    torch.manual_seed(14)
    fit(**vars(cli.parse_args()))
