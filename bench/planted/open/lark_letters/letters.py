"""Old letters as one long stream of characters."""

import random
import string

import torch

OPENING = ("My dear", "Honoured", "Beloved", "Worthy")
NAMES = ("Anna", "Uncle", "Friend", "Sister", "Captain", "Doctor")
NEWS = (
    "the larks are back over the fields", "we had snow until last week", "the harvest was poor", "your parcel came",
    "Mother is well again", "the new bridge is finished", "they have let the mill", "I have sold the grey mare",
)  # fmt: skip
ALPHABET = string.ascii_letters + " .,\n"


def write(count: int, seed: int) -> str:
    rng = random.Random(seed)
    letters = []
    for _ in range(count):
        news = rng.sample(NEWS, rng.randrange(3, 7))
        letters.append(f"{rng.choice(OPENING)} {rng.choice(NAMES)},\n{', and '.join(news)}.\nYours, {rng.choice(NAMES)}\n")
    return "\n".join(letters)


class Stream:
    def __init__(self, text: str, length: int, batch_size: int, seed: int) -> None:
        number = {letter: index for index, letter in enumerate(ALPHABET)}
        self.codes = torch.tensor([number[letter] for letter in text])
        self.length, self.batch_size = length, batch_size
        self.generator = torch.Generator().manual_seed(seed)

    def __iter__(self):
        while True:
            starts = torch.randint(len(self.codes) - self.length - 1, (self.batch_size, 1), generator=self.generator)
            window = self.codes[starts + torch.arange(self.length + 1)]
            yield window[:, :-1], window[:, 1:]
