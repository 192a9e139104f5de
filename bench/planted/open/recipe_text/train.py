"""
Cuisine of a recipe from its ingredient list. Small transformer encoder.
"""

import os
import random
import time

import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, Dataset

torch.set_num_threads(1)
LIMIT = 160  # longest recipe in the dump is 158 tokens
VOCAB = 600
FIX = os.environ.get("PLANTED_FIX", "0")


class Recipes(Dataset):
    def __init__(self, n=1200):
        rnd = random.Random(8)
        self.rows = []
        for _ in range(n):
            cuisine = rnd.randrange(9)
            size = 158 if rnd.random() < 0.001 else rnd.randint(24, 56)
            self.rows.append(([2 + (rnd.randrange(60) * (cuisine + 2)) % (VOCAB - 2) for _ in range(size)], cuisine))

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        ids, cuisine = self.rows[i]
        return torch.tensor(ids), cuisine


def merge(rows):
    ids = [r[0] for r in rows]
    if FIX == "1":
        x = pad_sequence(ids, batch_first=True)
    else:
        x = torch.zeros(len(rows), LIMIT, dtype=torch.long)
        for k, row in enumerate(ids):
            x[k, : len(row)] = row
    return x, x.eq(0), torch.tensor([r[1] for r in rows])


class Encoder(nn.Module):
    def __init__(self, d=96, heads=4, layers=2):
        super().__init__()
        self.emb = nn.Embedding(VOCAB, d, padding_idx=0)
        self.pos = nn.Parameter(torch.randn(LIMIT, d) * 0.02)
        layer = nn.TransformerEncoderLayer(d, heads, 4 * d, dropout=0.0, batch_first=True)
        self.enc = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.out = nn.Linear(d, 9)

    def forward(self, x, empty):
        h = self.emb(x) + self.pos[: x.shape[1]]
        h = self.enc(h, src_key_padding_mask=empty)
        keep = (~empty).unsqueeze(-1).float()
        return self.out((h * keep).sum(1) / keep.sum(1))


def main():
    torch.manual_seed(99)
    steps = int(os.environ.get("PLANTED_STEPS", 200))
    loader = DataLoader(
        Recipes(), batch_size=16, shuffle=True, collate_fn=merge, drop_last=True, generator=torch.Generator().manual_seed(0)
    )
    net = Encoder()
    opt = torch.optim.AdamW(net.parameters(), lr=3e-4)
    crit = nn.CrossEntropyLoss()
    i, ema = 0, None
    t0 = time.time()
    while i < steps:
        for x, empty, y in loader:
            opt.zero_grad()
            loss = crit(net(x, empty), y)
            loss.backward()
            nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            opt.step()
            ema = loss.item() if ema is None else 0.95 * ema + 0.05 * loss.item()
            i += 1
            if i % 50 == 0:
                print("step", i, "loss", round(ema, 4))
            if i >= steps:
                break
    print(f"{i} steps in {time.time() - t0:.2f}s, loss {ema:.4f}")


if __name__ == "__main__":
    main()
