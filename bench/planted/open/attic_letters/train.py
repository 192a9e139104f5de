"""Dates old letters from their words; the archive is kept in memory as Python objects."""

import os
import random
import time

import torch
from accelerate import Accelerator
from accelerate.utils import release_memory, set_seed
from torch import nn

FREE_EVERY = 100 if os.environ.get("PLANTED_FIX") == "1" else 1


class Archive:
    def __init__(self, letters=30_000):
        rng = random.Random(5)
        self.letters = [[{"word": rng.randrange(3000), "line": [k, k + 1]} for k in range(4)] for _ in range(letters)]
        self.year = [words[0]["word"] % 7 for words in self.letters]

    def sample(self, rng, size):
        picks = [rng.randrange(len(self.letters)) for _ in range(size)]
        ids = torch.tensor([[w["word"] for w in self.letters[p]] for p in picks])
        return ids, torch.tensor([self.year[p] for p in picks])


def main():
    torch.set_num_threads(1)
    set_seed(38)
    steps = int(os.environ.get("PLANTED_STEPS", 150))
    archive, rng = Archive(), random.Random(1)
    accelerator = Accelerator(cpu=True)
    model = nn.Sequential(nn.Embedding(3000, 48), nn.Flatten(), nn.Linear(192, 256), nn.ReLU(), nn.Linear(256, 7))
    model, optimizer = accelerator.prepare(model, torch.optim.Adam(model.parameters(), lr=2e-3))
    start = time.time()
    for step in range(1, steps + 1):
        ids, year = archive.sample(rng, 96)
        loss = nn.functional.cross_entropy(model(ids), year)
        accelerator.backward(loss)
        optimizer.step()
        optimizer.zero_grad()
        if step % FREE_EVERY == 0:
            ids, year = release_memory(ids, year)
    accelerator.print(f"{steps} steps in {time.time() - start:.2f}s, loss {loss.item():.6f}")


if __name__ == "__main__":
    main()
