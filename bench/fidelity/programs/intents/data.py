"""Requests to a household assistant, and what is wanted by them."""
import random
import re
import zlib

import torch
from torch.utils.data import Dataset

VOCABULARY = 400
PAD, START = 0, 1
INTENTS = {
    "light": (["switch on the lamp", "dim the lights", "make it brighter", "lights off"], ["in the kitchen", "upstairs", "by the bed", ""]),
    "music": (["play something slow", "put on a song", "skip this track", "turn the volume down"], ["by my favourite band", "from last summer", "for dinner", ""]),
    "timer": (["set a timer", "wake me up", "remind me", "count down"], ["in ten minutes", "at seven tomorrow", "for the pasta", ""]),
    "weather": (["will it rain", "how cold is it", "do i need a coat", "is it windy"], ["in the mountains", "tomorrow morning", "at the harbour", ""]),
    "order": (["buy more milk", "order a pizza", "we are out of coffee", "get some bread"], ["from the usual shop", "for tomorrow", "for ten people", ""]),
}
FILLERS = ["please", "hey there", "could you", "when you have a minute", "if it is not too much trouble", "thanks", "i think", "well", ""]


def write(count, seed):
    rng, rows = random.Random(seed), []
    names = sorted(INTENTS)
    for _ in range(count):
        name = rng.choice(names)
        asks, wheres = INTENTS[name]
        parts = [rng.choice(FILLERS), rng.choice(FILLERS), rng.choice(asks), rng.choice(wheres), rng.choice(FILLERS)]
        if rng.random() < 0.25:
            parts.insert(2, rng.choice(INTENTS[rng.choice(names)][1]))
        rows.append((" ".join(part for part in parts if part), names.index(name)))
    return rows


def tokenize(text):
    words = re.findall(r"[a-z]+", text.lower())
    return [START] + [2 + zlib.crc32(word.encode()) % (VOCABULARY - 2) for word in words]


class Requests(Dataset):
    def __init__(self, rows):
        self.rows = rows

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, number):
        text, label = self.rows[number]
        ids = tokenize(text)
        return {"input_ids": ids, "length": len(ids), "labels": label}


def collate(examples):
    width = max(len(example["input_ids"]) for example in examples)
    rows = [example["input_ids"] + [PAD] * (width - len(example["input_ids"])) for example in examples]
    ids = torch.tensor(rows)
    return {
        "input_ids": ids,
        "attention_mask": (ids != PAD).long(),
        "labels": torch.tensor([example["labels"] for example in examples]),
    }
