"""An ensemble of networks trained at once with torch.func; its spread says how sure it is."""

import argparse
import copy
import os
import time
from contextlib import nullcontext

import torch
from torch import nn
from torch.func import functional_call, grad_and_value, stack_module_state, vmap

from fields import TRAITS, Ahead, Bootstrap, Fields


class Member(nn.Module):
    def __init__(self, width=256):
        super().__init__()
        self.enter = nn.Linear(TRAITS, width)
        self.middle = nn.ModuleList(nn.Linear(width, width) for _ in range(3))
        self.leave = nn.Linear(width, 2)

    def forward(self, x):
        h = torch.relu(self.enter(x))
        for layer in self.middle:
            h = h + torch.relu(layer(h))
        return self.leave(h)


class Ensemble:
    def __init__(self, members):
        models = [Member() for _ in range(members)]
        self.weights, self.buffers = stack_module_state(models)
        self.shape = copy.deepcopy(models[0]).to("meta")
        self.slopes = vmap(grad_and_value(self.loss), randomness="different")

    def call(self, weights, buffers, x):
        return functional_call(self.shape, (weights, buffers), (x,))

    def loss(self, weights, buffers, x, y):
        mean, log_var = self.call(weights, buffers, x).unbind(1)
        log_var = log_var.clamp(-6, 4)
        return (0.5 * torch.exp(-log_var) * (y - mean) ** 2 + 0.5 * log_var).mean()

    @torch.no_grad()
    def spread(self, x):
        out = vmap(self.call, in_dims=(0, 0, None))(self.weights, self.buffers, x)
        return out[..., 0].std(0).mean().item(), out[..., 0].mean(0)


class ByHandSGD:
    """Momentum and decay for a dictionary of stacked weights."""

    def __init__(self, weights, lr, momentum=0.9):
        self.names, self.lr, self.momentum = list(weights), lr, momentum
        self.speed = [torch.zeros_like(weights[n]) for n in self.names]

    @torch.no_grad()
    def step(self, weights, slopes):
        values, downhill = [weights[n] for n in self.names], [slopes[n] for n in self.names]
        torch._foreach_mul_(self.speed, self.momentum)
        torch._foreach_add_(self.speed, downhill)
        torch._foreach_add_(values, self.speed, alpha=-self.lr)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--members", type=int, default=4)
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--anomaly", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(13)
    torch.set_num_threads(1)
    train, held = Fields(12000, 1), Fields(200, 2)
    ensemble = Ensemble(args.members)
    batches = Ahead(Bootstrap(train, args.members, args.batch, 3))
    sgd = ByHandSGD(ensemble.weights, 0.005)
    steps, began = int(os.environ.get("PLANTED_STEPS", 4000)), time.perf_counter()
    guard = torch.autograd.detect_anomaly() if args.anomaly else nullcontext()
    with guard:
        for step, (x, y) in enumerate(batches, 1):
            slopes, losses = ensemble.slopes(ensemble.weights, ensemble.buffers, x, y)
            sgd.step(ensemble.weights, slopes)
            each = [round(value, 4) for value in losses.tolist()]
            if step % 10 == 0:
                print(step, *each, flush=True)
            if step % 100 == 0:
                spread, mean = ensemble.spread(held.x)
                error = (mean - held.y).abs().mean().item()
                print(f"spread {spread:.4f}, error {error:.4f}", flush=True)
                torch.save(ensemble.weights, "ensemble.pt")
            if step == steps:
                break
    print(f"{steps} steps in {time.perf_counter() - began:.3f}s, loss {losses.mean().item():.5f}")


if __name__ == "__main__":
    main()
