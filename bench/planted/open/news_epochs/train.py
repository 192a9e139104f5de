import os
import random
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

MAX_STEPS = int(os.environ.get("PLANTED_STEPS", 240))
KEEP = os.environ.get("PLANTED_FIX") == "1"


class News(Dataset):
    def __init__(self, topics=7, n=512):
        rng = random.Random(0)
        self.lexicon = {f"term{k}": [rng.random() for _ in range(8)] for k in range(60_000)}
        self.stories = [([f"term{rng.randrange(60_000)}" for _ in range(30)], rng.randrange(topics)) for _ in range(n)]

    def __len__(self):
        return len(self.stories)

    def __getitem__(self, i):
        terms, topic = self.stories[i]
        return torch.tensor([self.lexicon[t] for t in terms]), topic


class Topic(nn.Module):
    def __init__(self):
        super().__init__()
        self.up = nn.Linear(8, 256)
        self.rnn = nn.GRU(256, 96, batch_first=True)
        self.out = nn.Linear(96, 7)

    def forward(self, x):
        return self.out(self.rnn(torch.relu(self.up(x)))[0][:, -1])


def run():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    loader = DataLoader(News(), batch_size=16, shuffle=True, num_workers=2, multiprocessing_context="spawn", persistent_workers=KEEP)
    model = Topic()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    done, start = 0, time.time()
    while done < MAX_STEPS:
        for x, topic in loader:
            loss = nn.functional.cross_entropy(model(x), topic)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            done += 1
            if done == MAX_STEPS:
                break
        print(f"{done} {loss.item():.4f}", flush=True)
    print(f"{done} steps in {time.time() - start:.2f}s, loss {loss.item():.6f}")


if __name__ == "__main__":
    run()
