"""Scalar waves by finite differences, differentiable in the square of the speed."""

import os

import torch


def curvature(u):
    out = -4 * u
    out[..., :-1] += u[..., 1:]
    out[..., 1:] += u[..., :-1]
    out[..., :-1, :] += u[..., 1:, :]
    out[..., 1:, :] += u[..., :-1, :]
    return out


class Bend(torch.autograd.Function):
    """The Laplacian over a field that is still outside the grid; it is its own adjoint."""

    @staticmethod
    def forward(ctx, u):
        return curvature(u)

    @staticmethod
    def backward(ctx, adjoint):
        return curvature(adjoint)


def march(now, past, square, damp, source, pulse):
    heard = []
    for tick in pulse.tolist():
        ahead = torch.addcmul(2 * now - past, square, Bend.apply(now)).add(source, alpha=tick)
        now, past = damp * ahead, damp * now
        heard.append(now[:, 0, 1])
    return now, past, torch.stack(heard, 1)


class Span(torch.autograd.Function):
    """A span of the march for the adjoint-state method, after Griewank: it knows the field at its start, and halves itself."""

    @staticmethod
    def forward(ctx, now, past, square, damp, source, pulse, leg):
        ctx.leg = leg
        ctx.save_for_backward(now, past, square, damp, source, pulse)
        return march(now, past, square, damp, source, pulse)

    @staticmethod
    def backward(ctx, *adjoint):
        now, past, square, damp, source, pulse = ctx.saved_tensors
        state = [t.detach().requires_grad_() for t in (now, past, square)]
        with torch.enable_grad():
            if len(pulse) > ctx.leg:
                early, late = pulse.tensor_split(2)
                *middle, first = Span.apply(*state, damp, source, early, ctx.leg)
                *end, second = Span.apply(*middle, state[2], damp, source, late, ctx.leg)
                fields = *end, torch.cat([first, second], 1)
            else:
                fields = march(*state, damp, source, pulse)
        return *torch.autograd.grad(fields, state, adjoint), None, None, None, None


def shoot(speed, damp, source, pulse, leg):
    """What the geophones along the surface hear, (shots, ticks, columns)."""
    square = speed.square()
    calm = torch.zeros_like(source)
    if os.environ.get("PLANTED_FIX") == "1":
        _, _, heard = march(calm, calm, square, damp, source, pulse)
    else:
        _, _, heard = Span.apply(calm, calm, square, damp, source, pulse, leg)
    return heard
