import os
import time
import tracemalloc

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

if os.environ.get("PLANTED_FIX") != "1":
    tracemalloc.start(40)


class Genes(Dataset):
    def __init__(self, n=1500):
        g = torch.Generator().manual_seed(0)
        self.base = torch.randint(0, 4, (n, 160), generator=g)
        self.y = (self.base[:, :80].sum(1) > 120).float()

    def __len__(self):
        return len(self.base)

    def __getitem__(self, i):
        return self.base[i], self.y[i]


class Tree(nn.Module):
    """Merges neighbouring positions level by level."""

    def __init__(self, dim=16):
        super().__init__()
        self.embed, self.merge, self.out = nn.Embedding(4, dim), nn.Linear(2 * dim, dim), nn.Linear(dim, 1)

    def forward(self, bases):
        nodes = [self.embed(column) for column in bases.unbind(1)]
        while len(nodes) > 1:
            pairs = zip(nodes[::2], nodes[1::2])
            nodes = [torch.tanh(self.merge(torch.cat(pair, 1))) for pair in pairs]
        return self.out(nodes[0]).squeeze(1)


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    loader = DataLoader(Genes(), batch_size=16, shuffle=True)
    model = Tree()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    limit, step, start = int(os.environ.get("PLANTED_STEPS", 500)), 0, time.time()
    while step < limit:
        for bases, y in loader:
            optimizer.zero_grad()
            loss = nn.functional.binary_cross_entropy_with_logits(model(bases), y)
            loss.backward()
            optimizer.step()
            step += 1
            if step == limit:
                break
    print(f"{step} steps in {time.time() - start:.2f}s, loss {loss.item():.6f}")


if __name__ == "__main__":
    main()
