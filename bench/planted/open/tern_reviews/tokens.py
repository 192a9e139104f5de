"""Tokenizer in the manner of the big libraries: words, with letters for what is not known."""

import torch

PAD, CLS, UNK = 0, 1, 2


class Tokenizer:
    def __init__(self, texts, size: int):
        counts: dict[str, int] = {}
        for text in texts:
            for word in text.split():
                counts[word] = counts.get(word, 0) + 1
        ranked = sorted(counts, key=lambda w: (-counts[w], w))[: size - 40]
        self.ids = {word: i + 40 for i, word in enumerate(ranked)}
        self.letters = {c: i + 3 for i, c in enumerate("abcdefghijklmnopqrstuvwxyz0123456789")}

    def encode(self, text: str, limit: int) -> list[int]:
        ids = [CLS]
        for word in text.lower().split():
            known = self.ids.get(word)
            if known is not None:
                ids.append(known)
            else:
                ids.extend(self.letters.get(c, UNK) for c in word)
        return ids[:limit]

    def __call__(self, texts, padding: str, max_length: int):
        rows = [self.encode(text, max_length) for text in texts]
        width = max_length if padding == "max_length" else max(len(row) for row in rows)
        ids = torch.full((len(rows), width), PAD, dtype=torch.long)
        for i, row in enumerate(rows):
            ids[i, : len(row)] = torch.tensor(row)
        return ids, ids != PAD


class Collator:
    def __init__(self, tokenizer, conf):
        self.tokenizer, self.conf = tokenizer, conf

    def __call__(self, rows):
        texts, stars = zip(*rows, strict=True)
        ids, mask = self.tokenizer(texts, padding=self.conf.pad_to, max_length=self.conf.max_length)
        return {"ids": ids, "mask": mask, "stars": torch.tensor(stars)}
