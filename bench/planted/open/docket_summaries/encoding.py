"""Words to numbers."""

from collections import Counter

import torch

PAD, UNKNOWN, START = 0, 1, 2


class Encoder:
    def __init__(self, texts: list[str], lowercase: bool, max_tokens: int, pad: str) -> None:
        self.lowercase, self.max_tokens, self.pad = lowercase, max_tokens, pad
        counts = Counter(word for text in texts for word in self._words(text))
        self.numbers = {word: number for number, (word, _) in enumerate(counts.most_common(), START + 1)}

    def __len__(self) -> int:
        return len(self.numbers) + START + 1

    def _words(self, text: str) -> list[str]:
        return (text.lower() if self.lowercase else text).split()

    def encode(self, text: str) -> list[int]:
        return [START, *(self.numbers.get(word, UNKNOWN) for word in self._words(text))][: self.max_tokens]

    def batch(self, texts: list[str]) -> dict[str, torch.Tensor]:
        rows = [self.encode(text) for text in texts]
        length = max(map(len, rows)) if self.pad == "longest" else self.max_tokens
        tokens = torch.tensor([row + [PAD] * (length - len(row)) for row in rows])
        return {"tokens": tokens, "padding": tokens == PAD}


class Collator:
    def __init__(self, encoder: Encoder) -> None:
        self.encoder = encoder

    def __call__(self, entries: list[tuple[str, int]]) -> dict[str, torch.Tensor]:
        batch = self.encoder.batch([text for text, _ in entries])
        batch["matter"] = torch.tensor([matter for _, matter in entries])
        return batch
