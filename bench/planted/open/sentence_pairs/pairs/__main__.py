import os
import time

import torch
from torch import nn
from torch.utils.data import DataLoader

from pairs.batching import SentencePairs, stack_pairs


class Matcher(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(800, 32)
        self.grid = nn.Sequential(nn.Conv2d(1, 8, 3, stride=2), nn.ReLU(), nn.Conv2d(8, 8, 3, stride=2), nn.ReLU(), nn.Flatten())
        self.out = nn.Linear(8 * 81 + 32, 1)

    def forward(self, tokens, overlap):
        return self.out(torch.cat([self.grid(overlap[:, None]), self.embed(tokens).mean(1)], 1)).squeeze(1)


def fit(steps):
    model = Matcher()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    loader = DataLoader(SentencePairs(), batch_size=32, shuffle=True, collate_fn=stack_pairs)
    n, start = 0, time.time()
    while n < steps:
        for tokens, overlap, same in loader:
            loss = nn.functional.binary_cross_entropy_with_logits(model(tokens, overlap), same)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            n += 1
            if n == steps:
                break
    print(f"{n} steps in {time.time() - start:.2f}s, loss {loss.item():.6f}")


if __name__ == "__main__":
    torch.set_num_threads(1)
    torch.manual_seed(6)
    fit(int(os.environ.get("PLANTED_STEPS", 1200)))
