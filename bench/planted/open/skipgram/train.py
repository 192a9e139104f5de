import os
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from vocabulary import build


class Pairs(nn.Module):
    def __init__(self, words, dim=300):
        super().__init__()
        self.centre, self.context = nn.Embedding(words, dim), nn.Embedding(words, dim)
        self.mix = nn.Sequential(nn.Linear(dim, dim), nn.Tanh(), nn.Linear(dim, 1))

    def forward(self, a, b):
        return self.mix(self.centre(a) * self.context(b)).squeeze(1)


if __name__ == "__main__":
    torch.set_num_threads(1)
    torch.manual_seed(0)
    limit = int(os.environ.get("PLANTED_STEPS", 90))
    ids, triples = build()
    a, b, score = map(torch.tensor, zip(*triples, strict=True))
    loader = DataLoader(TensorDataset(a, b, score), batch_size=256, shuffle=True)
    model = Pairs(len(ids))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    step, start = 0, time.time()
    while step < limit:
        for a, b, score in loader:
            loss = nn.functional.mse_loss(model(a, b), score)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            step += 1
            if step == limit:
                break
    print(f"{step} steps in {time.time() - start:.2f}s, loss {loss.item():.6f}")
