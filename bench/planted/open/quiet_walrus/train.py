"""Day-ahead load forecasting for a group of electricity meters (convolution, then seq2seq GRU)."""

import os
import time
import tomllib
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


def simulate_load(meters, days, seed):
    """Hourly consumption: daily and weekly cycle, temperature, a slow trend and noise."""
    rng = np.random.default_rng(seed)
    hours = np.arange(days * 24)
    day = 2 * np.pi * hours / 24
    week = 2 * np.pi * hours / (24 * 7)
    temperature = 10 + 8 * np.sin(2 * np.pi * hours / (24 * 365)) + np.cumsum(rng.normal(0, 0.15, len(hours)))
    load = np.empty((meters, len(hours)))
    for m in range(meters):
        base = rng.uniform(0.5, 3.0)
        shift = rng.uniform(0, 2 * np.pi)
        load[m] = (
            base
            + 0.4 * base * np.sin(day + shift)
            + 0.2 * base * np.sin(2 * day + 2 * shift)
            + 0.15 * base * np.sin(week)
            - rng.uniform(0.0, 0.03) * temperature
            + rng.normal(0, 0.08 * base, len(hours))
        )
    calendar = np.stack([np.sin(day), np.cos(day), np.sin(week), np.cos(week)])
    return load, temperature, calendar


def build_features(load, temperature, calendar):
    """(meters, hours, channels); channel 0 is the scaled load."""
    mean = load.mean(axis=1, keepdims=True)
    std = load.std(axis=1, keepdims=True)
    scaled = (load - mean) / std
    temp = (temperature - temperature.mean()) / temperature.std()
    shared = np.concatenate([temp[None], calendar])
    shared = np.broadcast_to(shared.T, (len(load), load.shape[1], len(shared)))
    return np.concatenate([scaled[..., None], shared], axis=-1)


class LoadWindows(Dataset):
    def __init__(self, features, context, horizon, stride=3):
        self.features = features
        self.context = context
        self.horizon = horizon
        last = features.shape[1] - context - horizon
        self.index = [(m, t) for m in range(features.shape[0]) for t in range(0, last + 1, stride)]

    def __len__(self):
        return len(self.index)

    def __getitem__(self, i):
        m, t = self.index[i]
        past = self.features[m, t : t + self.context]
        future = self.features[m, t + self.context : t + self.context + self.horizon]
        return past, future[:, 1:], future[:, 0]


class Forecaster(nn.Module):
    def __init__(self, channels, hidden, layers):
        super().__init__()
        self.local = nn.Sequential(
            nn.Conv1d(channels, hidden, 5, padding=2),
            nn.ReLU(),
            nn.Conv1d(hidden, hidden, 5, padding=2),
            nn.ReLU(),
            nn.MaxPool1d(2),
        )
        self.encoder = nn.GRU(hidden, hidden, num_layers=layers, batch_first=True)
        self.decoder = nn.GRU(channels - 1, hidden, num_layers=layers, batch_first=True)
        self.head = nn.Sequential(nn.Linear(hidden, hidden), nn.GELU(), nn.Linear(hidden, 1))

    def forward(self, past, known_future):
        local = self.local(past.transpose(1, 2)).transpose(1, 2)
        _, state = self.encoder(local)
        out, _ = self.decoder(known_future, state)
        return self.head(out).squeeze(-1)


@torch.no_grad()
def validate(model, loader, loss_fn):
    model.eval()
    total, count = 0.0, 0
    for past, known, target in loader:
        total += loss_fn(model(past, known), target).item() * len(target)
        count += len(target)
    model.train()
    return total / count


def main():
    with open(Path(__file__).with_name("settings.toml"), "rb") as f:
        cfg = tomllib.load(f)
    steps = int(os.environ.get("PLANTED_STEPS", cfg["optim"]["steps"]))
    torch.manual_seed(cfg["seed"])

    series = cfg["series"]
    load, temperature, calendar = simulate_load(series["meters"], series["days"], cfg["seed"])
    features = torch.from_numpy(build_features(load, temperature, calendar))
    if os.environ.get("PLANTED_FIX") == "1":
        features = features.float()
    split = int(features.shape[1] * 0.9)
    train_set = LoadWindows(features[:, :split], series["context"], series["horizon"])
    valid_set = LoadWindows(features[:, split:], series["context"], series["horizon"], stride=24)
    train_loader = DataLoader(train_set, batch_size=cfg["optim"]["batch_size"], shuffle=True, drop_last=True)
    valid_loader = DataLoader(valid_set, batch_size=128)

    model = Forecaster(features.shape[-1], **cfg["model"]).to(features.dtype)
    optimizer = torch.optim.Adam(model.parameters(), lr=cfg["optim"]["lr"])
    loss_fn = nn.HuberLoss()

    step = 0
    start = time.perf_counter()
    while step < steps:
        for past, known, target in train_loader:
            loss = loss_fn(model(past, known), target)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), cfg["optim"]["clip"])
            optimizer.step()
            step += 1
            if step % 100 == 0:
                print(f"step {step} train {loss.item():.4f}")
            if step == steps:
                break
    elapsed = time.perf_counter() - start

    print(f"validation huber {validate(model, valid_loader, loss_fn):.4f}")
    print(f"{step} steps in {elapsed:.2f} s, loss {loss.item():.6f}")


if __name__ == "__main__":
    main()
