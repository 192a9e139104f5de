import os

import torch


def lay_out(strikes):
    """Joins strikes of unlike length into one tensor; the mask is 1 where there is sound."""
    waves, cents = zip(*strikes)
    sizes = [len(wave) for wave in waves]
    if os.environ.get("PLANTED_FIX") == "1":
        room = -(-max(sizes) // 128) * 128
    else:
        room = max(sizes)
    sound = torch.zeros(len(waves), 1, room)
    there = torch.zeros(len(waves), 1, room)
    for row, wave in enumerate(waves):
        sound[row, 0, : len(wave)] = wave
        there[row, 0, : len(wave)] = 1
    return sound, there, torch.stack(cents)
