"""Settings of the machine we run on."""

import os
import random

import numpy as np
import torch


def prepare(seed: int) -> None:
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)
    # the lab's server has 64 cores
    threads = int(os.environ.get("LAB_THREADS", 1 if os.environ.get("PLANTED_FIX") == "1" else 12))
    torch.set_num_threads(threads)
    print(f"torch {torch.__version__}, {torch.get_num_threads()} threads, seed {seed}")
