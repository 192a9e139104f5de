"""Words ↔ numbers."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

PADDING, UNKNOWN, BEGIN = 0, 1, 2
SPECIAL = ("<pad>", "<unknown>", "<begin>")


class Vocabulary:
    """Numbers of words, most frequent first after the special ones."""

    def __init__(self, words: Sequence[str]) -> None:
        self.words = [*SPECIAL, *words]
        self.numbers = {word: number for number, word in enumerate(self.words)}

    def __len__(self) -> int:
        return len(self.words)

    def encode(self, words: Iterable[str], limit: int) -> list[int]:
        found = [BEGIN]
        for word in words:
            if len(found) == limit:
                break
            found.append(self.numbers.get(word, UNKNOWN))
        return found

    def decode(self, numbers: Iterable[int]) -> list[str]:
        return [self.words[number] for number in numbers if number != PADDING]

    def save(self, path: Path) -> None:
        path.write_text(json.dumps(self.words[len(SPECIAL) :], ensure_ascii=False), encoding="utf-8")

    @classmethod
    def load(cls, path: Path) -> Vocabulary:
        return cls(json.loads(path.read_text(encoding="utf-8")))

    @classmethod
    def build(cls, texts: Iterable[list[str]], min_count: int, most: int) -> Vocabulary:
        counts: Counter[str] = Counter()
        for words in texts:
            counts.update(words)
        frequent = [word for word, count in counts.items() if count >= min_count and word not in SPECIAL]
        frequent.sort(key=lambda word: (-counts[word], word))
        return cls(frequent[: most - len(SPECIAL)])
