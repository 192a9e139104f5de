import os

import torch

MAX_WORDS = 192  # the longest report


class Encoder:
    """Turns calls into a block of word numbers; 0 is no word."""

    def __init__(self, vocabulary, tight: bool = os.environ.get("PLANTED_FIX") == "1"):
        self.vocabulary, self.tight = vocabulary, tight

    def __call__(self, rows):
        numbers = [self.vocabulary(words) for words, _ in rows]
        width = max(map(len, numbers)) if self.tight else MAX_WORDS
        block = torch.zeros(len(rows), width, dtype=torch.long)
        for row, ids in zip(block, numbers):
            row[: len(ids)] = torch.tensor(ids)
        return block, torch.tensor([label for _, label in rows])
