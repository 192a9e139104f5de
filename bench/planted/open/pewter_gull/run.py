import os

import torch

from callbacks import CollapseWatch, CosineRate, Printer
from gnn import GraphNet
from molecules import build_set
from trainer import Trainer

STEPS = int(os.environ.get("PLANTED_STEPS", "600"))
WIDTH, DEPTH, KINDS, NODES, BATCH = 192, 4, 8, 20, 24


def shuffled(arrays, batch, seed):
    g = torch.Generator().manual_seed(seed)
    n = len(arrays[0])
    while True:
        for idx in torch.randperm(n, generator=g).split(batch):
            if len(idx) == batch:
                yield tuple(x[idx] for x in arrays)


if __name__ == "__main__":
    torch.manual_seed(8)
    arrays = build_set(2000, NODES, KINDS, seed=80)
    model = GraphNet(KINDS, WIDTH, DEPTH)
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
    watched = [f"layers.{i}" for i in range(DEPTH)] + ["trunk"]
    trainer = Trainer(model, opt, [CosineRate(600), CollapseWatch(watched, every=50), Printer(every=50)])
    trainer.fit(shuffled(arrays, BATCH, 81), STEPS)
