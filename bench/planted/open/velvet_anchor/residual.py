"""Loss and update as pure functions."""

import torch
from problem import Points, allen_cahn, starting_curve
from torch.func import grad_and_value, jvp


def derivatives(solution, points: torch.Tensor):
    """u, u_t and u_xx in forward mode, nested for the second."""
    along_t = torch.tensor([1.0, 0.0]).expand_as(points)
    along_x = torch.tensor([0.0, 1.0]).expand_as(points)
    u, u_t = jvp(solution, (points,), (along_t,))

    def slope(at: torch.Tensor) -> torch.Tensor:
        return jvp(solution, (at,), (along_x,))[1]

    _, u_xx = jvp(slope, (points,), (along_x,))
    return u, u_t, u_xx


def make_loss(call, start_weight: float):
    def loss(parameters: dict[str, torch.Tensor], points: Points) -> torch.Tensor:
        def solution(at: torch.Tensor) -> torch.Tensor:
            return call(parameters, at)

        inside = allen_cahn(*derivatives(solution, points.inside)).square().mean()
        start = (solution(points.start) - starting_curve(points.start[:, 1])).square().mean()
        edge = (solution(points.edge) + 1).square().mean()
        return inside + start_weight * start + edge

    return loss


def make_update(loss, rate: float, betas: tuple[float, float] = (0.9, 0.99)):
    """Adam on dictionaries; the state goes in and comes out."""
    slopes_and_value = grad_and_value(loss)

    def update(parameters, state, points: Points):
        slopes, value = slopes_and_value(parameters, points)
        count = state["count"] + 1
        with torch.no_grad():
            mean = {k: torch.lerp(g, state["mean"][k], betas[0]) for k, g in slopes.items()}
            square = {k: torch.lerp(g * g, state["square"][k], betas[1]) for k, g in slopes.items()}
            scale = rate * (1 - betas[1] ** count) ** 0.5 / (1 - betas[0] ** count)
            parameters = {k: p - scale * mean[k] / (square[k].sqrt() + 1e-8) for k, p in parameters.items()}
        return parameters, {"count": count, "mean": mean, "square": square}, value

    return update


def fresh_state(parameters: dict[str, torch.Tensor]) -> dict:
    zeros = {k: torch.zeros_like(p) for k, p in parameters.items()}
    return {"count": 0, "mean": zeros, "square": {k: z.clone() for k, z in zeros.items()}}
