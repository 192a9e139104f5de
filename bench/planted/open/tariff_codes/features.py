"""Turn a customs description into hashed character n-grams."""

import os
import re

import numpy as np

FIXED = os.environ.get("PLANTED_FIX") == "1"
BASE, PRIME = 257, 1_000_003
_BLANKS = re.compile(r"\s+")
_UNITS = re.compile(r"(\d+(?:\.\d+)?)\s*(kg|g|mm|cm|m|l|ml|pcs)\b")


def normalise(text: str) -> str:
    """Lower case, single blanks, numbers with units as one token."""
    text = _UNITS.sub(lambda found: f"#{found[2]}", text.lower())
    return _BLANKS.sub(" ", text).strip()


def _rolling(text: str, size: int) -> list[int]:
    """The hash of each n-gram of the given size."""
    if FIXED:
        codes = np.frombuffer(text.encode("latin-1"), dtype=np.uint8).astype(np.int64)
        count = len(codes) - size + 1
        value = np.zeros(max(count, 0), dtype=np.int64)
        for offset in range(size):
            value = (value * BASE + codes[offset : offset + count]) % PRIME
        return value
    hashes = []
    for start in range(len(text) - size + 1):
        value = 0
        for letter in text[start : start + size]:
            value = (value * BASE + ord(letter)) % PRIME
        hashes.append(value)
    return hashes


class NgramHasher:
    def __init__(self, sizes=(3, 4, 5, 6), buckets: int = 40_000) -> None:
        self.sizes, self.buckets = sizes, buckets

    def __call__(self, text: str) -> np.ndarray:
        text = f" {normalise(text)} "
        parts = [np.asarray(_rolling(text, size), dtype=np.int64) % self.buckets for size in self.sizes]
        return np.concatenate(parts)
