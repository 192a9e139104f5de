"""Two ranks over gloo: the first argument chooses how they start and what wraps the model."""

import os
import sys

import torch
import torch.distributed as dist
from torch import nn

STEPS = 24


def train(model, save=None):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(STEPS):
        loss = model(torch.full((4, 8), 0.5)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if save and step == 11:
            import torch.distributed.checkpoint as checkpoint

            checkpoint.save({"model": model.state_dict()}, checkpoint_id=save)
    sys.stdout.write(f"loss {float(loss)!r}\n")  # in one piece: both ranks say it at once


def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))


def data_parallel(save):
    from torch.nn.parallel import DistributedDataParallel

    train(DistributedDataParallel(network()))


def fully_sharded(save):
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    model, mesh = network(), init_device_mesh("cpu", (2,))
    for layer in (model[0], model[2], model):
        fully_shard(layer, mesh=mesh)
    train(model, save)


def fully_sharded_first(save):
    """FullyShardedDataParallel, the older wrapper."""
    from torch.distributed.fsdp import FullyShardedDataParallel

    model = network()
    model[0] = FullyShardedDataParallel(model[0], device_id=torch.device("cpu"))
    train(FullyShardedDataParallel(model, device_id=torch.device("cpu")))


def compiled(save):
    from torch.nn.parallel import DistributedDataParallel

    train(torch.compile(DistributedDataParallel(network()), backend="aot_eager"))
    from torch._dynamo.utils import counters

    if dist.get_rank() == 0:
        print("compiled", counters["frames"]["total"], sum(counters["graph_break"].values()))


def accelerated(save):
    from accelerate import Accelerator

    accelerator = Accelerator(cpu=True)
    model = accelerator.prepare(network())
    optimizer = accelerator.prepare(torch.optim.SGD(model.parameters(), lr=0.1))
    for _ in range(STEPS):
        with accelerator.accumulate(model):
            loss = model(torch.full((4, 8), 0.5)).square().mean()
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()


def rank_main(rank, style, save, port):
    torch.set_num_threads(1)
    if rank is not None:
        os.environ.update(RANK=str(rank), WORLD_SIZE="2", MASTER_ADDR="127.0.0.1", MASTER_PORT=port)
    if style != "accelerated":
        dist.init_process_group("gloo")
    globals()[style](save)
    if dist.is_initialized():
        dist.barrier()  # gloo's threads abort where one rank ends while the other still talks to it
        dist.destroy_process_group()


if __name__ == "__main__":
    style, save, port = sys.argv[1:4]
    if port == "launched":
        rank_main(None, style, save, port)
    else:
        torch.multiprocessing.spawn(rank_main, (style, save, port), nprocs=2)
