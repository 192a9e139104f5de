"""A physics-informed network for the quench; weights of the terms follow their gradients."""

import torch
from torch import nn
import time

from run import RunConfig, session
from sampler import Collocation
from steel import ends, residual, start


class Fourier(nn.Module):
    def __init__(self, count=24):
        super().__init__()
        self.register_buffer("rate", torch.randn(2, count, generator=torch.Generator().manual_seed(1)))

    def forward(self, x):
        angle = 3.0 * x @ self.rate
        return torch.cat([angle.sin(), angle.cos()], 1)


def network(width=48, depth=4):
    layers = [Fourier()]
    for i in range(depth):
        layers += [nn.Linear(48 if i == 0 else width, width), nn.Tanh()]
    return nn.Sequential(*layers, nn.Linear(width, 1))


class Balance:
    """Learning-rate annealing for several terms (Wang et al. 2021), every 50 steps."""

    def __init__(self, terms, rate=0.1):
        self.weight, self.rate = dict.fromkeys(terms, 1.0), rate

    def update(self, net, losses):
        parameters = [p for p in net.parameters() if p.requires_grad]
        size = {}
        for name, loss in losses.items():
            gradients = torch.autograd.grad(loss, parameters, retain_graph=True, allow_unused=True)
            size[name] = max(g.abs().max().item() for g in gradients if g is not None)
        for name in losses:
            goal = size["inside"] / (size[name] + 1e-8)
            self.weight[name] += self.rate * (min(goal, 100.0) - self.weight[name])


def main():
    config = RunConfig()
    with session(config) as run:
        net = network()
        points, balance = Collocation(384), Balance(["inside", "start", "ends"])
        optimizer = torch.optim.Adam(net.parameters(), 1e-3)
        decay = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9995)
        for step in range(1, config.steps + 1):
            inside = residual(net, points.points)
            losses = {
                "inside": inside.square().mean(),
                "start": start(net, torch.rand(96, 1) * 2 - 1).square().mean(),
                "ends": ends(net, torch.rand(96, 1)).square().mean(),
            }
            if step % 50 == 0:
                balance.update(net, losses)
            loss = sum(balance.weight[name] * value for name, value in losses.items())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            decay.step()
            points.renew(inside.detach())
            if step % 25 == 0:
                terms = ", ".join(f"{k} {v.item():.5f}" for k, v in losses.items())
                print(f"{step}: {terms}", flush=True)
            run.step()
        seconds = time.perf_counter() - run.began
    print("hottest:", run.hottest())
    print(f"{config.steps} steps in {seconds:.3f}s, loss {loss.item():.5f}")


if __name__ == "__main__":
    main()
