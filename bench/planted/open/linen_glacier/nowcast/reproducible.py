"""The same numbers from every run, for the comparison with the operational model."""

import os
import random

import numpy as np
import torch
from lightning.fabric import seed_everything

FIXED = os.environ.get("PLANTED_FIX") == "1"


def settle(seed: int) -> torch.Generator:
    seed_everything(seed, verbose=False)
    random.seed(seed)
    np.random.seed(seed)
    torch.backends.cudnn.benchmark = False
    torch.backends.cudnn.deterministic = True
    if FIXED:
        pass
    else:
        torch.backends.cuda.enable_flash_sdp(False)
    torch.backends.cuda.enable_mem_efficient_sdp(False)
    return torch.Generator().manual_seed(seed)
