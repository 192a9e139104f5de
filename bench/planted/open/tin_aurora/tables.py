import os

import numpy as np
import torch


def table(values):
    """A numpy table as a buffer."""
    values = np.ascontiguousarray(values)
    if os.environ.get("PLANTED_FIX") == "1":
        values = values.astype(np.complex64 if np.iscomplexobj(values) else np.float32)
    return torch.from_numpy(values)


def shot_noise(pictures, photons, generator):
    """Photon and read-out noise, on the stretched scale that the network sees."""
    counts = pictures * photons
    counts = counts + counts.sqrt() * torch.randn(counts.shape, generator=generator) + torch.randn(counts.shape, generator=generator)
    return stretch(counts.clamp_min(0) / photons)


def stretch(pictures):
    return torch.asinh(pictures * 300).float()
