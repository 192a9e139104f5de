"""Labels genes by their exon signal; genes are short, some are very long."""

import os
import time

import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, Dataset

ARRANGED = os.environ.get("PLANTED_FIX") == "1"


class Genes(Dataset):
    def __init__(self, n=1280):
        g = torch.Generator().manual_seed(11)
        lengths = torch.where(torch.rand(n, generator=g) < 0.07, 520, 36) + torch.randint(0, 24, (n,), generator=g)
        if ARRANGED:
            lengths = lengths.sort().values
        self.genes = [torch.randn(k, 12, generator=g) for k in lengths.tolist()]

    def __len__(self):
        return len(self.genes)

    def __getitem__(self, i):
        return self.genes[i]


def gather(genes):
    lengths = torch.tensor([len(gene) for gene in genes])
    signal = pad_sequence(genes, batch_first=True)
    return signal, torch.arange(signal.shape[1])[None] >= lengths[:, None]


class Caller(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.lift = nn.Linear(12, width)
        layer = nn.TransformerEncoderLayer(width, 4, 128, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.call = nn.Linear(width, 2)

    def forward(self, signal, gaps):
        return self.call(self.encoder(self.lift(signal), src_key_padding_mask=gaps))


def main():
    torch.set_num_threads(1)
    torch.manual_seed(7)
    limit, step = int(os.environ.get("PLANTED_STEPS", 90)), 0
    order = torch.randperm(80, generator=torch.Generator().manual_seed(3)).tolist()
    batches = [list(range(16 * b, 16 * b + 16)) for b in order]
    loader = DataLoader(Genes(), batch_sampler=batches, collate_fn=gather)
    model = Caller()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    began = time.time()
    while step < limit:
        for signal, gaps in loader:
            exon = (signal[..., 0] > 0.5).long().masked_fill(gaps, -100)
            loss = nn.functional.cross_entropy(model(signal, gaps).transpose(1, 2), exon)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            step += 1
            if step == limit:
                break
    print(f"{step} steps in {time.time() - began:.2f}s, loss {loss.item():.6f}")


if __name__ == "__main__":
    main()
