"""Pollen field between stations: learned weights on a fixed set of Gaussian bumps plus a small net. Functional style."""

import os
import time
from functools import lru_cache

import torch
from torch import nn
from torch.func import functional_call, grad_and_value

torch.set_num_threads(1)
POINTS, STATIONS = 1000, 500


def memo(f):
    return lru_cache(maxsize=None)(f) if os.environ.get("PLANTED_FIX") == "1" else f


class Geography:
    def __init__(self, seed):
        g = torch.Generator().manual_seed(seed)
        self.points = torch.rand(POINTS, 2, generator=g)
        self.stations = torch.rand(STATIONS, 2, generator=g)

    @memo
    def bumps(self):
        """Bumps of all stations at all points, whitened against each other."""
        reach = torch.exp(-(torch.cdist(self.points, self.stations) ** 2) / 0.02)
        between = torch.exp(-(torch.cdist(self.stations, self.stations) ** 2) / 0.02)
        factor = torch.linalg.cholesky(between + 0.05 * torch.eye(STATIONS))
        return torch.linalg.solve_triangular(factor, reach.T, upper=False).T


class Field(nn.Module):
    def __init__(self, width=160):
        super().__init__()
        self.weights = nn.Linear(STATIONS, width, bias=False)
        self.weather = nn.Linear(12, width)
        self.deep = nn.Sequential(nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 1))

    def forward(self, bumps, weather):
        return self.deep(self.weights(bumps) + self.weather(weather)).squeeze(-1)


def main():
    torch.manual_seed(1)
    land, field = Geography(2), Field()
    params = {k: v.detach().clone() for k, v in field.named_parameters()}
    speed = {k: torch.zeros_like(v) for k, v in params.items()}
    g = torch.Generator().manual_seed(3)
    truth = torch.sin(6 * land.points[:, 0]) * torch.cos(5 * land.points[:, 1])

    def objective(p, weather, pollen):
        return nn.functional.mse_loss(functional_call(field, p, (land.bumps(), weather)), pollen)

    slope = grad_and_value(objective)
    steps = int(os.environ.get("PLANTED_STEPS", 930))
    began = time.time()
    for step in range(steps):
        weather = torch.randn(12, generator=g).expand(POINTS, 12)
        pollen = truth * (1 + 0.1 * weather[0, 0])
        gradients, loss = slope(params, weather, pollen)
        for k in params:
            speed[k] = 0.9 * speed[k] + gradients[k]
            params[k] = params[k] - 0.01 * speed[k]
        if step % 50 == 0:
            print(step, loss.item(), flush=True)
    print(f"{steps} steps in {time.time() - began:.2f}s, loss {loss.item():.5f}")


if __name__ == "__main__":
    main()
