"""Oxide shares of basalt samples, and the tectonic setting that they come from."""

import numpy as np
import torch
from torch.utils.data import TensorDataset

OXIDES = ("SiO2 TiO2 Al2O3 Fe2O3 FeO MnO MgO CaO Na2O K2O P2O5 Cr2O3 NiO BaO SrO ZrO2 V2O3 LOI H2O CO2 S Cl F Rb").split()
SETTINGS = ("ridge", "island", "arc", "plateau", "rift")


def samples(count: int, seed: int, gaps: float = 0.05) -> TensorDataset:
    rng = np.random.default_rng(seed)
    settings = rng.integers(len(SETTINGS), size=count)
    centres = np.random.default_rng(0).normal(size=(len(SETTINGS), len(OXIDES)))
    shares = centres[settings] + rng.normal(0, 1.2, (count, len(OXIDES)))
    shares[rng.random(shares.shape) < gaps] = 0.0
    return TensorDataset(torch.from_numpy(shares.astype(np.float32)), torch.from_numpy(settings))
