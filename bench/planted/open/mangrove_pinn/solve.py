"""Solve for the salinity of a creek with a physics-informed network."""

import argparse
import logging
import os
import time

import torch
from guards import guarded, timed
from physics import Creek, Salinity, residual

log = logging.getLogger("mangrove")


class Points:
    """Collocation points, drawn anew where the residual is large."""

    def __init__(self, count: int, seed: int, renew: float = 0.25) -> None:
        self.generator = torch.Generator().manual_seed(seed)
        self.renew, self.inside = renew, torch.rand(count, 2, generator=self.generator)

    def boundary(self, count: int) -> torch.Tensor:
        return torch.rand(count, generator=self.generator)

    @timed("resampling")
    def resample(self, residuals: torch.Tensor) -> None:
        fresh = int(self.renew * len(self.inside))
        keep = residuals.abs().topk(len(self.inside) - fresh).indices
        self.inside = torch.cat([self.inside.detach()[keep], torch.rand(fresh, 2, generator=self.generator)])


class Solver:
    def __init__(self, options: argparse.Namespace) -> None:
        torch.manual_seed(options.seed)
        self.creek = Creek()
        self.model = Salinity(options.bands, options.width, options.depth)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=options.lr)
        self.points = Points(options.points, options.seed)
        self.resample_every, self.weights = options.resample_every, {"equation": 1.0, "inflow": 10.0, "start": 10.0}
        self.step = 0

    def parts(self) -> tuple[dict[str, torch.Tensor], torch.Tensor]:
        left = residual(self.model, self.points.inside.clone(), self.creek)
        t, x = self.points.boundary(64), self.points.boundary(64)
        inflow = self.model(torch.stack([torch.zeros_like(t), t], dim=1)) - self.creek.boundary(t)
        start = self.model(torch.stack([x, torch.zeros_like(x)], dim=1)) - self.creek.initial(x)
        return {"equation": left.square().mean(), "inflow": inflow.square().mean(), "start": start.square().mean()}, left.detach()

    @guarded
    def update(self) -> dict[str, float]:
        self.optimizer.zero_grad()
        parts, left = self.parts()
        loss = sum(self.weights[name] * value for name, value in parts.items())
        loss.backward()
        self.optimizer.step()
        self.step += 1
        if self.step % self.resample_every == 0:
            self.points.resample(left)
        return {"loss": loss.item(), **{name: value.item() for name, value in parts.items()}}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--points", type=int, default=128)
    parser.add_argument("--bands", type=int, default=16)
    parser.add_argument("--width", type=int, default=40)
    parser.add_argument("--depth", type=int, default=6)
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--resample-every", type=int, default=5)
    parser.add_argument("--seed", type=int, default=19)
    parser.add_argument("--steps", type=int, default=int(os.environ.get("PLANTED_STEPS", "320")))
    options = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    solver, figures = Solver(options), {}
    began = time.perf_counter()
    while solver.step < options.steps:
        figures = solver.update()
        if solver.step % 10 == 0:
            log.info("%d %s", solver.step, " ".join(f"{name} {value:.5f}" for name, value in figures.items()))
    print(f"{solver.step} steps in {time.perf_counter() - began:.2f}s, loss {figures['loss']:.6f}")


if __name__ == "__main__":
    main()
