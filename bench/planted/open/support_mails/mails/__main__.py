import os
import time

import torch
from torch import nn

from .source import inbox
from .text import BUCKETS, batches, featurise


class Router(nn.Module):
    def __init__(self, dim=32):
        super().__init__()
        self.table = nn.EmbeddingBag(BUCKETS, dim, mode="mean")
        self.head = nn.Sequential(nn.Linear(dim, 64), nn.ReLU(), nn.Linear(64, 4))

    def forward(self, ids, offsets):
        return self.head(self.table(ids, offsets))


def main():
    torch.set_num_threads(1)
    torch.manual_seed(8)
    limit = int(os.environ.get("PLANTED_STEPS", 700))
    model = Router()
    optimiser = torch.optim.Adagrad(model.parameters(), lr=0.05)
    began = time.time()
    stream = batches(featurise(inbox(seed=77)), size=64)
    for n, (ids, offsets, queues) in enumerate(stream, start=1):
        logits = model(torch.from_numpy(ids), torch.from_numpy(offsets))
        loss = nn.functional.cross_entropy(logits, torch.from_numpy(queues))
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        if n % 100 == 0:
            print(f"{n:5d} {loss.item():.4f}", flush=True)
        if n >= limit:
            break
    print(f"{n} steps in {time.time() - began:.2f}s, loss {loss.item():.6f}")


main()
