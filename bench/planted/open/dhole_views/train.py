"""SimCLR on collar data, with a probe of the features as it goes."""

import argparse
import os

import torch
from torch import nn
from torch.nn import functional as F

from engine import Engine, Every
from herd import TwoViews, collars
from probe import Probe


def encoder(width=32):
    def block(a, b):
        return nn.Sequential(nn.Conv1d(a, b, 5, stride=2, padding=2), nn.GroupNorm(4, b), nn.ReLU())

    return nn.Sequential(block(3, width), block(width, 2 * width), block(2 * width, 2 * width), nn.AdaptiveAvgPool1d(1), nn.Flatten())


def nt_xent(z, temperature=0.2):
    z = F.normalize(z, dim=1)
    n = len(z) // 2
    logits = (z @ z.T / temperature).fill_diagonal_(-1e9)
    return F.cross_entropy(logits, torch.arange(2 * n).roll(n))


def batches(data, size, seed):
    g = torch.Generator().manual_seed(seed)
    while True:
        order = torch.randperm(len(data), generator=g)
        yield from (data[rows] for rows in order.split(size) if len(rows) == size)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch", type=int, default=96)
    parser.add_argument("--probes", type=int, default=12, help="probes per epoch")
    args = parser.parse_args()
    if os.environ.get("PLANTED_FIX") == "1":
        args.probes = 1
    torch.manual_seed(1)
    torch.set_num_threads(1)
    data, _ = collars(4800, 1)
    bank, queries = collars(2000, 2), collars(600, 3)
    body = encoder()
    head = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 32))
    parameters = [*body.parameters(), *head.parameters()]
    optimizer = torch.optim.AdamW(parameters, 1e-3)
    views, epoch_length = TwoViews(4), len(data) // args.batch

    def update(engine, x):
        loss = nt_xent(head(body(views(x))))
        optimizer.zero_grad()
        loss.backward()
        engine.metrics["norm"] = nn.utils.clip_grad_norm_(parameters, 2.0).item()
        optimizer.step()
        return loss.item()

    engine = Engine(update, epoch_length)
    probe = Probe(body, bank, queries)
    engine.on("iteration", Every.per_epoch(args.probes, epoch_length))(probe)

    @engine.on("iteration")
    def trace(engine):
        with open("trace.txt", "a") as file:
            print(engine.iteration, engine.output, engine.metrics, file=file)

    @engine.on("epoch")
    def tell(engine):
        print(f"{engine.iteration}: loss {engine.output:.4f} {engine.metrics} best {probe.best:.3f}", flush=True)
        torch.save(body.state_dict(), "body.pt")

    limit = int(os.environ.get("PLANTED_STEPS", 5000))
    seconds = engine.run(batches(data, args.batch, 5), limit)
    print(f"{limit} steps in {seconds:.3f}s, loss {engine.output:.5f}")


if __name__ == "__main__":
    main()
