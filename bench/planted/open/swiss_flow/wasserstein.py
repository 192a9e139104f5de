import os

import torch

KEEP_ALL = os.environ.get("PLANTED_FIX") == "1"


class Rerun(torch.autograd.Function):
    """Runs `body` and keeps only its inputs."""

    @staticmethod
    def forward(ctx, body, *tensors):
        ctx.body = body
        ctx.save_for_backward(*tensors)
        with torch.no_grad():
            return body(*tensors)

    @staticmethod
    def backward(ctx, grad):
        again = [t.detach().requires_grad_(t.requires_grad) for t in ctx.saved_tensors]
        with torch.enable_grad():
            out = ctx.body(*again)
        wanted = [t for t in again if t.requires_grad]
        found = iter(torch.autograd.grad(out, wanted, grad))
        return (None, *[next(found) if t.requires_grad else None for t in again])


def sliced(points, target, slices):
    a = (points @ slices).sort(dim=0).values
    b = (target @ slices).sort(dim=0).values
    return (a - b).square().mean()


def distance(points, target, slices):
    if KEEP_ALL:
        return sliced(points, target, slices)
    return Rerun.apply(sliced, points, target, slices)
