"""Tide levels three hours ahead for every wet cell; each rank holds a band of the chart."""

import json
import os
import time
from pathlib import Path

import torch
import torch.distributed as dist

from chart import Estuary
from gauge import network, sum_over_ranks

conf = json.loads(Path(__file__).with_name("config.json").read_text())


def run():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(5)
    estuary = Estuary(**conf["grid"])
    band = estuary.band(*estuary.share(rank, world), conf["lags"])
    cells = int(estuary.wet.sum())
    net = network(len(conf["lags"]) + 5, **conf["net"])
    weights = list(net.parameters())
    optimizer = torch.optim.SGD(weights, nesterov=True, **conf["optimizer"])
    sky = torch.Generator().manual_seed(23)
    steps = int(os.environ.get("PLANTED_STEPS", conf["steps"]))
    dist.barrier()
    began = time.perf_counter()
    for step in range(1, steps + 1):
        hour = 8760 * torch.rand((), generator=sky)
        wind = torch.randn(2, generator=sky)
        seen, goal = band.at(hour, wind)
        loss = (net(seen).squeeze(1) - goal).square().sum() / cells
        optimizer.zero_grad()
        loss.backward()
        whole = sum_over_ranks(weights, loss)
        optimizer.step()
        if rank == 0 and step % conf["say_every"] == 0:
            print(f"{step} mse {whole.item():.4f} m2", flush=True)
    if rank == 0:
        print(f"{steps} steps in {time.perf_counter() - began:.3f} s, loss {whole.item():.5f}", flush=True)
    dist.barrier()
    dist.destroy_process_group()


run()
