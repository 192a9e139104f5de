"""Support tickets made from templates; the label is the team that has to answer."""
import random

import torch
from torch.utils.data import Dataset

TEAMS = {
    "billing": ["invoice", "refund", "charge", "card", "receipt", "tax", "price", "plan"],
    "network": ["router", "latency", "packet", "dns", "vpn", "timeout", "wifi", "cable"],
    "account": ["password", "login", "email", "profile", "username", "token", "locked", "reset"],
    "hardware": ["screen", "battery", "keyboard", "fan", "disk", "charger", "hinge", "port"],
    "software": ["crash", "update", "install", "driver", "version", "plugin", "freeze", "error"],
}
FILLER = """i we my our the a this that since yesterday today again still please help thanks cannot could
not does did is was after before when with without for from to it keeps stopped working and or but
hello dear team need want see get show says customer office laptop order ticket number week month""".split()


class Vocabulary:
    def __init__(self):
        words = sorted(set(FILLER) | {w for team in TEAMS.values() for w in team})
        self.index = {w: i for i, w in enumerate(["[PAD]", "[CLS]", "[SEP]", "[UNK]"] + words)}

    def __len__(self):
        return len(self.index)

    def encode(self, words):
        return [1] + [self.index.get(w, 3) for w in words] + [2]


def ticket(rng):
    label = rng.randrange(len(TEAMS))
    own = list(TEAMS.values())[label]
    other = [w for i, team in enumerate(TEAMS.values()) if i != label for w in team]
    words = [rng.choice(FILLER) for _ in range(rng.randint(42, 54))]
    for _ in range(rng.randint(7, 10)):
        words[rng.randrange(len(words))] = rng.choice(own)
    for _ in range(rng.randint(0, 3)):
        words[rng.randrange(len(words))] = rng.choice(other)
    return words, label


class Tickets(Dataset):
    def __init__(self, n, vocab, seed):
        rng = random.Random(seed)
        self.rows = []
        for _ in range(n):
            words, label = ticket(rng)
            self.rows.append((vocab.encode(words), label))

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        ids, label = self.rows[i]
        return {"input_ids": ids, "labels": label}


class WordDropCollator:
    """Pads to the longest ticket of the batch; replaces some words by [UNK] as augmentation."""

    def __init__(self, drop=0.1):
        self.drop = drop

    def __call__(self, rows):
        longest = max(len(r["input_ids"]) for r in rows)
        ids = torch.tensor([r["input_ids"] + [0] * (longest - len(r["input_ids"])) for r in rows])
        mask = (ids != 0).long()
        ids = torch.where((torch.rand(ids.shape) < self.drop) & (ids > 3), 3, ids)
        return {"input_ids": ids, "attention_mask": mask, "labels": torch.tensor([r["labels"] for r in rows])}
