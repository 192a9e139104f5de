"""A stream of customs declarations."""

import random
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from features import NgramHasher
from torch.utils.data import IterableDataset

GOODS = (
    "cotton shirt knitted", "steel bolt galvanised", "wooden chair folding", "olive oil extra virgin", "ceramic tile glazed",
    "bicycle frame aluminium", "plastic hose reinforced", "leather shoe sole", "glass bottle amber", "copper wire annealed",
    "paper towel embossed", "rubber gasket moulded", "wool carpet woven", "green tea loose", "electric kettle cordless",
    "lamp shade linen", "garden spade forged", "silk scarf printed", "honey jar acacia", "zip fastener brass",
)  # fmt: skip
EXTRA = "for retail sale|packed in cartons|not elsewhere specified|of a kind used in household|with accessories|unassembled|new".split("|")


@dataclass
class Declaration:
    text: str
    code: int


def declarations(seed: int) -> Iterator[Declaration]:
    rng = random.Random(seed)
    while True:
        code = rng.randrange(len(GOODS))
        words = GOODS[code].split()
        parts = [" ".join(rng.sample(words, len(words)))]
        for _ in range(rng.randrange(10, 16)):
            parts.append(rng.choice(EXTRA))
            parts.append(f"{rng.randrange(1, 900)} {rng.choice(['kg', 'pcs', 'mm', 'l'])}")
        yield Declaration(", ".join(parts), code)


class DeclarationStream(IterableDataset):
    """Batches ready for an embedding bag: indices, offsets, codes."""

    def __init__(self, seed: int, batch_size: int, hasher: NgramHasher, noise: float = 0.02) -> None:
        self.seed, self.batch_size, self.hasher, self.noise = seed, batch_size, hasher, noise

    def _noisy(self, text: str, rng: random.Random) -> str:
        letters = list(text)
        for _ in range(int(len(letters) * self.noise)):
            letters[rng.randrange(len(letters))] = rng.choice("abcdefghijklmnopqrstuvwxyz")
        return "".join(letters)

    def __iter__(self):
        rng = random.Random(self.seed + 1)
        bags, codes = [], []
        for declaration in declarations(self.seed):
            bags.append(self.hasher(self._noisy(declaration.text, rng)))
            codes.append(declaration.code)
            if len(bags) == self.batch_size:
                lengths = torch.tensor([0] + [len(bag) for bag in bags[:-1]])
                yield torch.cat([torch.from_numpy(bag) for bag in bags]), lengths.cumsum(0), torch.tensor(codes)
                bags, codes = [], []
