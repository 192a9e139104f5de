"""Quantities of the problem, and how they become numbers without units."""

import os
from dataclasses import dataclass

import torch

if os.environ.get("PLANTED_FIX") == "1":
    NUMBERS = torch.float32
else:
    NUMBERS = torch.float64
torch.set_default_dtype(NUMBERS)

# thermal diffusivity in m^2/s
DIFFUSIVITY = {"copper": 1.11e-4, "brass": 3.42e-5, "steel": 1.17e-5, "glass": 3.4e-7}


@dataclass(frozen=True)
class Rod:
    metal: str
    length_cm: float
    seconds: float

    @property
    def length(self) -> float:
        return self.length_cm / 100

    @property
    def fourier(self) -> float:
        """How far heat spreads in the time looked at, compared with the rod."""
        return DIFFUSIVITY[self.metal] * self.seconds / self.length**2
