import random

import torch

SUBJECTS = "the tide|a grey bird|the old pilot|her letter|that winter|our lamp".split("|")
VERBS = "carried|forgot|followed|measured|left|sang to".split("|")
ENDS = "the harbour|every stone|a quiet field|the long road|his own name".split("|")


def prose(sentences, seed):
    dice = random.Random(seed)
    parts = [f"{dice.choice(SUBJECTS)} {dice.choice(VERBS)} {dice.choice(ENDS)}" for _ in range(sentences)]
    return ". ".join(parts)


class Letters:
    def __init__(self, text):
        alphabet = sorted(set(text))
        self.size = len(alphabet)
        code = {c: i for i, c in enumerate(alphabet)}
        self.codes = torch.tensor([code[c] for c in text])

    def windows(self, batch, context, g):
        starts = torch.randint(0, len(self.codes) - context - 1, (batch,), generator=g)
        rows = self.codes[starts.unsqueeze(1) + torch.arange(context + 1)]
        return rows[:, :-1], rows[:, 1:]
