"""Alloys by ear, cross-validated; each fold warms up from the running average of the earlier ones."""

import os
import time

import torch
from torch import nn

from folds import Folds
from strikes import ALLOYS, Strikes


class Ear(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.conv = nn.Sequential(
            nn.Conv1d(129, width, 3, padding=1),
            nn.BatchNorm1d(width),
            nn.ReLU(),
            nn.Conv1d(width, width, 3, padding=1),
            nn.BatchNorm1d(width),
            nn.ReLU(),
        )
        self.recur = nn.GRU(width, width, batch_first=True, bidirectional=True)
        self.out = nn.Linear(2 * width, ALLOYS)

    def forward(self, x):
        h = self.conv(x.transpose(1, 2)).transpose(1, 2)
        return self.out(self.recur(h)[0].mean(1))


class Soup:
    """Mean of the folds' final weights."""

    def __init__(self):
        self.state, self.count = None, 0

    def add(self, model):
        self.count += 1
        if self.state is None:
            self.state = {k: v.detach().clone() for k, v in model.state_dict().items()}
            return
        for k, v in model.state_dict().items():
            if v.is_floating_point():
                self.state[k] += (v.detach() - self.state[k]) / self.count

    def pour(self, model):
        if self.state is not None:
            model.load_state_dict(self.state)


@torch.no_grad()
def hear(model, loader):
    model.eval()
    right = torch.cat([model(x).argmax(1) == y for x, y in loader]).float().mean().item()
    model.train()
    return right


class Budget:
    def __init__(self, steps):
        self.left = self.steps = steps

    def spend(self):
        self.left -= 1
        return self.left <= 0


def fit(train, soup, budget):
    model = Ear()
    soup.pour(model)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    for x, y in train:
        logits = model(x)
        loss = nn.functional.cross_entropy(logits, y, label_smoothing=0.05)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 2.0)
        optimizer.step()
        hits = (logits.argmax(1) == y).float().mean().item()
        with open("folds.log", "a") as file:
            file.write(f"{budget.steps - budget.left} {loss.item():.5f} {hits:.3f}\n")
        if budget.spend():
            break
    return model, loss.item()


def main():
    torch.manual_seed(60)
    torch.set_num_threads(1)
    data = Strikes(2000, 1)
    soup, budget, began = Soup(), Budget(int(os.environ.get("PLANTED_STEPS", 12000))), time.perf_counter()
    for turn, number, train, held in Folds(data, 5, 16):
        model, loss = fit(train, soup, budget)
        if budget.left <= 0:
            break
        soup.add(model)
        print(f"round {turn} fold {number}: loss {loss:.4f}, held out {hear(model, held):.3f}", flush=True)
        torch.save(model.state_dict(), f"fold{number}.pt")
    print(f"{budget.steps} steps in {time.perf_counter() - began:.3f}s, loss {loss:.5f}")


if __name__ == "__main__":
    main()
