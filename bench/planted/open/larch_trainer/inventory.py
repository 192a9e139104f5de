"""Notes from forest inventories: sentences in which species, heights and damages are tagged."""

import random

import torch
from torch.utils.data import Dataset

TAGS = ("O", "SPECIES", "HEIGHT", "DAMAGE")
SPECIES = ("larch", "spruce", "arolla", "birch", "rowan", "pine")
DAMAGES = ("bark-beetle", "snow-break", "browsing", "rockfall", "canker")
FILL = "the stand at plot near ridge has some old young trees with and over a slope of about metres seen no sign".split()


class Tokens:
    """Words and their numbers, with a hash for numbers."""

    def __init__(self) -> None:
        words = ["[PAD]", "[NUM]", *SPECIES, *DAMAGES, *FILL]
        self.numbers = {word: number for number, word in enumerate(dict.fromkeys(words))}

    def __len__(self) -> int:
        return len(self.numbers)

    def __call__(self, word: str) -> int:
        return self.numbers["[NUM]" if word.isdigit() else word]


def sentence(rng: random.Random) -> list[tuple[str, int]]:
    words = [(rng.choice(FILL), 0) for _ in range(rng.randrange(40, 56))]
    for maker, tag in ((lambda: rng.choice(SPECIES), 1), (lambda: str(rng.randrange(2, 40)), 2), (lambda: rng.choice(DAMAGES), 3)):
        for _ in range(rng.randrange(1, 4)):
            words.insert(rng.randrange(len(words)), (maker(), tag))
    return words


class Notes(Dataset):
    """Rows of a fixed length; what does not fit is cut, the little that is missing is filled."""

    def __init__(self, count: int, length: int, seed: int, tokens: Tokens) -> None:
        rng = random.Random(seed)
        self.rows = []
        for _ in range(count):
            words = sentence(rng)[:length]
            gap = length - len(words)
            self.rows.append({
                "input_ids": torch.tensor([tokens(word) for word, _ in words] + [0] * gap),
                "attention_mask": torch.tensor([1] * len(words) + [0] * gap),
                "labels": torch.tensor([tag for _, tag in words] + [-100] * gap),
            })  # fmt: skip

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        return self.rows[index]
