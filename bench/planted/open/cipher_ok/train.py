"""Break a toy substitution cipher: seq2seq-less, a plain encoder. accelerate."""

import os
import time

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.set_num_threads(1)
LETTERS, LENGTH = 26, 48


def messages(n=2048):
    g = torch.Generator().manual_seed(0)
    key = torch.randperm(LETTERS, generator=g)
    plain = torch.randint(0, LETTERS, (n, LENGTH), generator=g)
    return TensorDataset(key[plain], plain)


class Breaker(nn.Module):
    def __init__(self, dim=192):
        super().__init__()
        self.emb = nn.Embedding(LETTERS, dim)
        layer = nn.TransformerEncoderLayer(dim, 6, 4 * dim, dropout=0.0, batch_first=True, norm_first=True)
        self.enc = nn.TransformerEncoder(layer, 3, enable_nested_tensor=False)
        self.out = nn.Linear(dim, LETTERS)

    def forward(self, x):
        return self.out(self.enc(self.emb(x)))


def main():
    set_seed(5)
    accelerator = Accelerator(cpu=True)
    model = Breaker()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=True)
    loader = DataLoader(messages(), batch_size=32, shuffle=True, drop_last=True)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    total = int(os.environ.get("PLANTED_STEPS", 90))
    step, ema = 0, None
    t0 = time.time()
    while step < total:
        for cipher, plain in loader:
            with accelerator.accumulate(model):
                loss = nn.functional.cross_entropy(model(cipher).flatten(0, 1), plain.flatten())
                accelerator.backward(loss)
                accelerator.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                optimizer.zero_grad()
            step += 1
            ema = loss.item() if ema is None else 0.9 * ema + 0.1 * loss.item()
            if step % 20 == 0:
                accelerator.print(f"step {step} loss {ema:.4f}")
            if step == total:
                break
    accelerator.print(f"{step} steps in {time.time() - t0:.2f}s, loss {ema:.4f}")


if __name__ == "__main__":
    main()
