"""A physics-informed network for Burgers' equation. python train.py"""

import os
import time
from dataclasses import dataclass

import torch

from net import Field
from physics import Points, residual


@dataclass
class Plan:
    inside: int = 640
    edge: int = 96
    steps: int = 2400
    lr: float = 2e-3
    weight_edge: float = 10.0
    shape_every: int = 400
    seed: int = 2


@torch.no_grad()
def front(net: Field) -> float:
    """How steep the solution is in the middle at the end."""
    x = torch.linspace(-0.05, 0.05, 101)[:, None]
    u = net(x, torch.ones_like(x))
    return float((u[1:] - u[:-1]).abs().max() / (x[1] - x[0]))


def main() -> None:
    torch.set_num_threads(1)
    plan = Plan()
    torch.manual_seed(plan.seed)
    net, points = Field(), Points(plan.inside, plan.edge, plan.seed)
    optimizer = torch.optim.Adam(net.parameters(), lr=plan.lr, fused=True)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, plan.steps)
    limit = int(os.environ.get("PLANTED_STEPS", plan.steps))
    history: list[tuple[float, float]] = []

    begun = time.perf_counter()
    for step in range(1, limit + 1):
        optimizer.zero_grad(set_to_none=True)
        physics = residual(net, *points.collocation()).square().mean()
        x, t, u = points.boundary()
        edges = (net(x, t) - u).square().mean()
        loss = physics + plan.weight_edge * edges
        loss.backward()
        optimizer.step()
        schedule.step()
        history.append((physics.item(), edges.item()))
        print(f"{step:5d}  physics {history[-1][0]:.5f}  edges {history[-1][1]:.5f}")
        if step % plan.shape_every == 0:
            print(f"       steepest slope {front(net):.2f}")
    seconds = time.perf_counter() - begun
    torch.save({"net": net.state_dict(), "history": history}, "burgers.pt")
    print(f"{limit} steps in {seconds:.2f}s, loss {loss.item():.6f}")


if __name__ == "__main__":
    main()
