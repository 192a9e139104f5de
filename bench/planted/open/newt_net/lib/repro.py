"""Everything that makes a run repeatable."""

import os
import random

import numpy as np
import torch


def make_repeatable(seed: int, strict: bool = True) -> None:
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)
    torch.set_num_threads(1)
    if strict:
        torch.use_deterministic_algorithms(True, warn_only=True)
        torch.autograd.set_detect_anomaly(os.environ.get("PLANTED_FIX") != "1")
