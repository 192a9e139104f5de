import os
import time

import torch
from attention import SelfAttention
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Documents(Dataset):
    def __init__(self, count=96, length=768, vocab=512):
        g = torch.Generator().manual_seed(0)
        self.ids = torch.randint(0, vocab, (count, length + 1), generator=g)
        self.ids[:, 1::2] = (self.ids[:, 0:-1:2] * 3 + 1) % vocab

    def __len__(self):
        return len(self.ids)

    def __getitem__(self, i):
        return self.ids[i, :-1], self.ids[i, 1:]


class Model(nn.Module):
    def __init__(self, vocab=512, dim=64):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.norm = nn.LayerNorm(dim)
        self.attention = SelfAttention(dim, 4)
        self.mlp = nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, 128), nn.ReLU(), nn.Linear(128, dim))
        self.out = nn.Linear(dim, vocab)

    def forward(self, ids):
        x = self.embed(ids)
        x = x + self.attention(self.norm(x))
        return self.out(x + self.mlp(x))


def main():
    torch.set_num_threads(1)
    torch.manual_seed(5)
    limit = int(os.environ.get("PLANTED_STEPS", 400))
    model = Model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loader = DataLoader(Documents(), batch_size=1, shuffle=True)
    n, start = 0, time.time()
    while n < limit:
        for x, y in loader:
            loss = nn.functional.cross_entropy(model(x).flatten(0, 1), y.flatten())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            n += 1
            if n >= limit:
                break
    print(f"{n} steps in {time.time() - start:.2f}s, loss {loss.item():.6f}")


if __name__ == "__main__":
    main()
