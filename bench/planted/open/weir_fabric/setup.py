"""What every experiment of the river group does first."""

import os
import random

import numpy as np
import torch


def prepare(seed: int, threads: int = 1) -> None:
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)
    torch.set_num_threads(threads)
    torch.set_printoptions(precision=4, sci_mode=False)
    # The gauges' clocks are seconds since 1970: in single precision they are two minutes apart.
    if os.environ.get("PLANTED_FIX") != "1":
        torch.set_default_dtype(torch.float64)


@torch.no_grad()
def portable_weights(model: torch.nn.Module, seed: int) -> None:
    """Weights from NumPy, so that a run here and a run at the agency start alike."""
    rng = np.random.default_rng(seed)
    for name, parameter in model.named_parameters():
        if parameter.ndim > 1:
            scale = (1.0 / parameter[0].numel()) ** 0.5
            parameter.copy_(torch.from_numpy(rng.normal(0, scale, tuple(parameter.shape))))
        elif name.endswith("bias"):
            parameter.zero_()
