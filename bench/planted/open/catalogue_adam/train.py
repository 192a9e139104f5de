"""What does a reader borrow next? Library loans, item embeddings, sampled softmax."""

import os
import time

import numpy as np
import torch
from torch import nn

torch.set_num_threads(1)

BOOKS = 60_000
DIM = 48
HISTORY = 12
BATCH = 256
NEGATIVES = 16


class NextLoan(nn.Module):
    def __init__(self):
        super().__init__()
        self.book = nn.Embedding(BOOKS, DIM)
        nn.init.normal_(self.book.weight, std=0.05)
        self.gru = nn.GRU(DIM, DIM, batch_first=True)
        self.project = nn.Sequential(nn.Linear(DIM, 256), nn.ReLU(), nn.Linear(256, DIM))

    def forward(self, history, candidates):
        h, _ = self.gru(self.book(history))
        user = self.project(h[:, -1])
        return torch.einsum("bd,bcd->bc", user, self.book(candidates))


class Loans:
    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)

    def draw(self):
        shelf = self.rng.integers(0, 300, BATCH)
        items = shelf[:, None] * 200 + np.minimum(self.rng.geometric(0.05, (BATCH, HISTORY + 1)), 99)
        negatives = self.rng.integers(0, BOOKS, (BATCH, NEGATIVES))
        candidates = np.concatenate([items[:, -1:], negatives], axis=1)
        return torch.from_numpy(items[:, :-1]), torch.from_numpy(candidates)


def main():
    torch.manual_seed(70)
    model = NextLoan()
    options = {"lr": 2e-3, "weight_decay": 1e-4}
    if os.environ.get("PLANTED_FIX") == "1":
        options["fused"] = True
    optimizer = torch.optim.AdamW(model.parameters(), **options)
    loans = Loans(71)
    steps = int(os.environ.get("PLANTED_STEPS", 520))
    first = torch.zeros(BATCH, dtype=torch.long)
    losses = []
    t0 = time.time()
    for step in range(steps):
        history, candidates = loans.draw()
        scores = model(history, candidates)
        loss = nn.functional.cross_entropy(scores, first)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        if (step + 1) % 50 == 0:
            hit = (scores.argmax(1) == 0).float().mean().item()
            print(f"{step + 1:5d} loss {np.mean(losses[-50:]):.4f} hit@1 {hit:.3f}", flush=True)
    print(f"{steps} steps in {time.time() - t0:.2f}s, loss {np.mean(losses[-20:]):.4f}")


if __name__ == "__main__":
    main()
