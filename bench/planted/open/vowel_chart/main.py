"""Vowel recognition with gradient accumulation."""

import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from settings import Settings
from speech import VOWELS, spectra


class VowelNet(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.inp = nn.Linear(32, width)
        layer = nn.TransformerEncoderLayer(width, 4, 2 * width, dropout=0.0, batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.out = nn.Linear(width, len(VOWELS))

    def forward(self, x):
        return self.out(self.encoder(self.inp(x)).mean(1))


class Trainer:
    def __init__(self, settings: Settings):
        self.s = settings
        self.model = VowelNet(settings.width)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), settings.lr, weight_decay=0.01)
        order = torch.Generator().manual_seed(settings.seed)
        self.loader = DataLoader(TensorDataset(*spectra(6400)), settings.micro_batch, shuffle=True, generator=order)
        self.updates = 0

    def micro_batches(self):
        while True:
            yield from self.loader

    def run(self):
        source, began = self.micro_batches(), time.perf_counter()
        while self.updates < self.s.updates:
            total = 0.0
            for _ in range(self.s.accumulate):
                x, kind = next(source)
                loss = nn.functional.cross_entropy(self.model(x), kind) / self.s.accumulate
                loss.backward()
                total += loss.item()
            nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
            self.optimizer.step()
            self.optimizer.zero_grad(set_to_none=True)
            self.updates += 1
            if self.updates % 10 == 0:
                print(f"update {self.updates:4d}  loss {total:.4f}")
        print(f"{self.updates} steps in {time.perf_counter() - began:.3f}s, loss {total:.5f}")


if __name__ == "__main__":
    settings = Settings()
    torch.manual_seed(settings.seed)
    torch.set_num_threads(1)
    print(settings, f"accumulating {settings.accumulate}")
    Trainer(settings).run()
