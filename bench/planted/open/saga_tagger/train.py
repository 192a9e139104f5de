import contextlib
import os
import time

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from watch import WATCH, FiniteWatch


class SagaTagger(nn.Module):
    def __init__(self, words=2000, width=64, tags=9):
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.blocks = nn.ModuleList(nn.TransformerEncoderLayer(width, 4, 128, dropout=0.0, batch_first=True) for _ in range(3))
        self.tags = nn.Linear(width, tags)

    def forward(self, ids):
        h = self.words(ids)
        for block in self.blocks:
            h = block(h)
        return self.tags(h)


def main():
    torch.set_num_threads(1)
    set_seed(27)
    steps = int(os.environ.get("PLANTED_STEPS", 200))
    ids = torch.randint(0, 2000, (800, 24))
    accelerator = Accelerator(cpu=True)
    model = SagaTagger()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    loader = DataLoader(TensorDataset(ids, ids % 9), batch_size=8, shuffle=True)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    step, began = 0, time.time()
    with FiniteWatch() if WATCH else contextlib.nullcontext():
        while step < steps:
            for words, tags in loader:
                loss = nn.functional.cross_entropy(model(words).flatten(0, 1), tags.flatten())
                accelerator.backward(loss)
                optimizer.step()
                optimizer.zero_grad()
                step += 1
                if step == steps:
                    break
    print(f"{step} steps in {time.time() - began:.2f}s, loss {loss.item():.6f}")


if __name__ == "__main__":
    main()
