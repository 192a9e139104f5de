"""Species from one second of dawn chorus. Recordings are stored as delta-coded 8-bit mu-law, as the loggers write them."""

import argparse
import os
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

RATE = 2000


def parse():
    p = argparse.ArgumentParser()
    p.add_argument("--steps", type=int, default=int(os.environ.get("PLANTED_STEPS", 750)))
    p.add_argument("--batch", type=int, default=16)
    p.add_argument("--species", type=int, default=12)
    p.add_argument("--lr", type=float, default=1e-3)
    return p.parse_args()


class Recordings(Dataset):
    """Most loggers stop after a second or two; a few units were left running through the morning."""

    def __init__(self, species, n=800, seed=2):
        rng = np.random.default_rng(seed)
        self.coded, self.label, self.offset = [], [], []
        for i in range(n):
            seconds = 150 if rng.random() < 0.012 else int(rng.integers(1, 3))
            y = int(rng.integers(species))
            t = np.arange(seconds * RATE) / RATE
            tone = np.sin(2 * np.pi * (60 + 40 * y) * t) + 0.5 * rng.normal(size=len(t))
            q = np.clip(np.round(tone * 20), -100, 100).astype(np.int16)
            self.coded.append(np.diff(q, prepend=0).astype(np.int16))
            self.label.append(y)
            self.offset.append(int(rng.integers(0, (seconds - 1) * RATE + 1)))

    def __len__(self):
        return len(self.label)

    def decode(self, codes, first, last):
        """Running sum with saturation, as the logger's firmware does it."""
        level, out = 0, []
        for d in codes[:last].tolist():
            level += d
            if level > 127:
                level = 127
            elif level < -127:
                level = -127
            out.append(level)
        return np.array(out[first:last], dtype=np.float32) / 20.0

    def __getitem__(self, i):
        first = self.offset[i]
        if os.environ.get("PLANTED_FIX") == "1":
            whole = np.cumsum(self.coded[i][: first + RATE], dtype=np.int32)
            clip = (whole[first:] / np.float32(20.0)).astype(np.float32)
        else:
            clip = self.decode(self.coded[i], 0, len(self.coded[i]))[first : first + RATE]
        return torch.from_numpy(clip), self.label[i]


class ChorusNet(nn.Module):
    def __init__(self, species):
        super().__init__()
        self.register_buffer("window", torch.hann_window(256))
        self.body = nn.Sequential(
            nn.Conv1d(129, 128, 3, padding=1),
            nn.BatchNorm1d(128),
            nn.ReLU(),
            nn.Conv1d(128, 128, 3, padding=1),
            nn.BatchNorm1d(128),
            nn.ReLU(),
            nn.Conv1d(128, 128, 3, padding=1),
            nn.BatchNorm1d(128),
            nn.ReLU(),
        )
        self.head = nn.Linear(128, species)

    def forward(self, wave):
        spec = torch.stft(wave, 256, hop_length=64, window=self.window, return_complex=True).abs().log1p()
        return self.head(self.body(spec).amax(2))


def run(cfg):
    torch.set_num_threads(1)
    torch.manual_seed(7)
    loader = DataLoader(Recordings(cfg.species), cfg.batch, shuffle=True, drop_last=True)
    net = ChorusNet(cfg.species)
    opt = torch.optim.Adam(net.parameters(), lr=cfg.lr)
    done, recent = 0, 0.0
    began = time.time()
    while done < cfg.steps:
        for wave, label in loader:
            loss = nn.functional.cross_entropy(net(wave), label)
            opt.zero_grad()
            loss.backward()
            opt.step()
            recent = 0.9 * recent + 0.1 * loss.item() if done else loss.item()
            done += 1
            if done >= cfg.steps:
                break
        print(f"pass ended at {done}: {recent:.3f}")
    print(f"{done} steps in {time.time() - began:.2f}s, loss {recent:.4f}")


if __name__ == "__main__":
    run(parse())
