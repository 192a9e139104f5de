"""Docstrings of the standard library, labelled with the package that they come from."""

import ast
import random
import re
import sysconfig
from collections import Counter
from pathlib import Path

import torch
from torch.utils.data import Dataset

PACKAGES = ("asyncio", "concurrent", "email", "http", "importlib", "json", "logging", "multiprocessing", "unittest", "xml")
PAD, UNK, CLS = 0, 1, 2
WORD = re.compile(r"[a-z]+|[0-9]+|[^\sa-z0-9]")


def collect_docstrings(minimum=20):
    """(text, label) for every docstring of at least `minimum` characters."""
    stdlib = Path(sysconfig.get_paths()["stdlib"])
    examples = []
    for label, package in enumerate(PACKAGES):
        for path in sorted((stdlib / package).rglob("*.py")):
            if "test" in path.parts:
                continue
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
                    text = ast.get_docstring(node) or ""
                    if len(text) >= minimum:
                        examples.append((text, label))
    return examples


class Tokenizer:
    """Lower-cased words, numbers and signs, the most frequent ones of a corpus."""

    def __init__(self, texts, size):
        counts = Counter(word for text in texts for word in WORD.findall(text.lower()))
        self.vocabulary = {word: i + 3 for i, (word, _) in enumerate(sorted(counts.items(), key=lambda kv: (-kv[1], kv[0]))[: size - 3])}

    def __len__(self):
        return len(self.vocabulary) + 3

    def encode(self, text, length):
        return [CLS] + [self.vocabulary.get(word, UNK) for word in WORD.findall(text.lower())[: length - 1]]


class DocstringDataset(Dataset):
    def __init__(self, examples, tokenizer, length):
        self.rows = [{"input_ids": tokenizer.encode(text, length), "labels": label} for text, label in examples]

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        return self.rows[index]


def pad_to(length):
    """A collate function that pads every row to `length`."""

    def collate(rows):
        ids = torch.full((len(rows), length), PAD)
        for i, row in enumerate(rows):
            ids[i, : len(row["input_ids"])] = torch.tensor(row["input_ids"])
        return {"input_ids": ids, "attention_mask": (ids != PAD).long(), "labels": torch.tensor([row["labels"] for row in rows])}

    return collate


def load_data(vocabulary=2000, length=32, eval_size=600, seed=0):
    """Train set, evaluation set, tokenizer and collate function."""
    examples = collect_docstrings()
    random.Random(seed).shuffle(examples)
    held_out, training = examples[:eval_size], examples[eval_size:]
    tokenizer = Tokenizer([text for text, _ in training], vocabulary)
    return DocstringDataset(training, tokenizer, length), DocstringDataset(held_out, tokenizer, length), tokenizer, pad_to(length)
