import os

import torch

CAP = 8 if os.environ.get("PLANTED_FIX") == "1" else 1000


class Settle(torch.autograd.Function):
    """z = damping * tanh(z W) + x, with the adjoint found by iteration."""

    @staticmethod
    def forward(ctx, x, weight, damping):
        z = x
        for _ in range(6):
            z = damping * torch.tanh(z @ weight) + x
        ctx.save_for_backward(z, weight, damping)
        return z

    @staticmethod
    def backward(ctx, grad):
        z, weight, damping = ctx.saved_tensors
        slope = damping * (1 - torch.tanh(z @ weight) ** 2)
        adjoint, change, rounds = grad, grad.norm(), 0
        while change > 1e-4 * grad.norm() and rounds < CAP:
            new = grad + (slope * adjoint) @ weight.T
            change, adjoint, rounds = (new - adjoint).norm(), new, rounds + 1
        return adjoint, None, None
