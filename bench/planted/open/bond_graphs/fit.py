"""Graph transformer on molecules; solubility regression."""

import os
import time

import torch
from torch import nn
from torch.utils.data import DataLoader

from batching import join, prepare
from molecules import ELEMENTS, library

PAD = len(ELEMENTS)


class Layer(nn.Module):
    def __init__(self, width: int, heads: int):
        super().__init__()
        self.heads = heads
        self.norm = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.near = nn.Parameter(torch.linspace(0.1, 1.0, heads))
        self.out = nn.Sequential(nn.Linear(width, 2 * width), nn.ReLU(), nn.Linear(2 * width, width))

    def forward(self, x, paths, padding):
        b, n, c = x.shape
        q, k, v = self.qkv(self.norm(x)).view(b, n, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        bias = (-self.near[:, None, None] * paths.unsqueeze(1)).masked_fill(padding[:, None, None], -1e4)
        y = nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=bias)
        return x + self.out(y.transpose(1, 2).reshape(b, n, c))


class Solubility(nn.Module):
    def __init__(self, width: int = 32, depth: int = 2, heads: int = 4):
        super().__init__()
        self.kind = nn.Embedding(PAD + 1, width, padding_idx=PAD)
        self.layers = nn.ModuleList(Layer(width, heads) for _ in range(depth))
        self.head = nn.Linear(width, 1)

    def forward(self, kinds, paths):
        padding = kinds == PAD
        x = self.kind(kinds)
        for layer in self.layers:
            x = layer(x, paths, padding)
        keep = (~padding).unsqueeze(-1)
        return self.head((x * keep).sum(1) / keep.sum(1)).squeeze(-1)


def main():
    torch.manual_seed(21)
    torch.set_num_threads(1)
    most = int(os.environ.get("PLANTED_STEPS", 480))
    molecules = library(640)
    prepare(molecules)
    loader = DataLoader(molecules, batch_size=16, shuffle=True, collate_fn=join)
    model = Solubility()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    start, step, epoch = time.perf_counter(), 0, 0
    while step < most:
        losses = []
        for kinds, paths, target in loader:
            loss = nn.functional.mse_loss(model(kinds, paths), target)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.detach())
            step += 1
            if step == most:
                break
        epoch += 1
        print(f"epoch {epoch:3d}: rmse {torch.stack(losses).mean().sqrt():.4f}")
    print(f"{step} steps in {time.perf_counter() - start:.3f}s, loss {losses[-1].item():.5f}")


if __name__ == "__main__":
    main()
