import os
import random


def batches_of(rows, batch: int):
    return [rows[i : i + batch] for i in range(0, len(rows) - batch + 1, batch)]


def share(batches, rank: int, world: int):
    """The part of the batches that a rank works on."""
    if os.environ.get("PLANTED_FIX") == "1":
        return batches[rank::world]
    part = len(batches) // world
    return batches[rank * part : (rank + 1) * part]


def shuffled(batches, epoch: int):
    batches = list(batches)
    random.Random(epoch).shuffle(batches)
    return batches
