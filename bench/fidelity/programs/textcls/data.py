"""Short texts of different lengths, four topics of unequal frequency."""

import json
import random

import torch
from torch.utils.data import Dataset

TOPICS = 4
SHARES = [0.55, 0.25, 0.13, 0.07]
VOCABULARY = ["<pad>", "<unk>"] + [f"w{i}" for i in range(300)]
INDEX = {word: i for i, word in enumerate(VOCABULARY)}


def make_lines(count, seed):
    rng = random.Random(seed)
    lines = []
    for _ in range(count):
        topic = rng.choices(range(TOPICS), SHARES)[0]
        length = rng.choice([rng.randint(4, 12), rng.randint(12, 40)])
        words = []
        for _ in range(length):
            if rng.random() < 0.4:
                words.append(f"w{topic * 60 + rng.randint(0, 59)}")
            else:
                words.append(f"w{rng.randint(0, 309)}")
        lines.append(json.dumps({"text": " ".join(words), "topic": topic}))
    return lines


class Texts(Dataset):
    def __init__(self, lines):
        self.lines = lines

    def __len__(self):
        return len(self.lines)

    def __getitem__(self, i):
        record = json.loads(self.lines[i])
        ids = [INDEX.get(word, 1) for word in record["text"].split()]
        return ids, record["topic"]


def collate(batch):
    width = max(len(ids) for ids, _ in batch)
    tokens = torch.zeros(len(batch), width, dtype=torch.long)
    for row, (ids, _) in enumerate(batch):
        for column, token in enumerate(ids):
            tokens[row, column] = token
    labels = torch.tensor([topic for _, topic in batch])
    return tokens, labels


def class_weights(lines):
    counts = [0] * TOPICS
    for line in lines:
        counts[json.loads(line)["topic"]] += 1
    return torch.tensor([len(lines) / (TOPICS * n) for n in counts])
