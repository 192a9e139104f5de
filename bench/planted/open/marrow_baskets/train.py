"""Item vectors from shopping baskets: the rest of a basket predicts the item that was taken out.

python train.py --batch 96 --negatives 24
"""

import argparse
import json
import os
import time

import torch
from torch import nn
from torch.nn import functional as F

from shop import Shop, Till
from streams import CONTEXT, BasketStream, Unigram


class BasketNet(nn.Module):
    def __init__(self, items, width):
        super().__init__()
        self.inside = nn.Embedding(items, width, sparse=True)
        self.outside = nn.Embedding(items, width, sparse=True)
        nn.init.normal_(self.inside.weight, std=0.05)
        nn.init.normal_(self.outside.weight, std=0.05)
        self.mix = nn.Sequential(nn.Linear(CONTEXT * width, 256), nn.SiLU(), nn.Linear(256, 128), nn.SiLU(), nn.Linear(128, width))

    def query(self, context):
        return self.mix(self.inside(context).flatten(1))

    def forward(self, context, target, negative):
        q = self.query(context)
        choices = torch.cat([target[:, None], negative], 1)
        return torch.einsum("bd,bkd->bk", q, self.outside(choices))


class Journal:
    """One JSON line per step, flushed, so that `tail -f` shows it at once."""

    def __init__(self, path):
        self.file = open(path, "w")

    def __call__(self, **fields):
        self.file.write(json.dumps(fields) + "\n")
        self.file.flush()


@torch.no_grad()
def hit_rate(model, baskets, k=50):
    rows = [b for b in baskets if len(b) > CONTEXT][:64]
    context = torch.stack([torch.as_tensor(b[:CONTEXT]) for b in rows])
    target = torch.as_tensor([int(b[CONTEXT]) for b in rows])
    scores = model.query(context) @ model.outside.weight.T
    return (scores.topk(k, 1).indices == target[:, None]).any(1).float().mean().item()


def arguments():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--batch", type=int, default=96)
    p.add_argument("--negatives", type=int, default=24)
    p.add_argument("--width", type=int, default=48)
    p.add_argument("--lr", type=float, default=0.05)
    p.add_argument("--steps", type=int, default=int(os.environ.get("PLANTED_STEPS", 9000)))
    p.add_argument("--journal", default="journal.jsonl")
    return p.parse_args()


def main():
    args = arguments()
    torch.manual_seed(3)
    torch.set_num_threads(1)
    till = Till(Shop())
    seen, kept = till.split()
    noise = Unigram(till.counts(), seed=5)
    stream = iter(BasketStream(seen, noise, args.batch, args.negatives, seed=6))
    model = BasketNet(till.items, args.width)
    dense = [p for n, p in model.named_parameters() if n.startswith("mix")]
    tables = [model.inside.weight, model.outside.weight]
    optimizers = [torch.optim.Adagrad(tables, lr=args.lr), torch.optim.AdamW(dense, lr=1e-3)]
    journal = Journal(args.journal)
    labels = torch.zeros(args.batch, dtype=torch.long)
    began = time.perf_counter()
    for step in range(1, args.steps + 1):
        context, target, negative = next(stream)
        loss = F.cross_entropy(model(context, target, negative), labels)
        for o in optimizers:
            o.zero_grad(set_to_none=True)
        loss.backward()
        norm = nn.utils.clip_grad_norm_(dense, 1.0)
        for o in optimizers:
            o.step()
        journal(step=step, loss=round(loss.item(), 5), norm=round(norm.item(), 4), items=int(target.unique().numel()))
        if step % 200 == 0:
            print(f"step {step}: loss {loss.item():.4f}, hits@50 {hit_rate(model, kept):.3f}", flush=True)
    print(f"{args.steps} steps in {time.perf_counter() - began:.3f}s, loss {loss.item():.5f}")


if __name__ == "__main__":
    main()
