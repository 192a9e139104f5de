"""Urgency of radio calls, on Lightning Fabric."""

import os
import time

import torch
from lightning.fabric import Fabric
from torch import nn
from torch.utils.data import DataLoader

from encode import MAX_WORDS, Encoder
from messages import Vocabulary, log_book


class Listener(nn.Module):
    def __init__(self, words: int, width: int = 64, layers: int = 2):
        super().__init__()
        self.embed = nn.Embedding(words, width, padding_idx=0)
        self.place = nn.Parameter(torch.randn(MAX_WORDS, width) * 0.02)
        layer = nn.TransformerEncoderLayer(width, 4, 2 * width, dropout=0.0, batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.head = nn.Linear(width, 2)

    def forward(self, ids):
        empty = ids == 0
        h = self.encoder(self.embed(ids) + self.place[: ids.shape[1]], src_key_padding_mask=empty)
        h = h.masked_fill(empty.unsqueeze(-1), 0).sum(1) / (~empty).sum(1, keepdim=True)
        return self.head(h)


def main():
    fabric = Fabric(accelerator="cpu", devices=1)
    fabric.seed_everything(5)
    torch.set_num_threads(1)
    fabric.launch()
    log = log_book(2400)
    vocabulary = Vocabulary(log)
    loader = DataLoader(log, batch_size=12, shuffle=True, collate_fn=Encoder(vocabulary))
    model = Listener(len(vocabulary))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    model, optimizer = fabric.setup(model, optimizer)
    loader = fabric.setup_dataloaders(loader)

    limit = int(os.environ.get("PLANTED_STEPS", 380))
    step, began, hits, seen = 0, time.perf_counter(), 0, 0
    while step < limit:
        for ids, urgent in loader:
            logits = model(ids)
            loss = nn.functional.cross_entropy(logits, urgent)
            fabric.backward(loss)
            fabric.clip_gradients(model, optimizer, max_norm=1.0)
            optimizer.step()
            optimizer.zero_grad()
            hits, seen = hits + (logits.argmax(1) == urgent).sum().item(), seen + len(urgent)
            step += 1
            if step % 40 == 0:
                fabric.print(f"{step:4d}  loss {loss.item():.4f}  right {hits / seen:.3f}")
                hits = seen = 0
            if step == limit:
                break
    fabric.print(f"{step} steps in {time.perf_counter() - began:.3f}s, loss {loss.item():.5f}")


if __name__ == "__main__":
    main()
