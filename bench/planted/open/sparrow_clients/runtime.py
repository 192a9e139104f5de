"""How a process sets itself up: seeds, threads, messages."""

import logging
import os
import random

import torch

FIXED = os.environ.get("PLANTED_FIX") == "1"


def seed_everything(seed: int) -> None:
    random.seed(seed)
    torch.manual_seed(seed)


def simulated_clients() -> int:
    """Clients that one machine plays; the cluster's nodes have 96 cores."""
    return int(os.environ.get("FED_CLIENTS", "12"))


def prepare(seed: int, verbose: bool = False) -> logging.Logger:
    seed_everything(seed)
    threads = max(1, (os.cpu_count() or 1) // 2) if FIXED else 2 * simulated_clients()
    torch.set_num_threads(threads)
    logging.basicConfig(level=logging.DEBUG if verbose else logging.INFO, format="%(name)s %(message)s")
    return logging.getLogger("sparrow")
