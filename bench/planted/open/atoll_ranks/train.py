"""Data-parallel training by hand on two processes."""

import os
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn

from logbooks import WORDS, by_length, entries
from shares import batches_of, share, shuffled

WORLD = 2
STEPS = int(os.environ.get("PLANTED_STEPS", 240))


class Reader(nn.Module):
    def __init__(self, width=40):
        super().__init__()
        self.embed = nn.Embedding(WORDS, width, padding_idx=0)
        self.rnn = nn.GRU(width, width, batch_first=True, bidirectional=True)
        self.head = nn.Linear(2 * width, 2)

    def forward(self, ids):
        return self.head(self.rnn(self.embed(ids))[0].mean(1))


def pad(rows):
    ids = nn.utils.rnn.pad_sequence([words for words, _ in rows], batch_first=True)
    return ids, torch.tensor([good for _, good in rows])


def reduce_gradients(model):
    flat = nn.utils.parameters_to_vector([p.grad for p in model.parameters()])
    dist.all_reduce(flat)
    flat /= WORLD
    at = 0
    for p in model.parameters():
        p.grad.copy_(flat[at : at + p.numel()].view_as(p))
        at += p.numel()


def work(rank, port):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    dist.init_process_group("gloo", rank=rank, world_size=WORLD)
    torch.manual_seed(2)
    torch.set_num_threads(1)
    model = Reader()
    optimizer = torch.optim.Adam(model.parameters(), 2e-3)
    mine = share(batches_of(by_length(entries()), 16), rank, WORLD)
    dist.barrier()
    began, step, epoch = time.perf_counter(), 0, 0
    while step < STEPS:
        for rows in shuffled(mine, epoch):
            ids, good = pad(rows)
            loss = nn.functional.cross_entropy(model(ids), good)
            optimizer.zero_grad()
            loss.backward()
            reduce_gradients(model)
            optimizer.step()
            step += 1
            if rank == 0 and step % 25 == 0:
                print(f"epoch {epoch} step {step}: loss {loss.item():.4f}", flush=True)
            if step == STEPS:
                break
        epoch += 1
    if rank == 0:
        print(f"{STEPS} steps in {time.perf_counter() - began:.3f}s, loss {loss.item():.5f}", flush=True)
    dist.destroy_process_group()


def free_port():
    import socket

    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


if __name__ == "__main__":
    mp.spawn(work, args=(free_port(),), nprocs=WORLD)
