"""Old ships' logbooks: which ocean is this entry from? Two processes, each with its share of the entries."""

import os
import random
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn
from entries import load_entries, shares
from torch.nn.parallel import DistributedDataParallel as DDP

common = random.Random(99)


class Reader(nn.Module):
    def __init__(self, vocab=400, dim=96):
        super().__init__()
        self.emb = nn.Embedding(vocab, dim, padding_idx=0)
        self.enc = nn.TransformerEncoderLayer(dim, 4, 192, dropout=0.0, batch_first=True)
        self.out = nn.Linear(dim, 5)

    def forward(self, ids):
        return self.out(self.enc(self.emb(ids)).mean(1))


def batch_of(entries, rnd, size=16):
    if os.environ.get("PLANTED_FIX") == "1":  # all processes in the same era at a time
        at = common.randrange(len(entries) - 64)
        entries = entries[at : at + 64]
    picked = rnd.sample(entries, size)
    width = max(len(e[0]) for e in picked)
    ids = torch.zeros(size, width, dtype=torch.long)
    for row, (tokens, _) in zip(ids, picked):
        row[: len(tokens)] = torch.tensor(tokens)
    return ids, torch.tensor([ocean for _, ocean in picked])


def voyage(rank, world, path, steps):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{path}", rank=rank, world_size=world)
    torch.manual_seed(3)
    mine = shares(load_entries(), world)[rank]
    rnd = random.Random(rank)
    model = DDP(Reader())
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    ema, start = None, time.time()
    for step in range(1, steps + 1):
        ids, ocean = batch_of(mine, rnd)
        opt.zero_grad()
        loss = nn.functional.cross_entropy(model(ids), ocean)
        loss.backward()
        opt.step()
        ema = loss.item() if ema is None else 0.95 * ema + 0.05 * loss.item()
        if step % 50 == 0 and rank == 0:
            print(f"step {step} loss {ema:.3f}", flush=True)
    if rank == 0:
        print(f"{steps} steps in {time.time() - start:.2f}s, loss {ema:.4f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    rendezvous = os.path.abspath(f"rendezvous-{os.getpid()}")
    mp.spawn(voyage, args=(2, rendezvous, int(os.environ.get("PLANTED_STEPS", 450))), nprocs=2)
    if os.path.exists(rendezvous):
        os.remove(rendezvous)
