import random

import torch
from torch.utils.data import Dataset

NOTES = {name: n for n, name in enumerate("C D E F G A B c d e f g a b z |".split())}


class Tunes(Dataset):
    """Tunes in ABC notation, moved to another key each time they are read."""

    def __init__(self, n=400, bars=48):
        rng = random.Random(2)
        names = list(NOTES)
        self.tunes = [" ".join(rng.choice(names) for _ in range(bars + rng.randrange(3))) for _ in range(n)]

    def __len__(self):
        return len(self.tunes)

    def __getitem__(self, i):
        shift = int(torch.randint(0, 7, ()))
        return torch.tensor([(NOTES[note] + shift) % 16 for note in self.tunes[i].split()])


def pad(tunes):
    return torch.nn.utils.rnn.pad_sequence(tunes, batch_first=True)
