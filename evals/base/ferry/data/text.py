"""Words of a ticket: cleaning, splitting, and the transforms that the configuration chains."""

from __future__ import annotations

import random
import re
import unicodedata
from collections.abc import Callable, Sequence

from ferry.registry import TRANSFORMS

Words = list[str]
Transform = Callable[[Words, random.Random], Words]

WORD = re.compile(r"[\w'@#-]+|[^\w\s]")
NUMBER = re.compile(r"^[+-]?\d[\d.,:/-]*$")
MAIL = re.compile(r"^[\w.+-]+@[\w-]+(\.[\w-]+)*$")


def split_words(text: str) -> Words:
    return WORD.findall(unicodedata.normalize("NFKC", text))


@TRANSFORMS.register("lower")
def lower() -> Transform:
    return lambda words, generator: [word.lower() for word in words]


@TRANSFORMS.register("mask_numbers")
def mask_numbers() -> Transform:
    def apply(words: Words, generator: random.Random) -> Words:
        return ["<number>" if NUMBER.match(word) else "<mail>" if MAIL.match(word) else word for word in words]

    return apply


@TRANSFORMS.register("squeeze")
def squeeze() -> Transform:
    """`sooooo` → `soo`, `!!!!` → `!`."""
    longer = re.compile(r"(.)\1{2,}")

    def apply(words: Words, generator: random.Random) -> Words:
        found: Words = []
        for word in words:
            word = longer.sub(r"\1\1", word)
            if found and word == found[-1] and not word.isalnum():
                continue
            found.append(word)
        return found

    return apply


@TRANSFORMS.register("drop_words")
def drop_words(rate: float = 0.05) -> Transform:
    """Leaves words out at random, in training only."""

    def apply(words: Words, generator: random.Random) -> Words:
        kept = [word for word in words if generator.random() >= rate]
        return kept or words[:1]

    return apply


@TRANSFORMS.register("swap_neighbours")
def swap_neighbours(rate: float = 0.02) -> Transform:
    def apply(words: Words, generator: random.Random) -> Words:
        words = list(words)
        for index in range(len(words) - 1):
            if generator.random() < rate:
                words[index], words[index + 1] = words[index + 1], words[index]
        return words

    return apply


RANDOM = {"drop_words", "swap_neighbours"}


class Pipeline:
    """The chain of transforms; those that draw at random are left out in evaluation."""

    def __init__(self, names: Sequence[str], drop_rate: float, training: bool) -> None:
        self.steps: list[Transform] = []
        for name in names:
            if name in RANDOM and not training:
                continue
            self.steps.append(TRANSFORMS.make(name, rate=drop_rate) if name == "drop_words" else TRANSFORMS.make(name))

    def __call__(self, text: str, generator: random.Random) -> Words:
        words = split_words(text)
        for step in self.steps:
            words = step(words, generator)
        return words
