"""Seedling vigour score from greenhouse thumbnails; small data, many epochs."""

import os
import time

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset, RandomSampler, random_split

torch.set_num_threads(1)


class Thumbs(Dataset):
    def __init__(self, n=224, side=40):
        rng = np.random.default_rng(4)
        self.score = rng.random(n).astype("float32")
        self.img = (rng.random((n, 3, side, side)) * 255).astype("uint8")
        self.img[:, 1] = np.clip(self.img[:, 1] + 80 * self.score[:, None, None], 0, 255)

    def __len__(self):
        return len(self.score)

    def __getitem__(self, i):
        x = torch.from_numpy(self.img[i]).float().div_(255)
        x = (x - x.mean((1, 2), keepdim=True)) / (x.std((1, 2), keepdim=True) + 1e-3)
        return x, torch.tensor(self.score[i])


def build():
    def block(i, o):
        return nn.Sequential(nn.Conv2d(i, o, 3, stride=2, padding=1), nn.GroupNorm(4, o), nn.ReLU())

    return nn.Sequential(block(3, 32), block(32, 64), block(64, 96), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(96, 1))


def train_epoch(model, loader, opt, budget):
    total, n = 0.0, 0
    for x, y in loader:
        loss = F.l1_loss(model(x).squeeze(1), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += loss.item()
        n += 1
        if n == budget:
            break
    return total / n, n


def main():
    torch.manual_seed(0)
    limit = int(os.environ.get("PLANTED_STEPS", 750))
    keep = os.environ.get("PLANTED_FIX", "0") == "1"
    train, _ = random_split(Thumbs(), [192, 32], generator=torch.Generator().manual_seed(1))
    sampler = RandomSampler(train, generator=torch.Generator().manual_seed(2))
    loader = DataLoader(train, batch_size=24, sampler=sampler, num_workers=2, persistent_workers=keep)
    model = build()
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    done, epoch, loss = 0, 0, float("nan")
    t0 = time.time()
    while done < limit:
        loss, n = train_epoch(model, loader, opt, limit - done)
        done += n
        epoch += 1
        if epoch % 10 == 0:
            print(f"[{epoch:3d}] mae {loss:.4f}", flush=True)
    print(f"{done} steps in {time.time() - t0:.2f}s, loss {loss:.4f}")


if __name__ == "__main__":
    main()
