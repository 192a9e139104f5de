"""Ranks of a data-parallel loop over gloo. Arguments: name=value; see the defaults below. Rank `late` is the slow one."""

import os
import sys
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

OPTIONS = {"slow": "", "ms": 12.0, "steps": 40, "accumulate": 1, "wrap": "ddp", "launch": "env", "reduce_loss": 0, "port": 29621, "late": 1}
for argument in sys.argv[1:]:
    name, value = argument.split("=", 1)
    OPTIONS[name] = type(OPTIONS[name])(value)
torch.set_num_threads(1)


class Spin(torch.autograd.Function):
    """Works in backward for a while."""

    @staticmethod
    def forward(ctx, x, ms):
        ctx.ms = ms
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        time.sleep(ctx.ms / 1000)
        return gradient, None


class Net(nn.Module):
    def __init__(self, slow):
        super().__init__()
        self.first, self.second, self.slow = nn.Linear(32, 256), nn.Linear(256, 8), slow

    def forward(self, x):
        x = Spin.apply(self.first(x).relu(), OPTIONS["ms"] if self.slow else 0.0)
        return self.second(x)


def wrapped(model):
    if OPTIONS["wrap"] == "fsdp2":
        from torch.distributed.fsdp import fully_shard

        fully_shard(model.second)
        return fully_shard(model)
    if OPTIONS["wrap"] == "none":
        return model
    return DistributedDataParallel(model, find_unused_parameters=OPTIONS["wrap"] == "unused")


def train(rank):
    torch.manual_seed(0)
    slow = OPTIONS["slow"] if rank == OPTIONS["late"] else ""
    model = wrapped(Net(slow == "backward"))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    loader = torch.utils.data.DataLoader([torch.full((32,), float(i % 7)) for i in range(4 * OPTIONS["steps"] * OPTIONS["accumulate"])], 4)
    total = 0.0
    for number, x in enumerate(loader):
        if slow == "data":
            time.sleep(OPTIONS["ms"] / 1000)
        loss = model(x).square().mean() / OPTIONS["accumulate"]
        loss.backward()
        if OPTIONS["wrap"] == "none":
            for parameter in model.parameters():
                dist.all_reduce(parameter.grad)
        if (number + 1) % OPTIONS["accumulate"]:
            continue
        optimizer.step()
        optimizer.zero_grad()
        if OPTIONS["reduce_loss"]:
            shown = loss.detach().clone()
            dist.all_reduce(shown)
            total += float(shown)
    print(f"{rank} {total!r} {float(loss.detach())!r}\n", end="", flush=True)  # in one piece: the ranks write to one pipe


def spawned(rank, port):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    dist.init_process_group("gloo", rank=rank, world_size=2)
    train(rank)
    dist.destroy_process_group()


if __name__ == "__main__":
    if OPTIONS["launch"] == "spawn":
        torch.multiprocessing.spawn(spawned, args=(OPTIONS["port"],), nprocs=2)
    else:
        for ours, theirs in {
            "RANK": ("SLURM_PROCID", "OMPI_COMM_WORLD_RANK"),
            "WORLD_SIZE": ("SLURM_NTASKS", "OMPI_COMM_WORLD_SIZE"),
        }.items():
            os.environ.setdefault(ours, next((os.environ[name] for name in theirs[::-1] if name in os.environ), ""))
        os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
        os.environ.setdefault("MASTER_PORT", str(OPTIONS["port"]))
        dist.init_process_group("gloo")
        train(dist.get_rank())
        dist.destroy_process_group()
