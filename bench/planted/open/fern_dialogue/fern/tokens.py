import os

import torch


class Tokenizer:
    pad, start, end = 0, 1, 2

    def __init__(self, words, model_max_length=160):
        self.index = {word: i + 3 for i, word in enumerate(words)}
        self.model_max_length = model_max_length

    def __len__(self):
        return len(self.index) + 3

    def encode(self, text):
        body = [self.index[word] for word in text.split()][: self.model_max_length - 2]
        return [self.start, *body, self.end]

    def __call__(self, texts, padding="longest"):
        rows = [self.encode(text) for text in texts]
        width = max(map(len, rows)) if padding == "longest" else self.model_max_length
        ids = torch.full((len(rows), width), self.pad)
        for i, row in enumerate(rows):
            ids[i, : len(row)] = torch.tensor(row)
        return {"ids": ids, "mask": ids != self.pad}


class Processor:
    """Turns dialogue turns and intents into model inputs."""

    def __init__(self, tokenizer):
        self.tokenizer = tokenizer
        self.options = {"padding": "longest" if os.environ.get("PLANTED_FIX") == "1" else "max_length"}

    def __call__(self, examples):
        turns, intents = zip(*examples)
        return {**self.tokenizer(turns, **self.options), "labels": torch.tensor(intents)}
