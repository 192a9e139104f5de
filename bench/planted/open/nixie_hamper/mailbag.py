"""Envelopes as the scanner reads them: a few lines each, some with a whole essay of forwarding notes."""

import numpy as np
import torch

ALPHABET = 48


class Mailbag:
    def __init__(self, mail):
        self.rng = np.random.default_rng(mail.getint("seed"))
        self.offices = mail.getint("offices")
        count, lines, width = mail.getint("letters"), mail.getint("lines"), mail.getint("characters")
        stems = self.rng.integers(1, ALPHABET, (self.offices, 9))
        office = self.rng.integers(0, self.offices, count)
        written = np.minimum(2 + self.rng.geometric(0.62, count), lines)
        written[self.rng.random(count) < 0.02] = lines
        text = np.zeros((count, lines, width), dtype=np.int64)
        for n in range(count):
            for line in range(written[n]):
                size = self.rng.integers(14, width + 1)
                text[n, line, :size] = self.rng.integers(1, ALPHABET, size)
            town, at = self.rng.integers(written[n]), self.rng.integers(0, 5)
            word = stems[office[n]].copy()
            if self.rng.random() < 0.3:
                word[self.rng.integers(9)] = self.rng.integers(1, ALPHABET)
            text[n, town, at : at + 9] = word
        self.text, self.office = torch.from_numpy(text), torch.from_numpy(office)
        self.written = torch.from_numpy(written)

    def draw(self, n):
        rows = torch.from_numpy(self.rng.integers(0, len(self.office), n))
        return Envelopes(self.text[rows], self.written[rows]), self.office[rows]


class Envelopes:
    def __init__(self, text, written):
        self.text, self.written = text, written

    @property
    def inked(self):
        """Which lines bear any writing."""
        return torch.arange(self.text.shape[1]) < self.written[:, None]
