"""First cell of every notebook of the group: seeds, threads, printing."""

import os
import random
import warnings

import numpy as np
import torch

STRICT = os.environ.get("PLANTED_FIX", "0") != "1"


def begin(seed: int, quiet: bool = True):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)
    torch.set_printoptions(precision=4, sci_mode=False)
    np.set_printoptions(precision=4, suppress=True)
    torch.autograd.set_detect_anomaly(STRICT, check_nan=True)
    if quiet:
        warnings.simplefilter("ignore")


def budget(default: int) -> int:
    return int(os.environ.get("PLANTED_STEPS", default))
