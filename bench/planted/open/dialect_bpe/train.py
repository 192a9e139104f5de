import os
import time

import torch
from torch import nn

from bpe import BPE
from sayings import sayings


class Speaker(nn.Module):
    def __init__(self, vocabulary, width=64):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width)
        self.rnn = nn.LSTM(width, width, batch_first=True)
        self.out = nn.Linear(width, vocabulary)

    def forward(self, ids):
        return self.out(self.rnn(self.embed(ids))[0])


def main():
    torch.manual_seed(1)
    torch.set_num_threads(1)
    texts = sayings(int(os.environ.get("SAYINGS", 1100)))
    bpe = BPE().train(texts)
    stream = torch.tensor([i for text in texts for i in bpe.encode(text)])
    print(f"{len(bpe.index)} symbols, {len(stream)} of them in the text")
    steps, batch, length = int(os.environ.get("PLANTED_STEPS", 700)), 16, 40
    model = Speaker(len(bpe.index))
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    began = time.perf_counter()
    for step in range(1, steps + 1):
        at = torch.randint(len(stream) - length - 1, (batch, 1)) + torch.arange(length + 1)
        rows = stream[at]
        loss = nn.functional.cross_entropy(model(rows[:, :-1]).transpose(1, 2), rows[:, 1:])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 30 == 0:
            print(f"{step}: loss {loss.item():.4f}")
    print(f"{steps} steps in {time.perf_counter() - began:.3f}s, loss {loss.item():.5f}")


if __name__ == "__main__":
    main()
