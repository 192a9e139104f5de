import os
import time

import torch
import torch.nn as nn

from data import PKSampler, make_gestures
from losses import batch_hard_triplet

SEED = 11
CLASSES, PER_CLASS = 80, 40
P, K = 24, 4
STEPS_PER_EPOCH = 100
MAX_STEPS = int(os.environ.get("PLANTED_STEPS", 1500))


class Encoder(nn.Module):
    def __init__(self, channels=6, dim=32):
        super().__init__()
        self.conv = nn.Sequential(
            nn.Conv1d(channels, 24, 7, stride=2, padding=3),
            nn.BatchNorm1d(24),
            nn.ReLU(),
            nn.Conv1d(24, 48, 5, stride=2, padding=2),
            nn.BatchNorm1d(48),
            nn.ReLU(),
            nn.Conv1d(48, 64, 3, stride=2, padding=1),
            nn.BatchNorm1d(64),
            nn.ReLU(),
        )
        self.head = nn.Linear(64, dim)

    def forward(self, x):
        return self.head(self.conv(x).mean(-1))


def train_one_epoch(model, opt, x, y, sampler, steps):
    model.train()
    total = 0.0
    for _ in range(steps):
        idx = sampler.batch()
        loss = batch_hard_triplet(model(x[idx]), y[idx])
        opt.zero_grad()
        loss.backward()
        opt.step()
        last = loss.item()
        total += last
    return total / steps, last


@torch.no_grad()
def recall_at_1(model, x, y):
    model.eval()
    emb = model(x)
    sim = -torch.cdist(emb, emb)
    sim.fill_diagonal_(float("-inf"))
    return (y[sim.argmax(1)] == y).float().mean().item()


def main():
    torch.manual_seed(SEED)
    x, y = make_gestures(CLASSES, PER_CLASS, seed=SEED)
    xv, yv = make_gestures(20, 20, seed=SEED + 1)
    sampler = PKSampler(y, P, K, SEED)
    model = Encoder()
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    done, epoch = 0, 0
    start = time.perf_counter()
    while done < MAX_STEPS:
        steps = min(STEPS_PER_EPOCH, MAX_STEPS - done)
        mean, last = train_one_epoch(model, opt, x, y, sampler, steps)
        done += steps
        epoch += 1
        print(f"epoch {epoch}: triplet {mean:.4f}  R@1 on new gestures {recall_at_1(model, xv, yv):.3f}")
    print(f"{done} steps in {time.perf_counter() - start:.2f} s, loss {last:.6f}")


if __name__ == "__main__":
    main()
