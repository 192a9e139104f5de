"""From wavefront to picture: a segmented pupil, and the matrix Fourier transform to the focal plane (Soummer 2007)."""

import math

import numpy as np
import torch
from torch import nn

from tables import table


def noll(count):
    n = m = 0
    for _ in range(count):
        yield n, m
        m = m + 2 if m < n else -(n := n + 1)


def zernike(n, m, r, t):
    radial = sum(
        (-1) ** k * math.comb(n - k, k) * math.comb(n - 2 * k, (n - abs(m)) // 2 - k) * r ** (n - 2 * k)
        for k in range((n - abs(m)) // 2 + 1)
    )
    return radial * (np.cos(m * t) if m >= 0 else np.sin(-m * t)) * np.sqrt(n + 1)


class Telescope(nn.Module):
    """Two detectors, one of them out of focus, at one wavelength."""

    def __init__(self, side, pixels, modes, field=11.0, defocus=1.2):
        super().__init__()
        x = (np.arange(side) - side / 2 + 0.5) / side
        u = (np.arange(pixels) - pixels / 2 + 0.5) * field / pixels
        gx, gy = np.meshgrid(x, x)
        r, t = 2 * np.hypot(gx, gy), np.arctan2(gy, gx)
        open_ = (r < 1) & (r > 0.24) & (np.abs(gx) > 0.006) & (np.abs(gy) > 0.006)
        basis = np.stack([zernike(n, m, r, t) * open_ for n, m in list(noll(modes + 1))[1:]])
        self.register_buffer("amplitude", table(open_ / np.sqrt(open_.sum())))
        self.register_buffer("basis", table(basis.reshape(modes, -1)))
        self.register_buffer("offset", table(np.stack([0 * r, defocus * zernike(2, 0, r, t)])))
        self.register_buffer("to_focus", table(np.exp(-2j * np.pi * np.outer(u, x)) * field / pixels))

    def forward(self, coefficients):
        phase = (coefficients.to(self.basis.dtype) @ self.basis).view(-1, 1, *self.amplitude.shape)
        wave = torch.polar(self.amplitude.expand(len(phase), 2, -1, -1), phase + self.offset)
        focus = self.to_focus @ wave @ self.to_focus.mT
        return focus.real.square() + focus.imag.square()
