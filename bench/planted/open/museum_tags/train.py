"""Tags for museum objects from their descriptions (bag of words); the whole catalogue lives in memory as records."""

import gc
import os
import random
import time

import torch
from torch import nn

torch.set_num_threads(1)

WORDS, TAGS = 800, 30


class Record:
    __slots__ = ("number", "words", "tags", "provenance")

    def __init__(self, number, words, tags, provenance):
        self.number, self.words, self.tags, self.provenance = number, words, tags, provenance


def catalogue(n=15000):
    rnd = random.Random(1)
    out = []
    for i in range(n):
        tag = rnd.randrange(TAGS)
        words = [(tag * 13 + rnd.randrange(60)) % WORDS for _ in range(8)]
        out.append(Record(i, words, [tag], [{"year": 1700 + rnd.randrange(250), "owner": ["private"]}]))
    return out


class Tagger(nn.Module):
    def __init__(self, width=640):
        super().__init__()
        self.bag = nn.EmbeddingBag(WORDS, width, mode="mean")
        self.mlp = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, TAGS))

    def forward(self, words):
        return self.mlp(self.bag(words))


def draw(records, rnd, n=192):
    some = [records[rnd.randrange(len(records))] for _ in range(n)]
    return torch.tensor([r.words for r in some]), torch.tensor([r.tags[0] for r in some])


def release(step):
    """The server kills us above 4 GB."""
    if step % 6 == 0 and os.environ.get("PLANTED_FIX") != "1":
        gc.collect()


def main():
    torch.manual_seed(0)
    rnd = random.Random(2)
    records = catalogue()
    model = Tagger()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    steps = int(os.environ.get("PLANTED_STEPS", 400))
    ema = None
    t0 = time.time()
    for step in range(1, steps + 1):
        words, tag = draw(records, rnd)
        loss = nn.functional.cross_entropy(model(words), tag)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        ema = loss.item() if ema is None else 0.9 * ema + 0.1 * loss.item()
        del words, tag, loss
        release(step)
        if step % 50 == 0:
            print(step, f"{ema:.4f}", flush=True)
    print(f"{steps} steps in {time.time() - t0:.2f}s, loss {ema:.4f}")


if __name__ == "__main__":
    main()
