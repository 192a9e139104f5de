"""Forecasts waiting times for lock keepers, as the boats come."""

import os
import time

import torch
from torch import nn

from gauge import gauges
from traffic import LOCKS, SEEN, Canal


def network(width=224):
    return nn.ModuleDict(
        {
            "lock": nn.Embedding(LOCKS, 32),
            "wait": nn.Sequential(
                nn.Linear(SEEN + 32, width),
                nn.GELU(),
                nn.Linear(width, width),
                nn.GELU(),
                nn.Linear(width, width),
                nn.GELU(),
                nn.Linear(width, 1),
            ),
        }
    )


def forecast(net, lock, seen):
    return net["wait"](torch.cat([net["lock"](lock), seen], 1)).squeeze(1)


def learn(net, opt, lock, seen, wait, weight):
    error = wait - forecast(net, lock, seen)
    loss = nn.functional.huber_loss(error * weight, torch.zeros_like(error), delta=2.0)
    opt.zero_grad()
    loss.backward()
    opt.step()
    return loss.detach(), error.detach()


def season(boats=256, reach=1000):
    torch.manual_seed(8)
    steps = int(os.environ.get("PLANTED_STEPS", 1500))
    canal, gauge, net = Canal(12), gauges(LOCKS, reach), network()
    opt = torch.optim.RMSprop(net.parameters(), 5e-4)
    began = time.perf_counter()
    for step in range(1, steps + 1):
        lock, seen, wait = canal.arrivals(boats)
        weight = torch.from_numpy(gauge.weights(lock))
        loss, error = learn(net, opt, torch.from_numpy(lock), torch.from_numpy(seen), torch.from_numpy(wait), weight)
        gauge.note(lock, error.numpy())
        if step % 100 == 0:
            print(f"{step} lockfuls: loss {loss:.4f}, off by {error.abs().median():.2f} minutes", flush=True)
    print(f"{steps} steps in {time.perf_counter() - began:.2f} s, loss {loss:.5f}")


season()
