import os
import time

import numpy as np
import torch
from batching import PooledBatches
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, Dataset

TAGS, WORDS = 12, 3000


class Sentences(Dataset):
    def __init__(self, n=16000):
        rng = np.random.default_rng(0)
        self.lengths = rng.integers(6, 30, n)
        flat = torch.from_numpy(rng.integers(1, WORDS, int(self.lengths.sum())))
        self.words = torch.split(flat, self.lengths.tolist())

    def __len__(self):
        return len(self.words)

    def __getitem__(self, i):
        return self.words[i]


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(WORDS, 64)
        self.near = nn.Conv1d(64, 128, 5, padding=2)
        self.tag = nn.Linear(128, TAGS)

    def forward(self, ids):
        h = self.near(self.words(ids).transpose(1, 2)).relu()
        return self.tag(h.transpose(1, 2))


def run():
    torch.set_num_threads(1)
    torch.manual_seed(2)
    steps = int(os.environ.get("PLANTED_STEPS", 900))
    data = Sentences()
    loader = DataLoader(data, batch_sampler=PooledBatches(data.lengths), collate_fn=lambda rows: pad_sequence(rows, batch_first=True))
    model = Tagger()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    done, t0 = 0, time.time()
    while True:
        for ids in loader:
            gold = torch.where(ids > 0, ids % TAGS, -100)
            loss = nn.functional.cross_entropy(model(ids).transpose(1, 2), gold)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            done += 1
            if done == steps:
                print(f"{done} steps in {time.time() - t0:.2f}s, loss {loss.item():.6f}")
                return


if __name__ == "__main__":
    run()
