"""Solve the heat equation of a rod with a network."""

import os
import time
import tomllib
from pathlib import Path

import torch
from field import Field, HeatEquation
from points import draw, exact
from torch.func import grad_and_value
from units import Rod


class Adam:
    """Adam on a dictionary of weights, as functions want it."""

    def __init__(self, weights: dict[str, torch.Tensor], lr: float, decay: float) -> None:
        self.lr, self.decay, self.count = lr, decay, 0
        self.mean = {name: torch.zeros_like(w) for name, w in weights.items()}
        self.square = {name: torch.zeros_like(w) for name, w in weights.items()}

    def update(self, weights: dict[str, torch.Tensor], slopes: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        self.count += 1
        rate = self.lr * self.decay**self.count * (1 - 0.999**self.count) ** 0.5 / (1 - 0.9**self.count)
        new = {}
        for name, slope in slopes.items():
            self.mean[name].lerp_(slope, 0.1)
            self.square[name].mul_(0.999).addcmul_(slope, slope, value=0.001)
            new[name] = weights[name] - rate * self.mean[name] / (self.square[name].sqrt() + 1e-8)
        return new


def main() -> None:
    config = tomllib.loads(Path(__file__).with_name("rod.toml").read_text())
    steps = int(os.environ.get("PLANTED_STEPS", config["steps"]))
    torch.manual_seed(config["seed"])
    generator = torch.Generator().manual_seed(config["seed"])
    rod = Rod(**config["rod"])
    field = Field(**config["field"])
    equation = HeatEquation(field, rod.fourier)
    weights = {name: w.detach().clone() for name, w in field.named_parameters()}
    adam = Adam(weights, **config["optimizer"])
    slopes_of = grad_and_value(equation.loss, has_aux=True)
    check = torch.rand(512, 2, generator=generator)

    began = time.perf_counter()
    for step in range(1, steps + 1):
        points = draw(**config["points"], generator=generator)
        slopes, (loss, inside) = slopes_of(weights, points)
        weights = adam.update(weights, slopes)
        if step % config["report_every"] == 0:
            error = (equation.at(weights, check) - exact(check, rod.fourier)).abs().max()
            print(f"{step} loss {loss:.5f} inside {inside:.5f} largest error {error:.4f}", flush=True)
    print(f"{steps} steps in {time.perf_counter() - began:.2f}s, loss {loss:.6f}")


if __name__ == "__main__":
    main()
