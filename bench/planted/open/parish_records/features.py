import torch

from registers import FAMILIES, NAMES, PLACES, TRADES


def describe(r):
    return [
        NAMES.index(r["father"]["name"]),
        FAMILIES.index(r["father"]["family"]),
        TRADES.index(r["father"]["trade"]),
        PLACES.index(r["father"]["lives"]["place"]),
        NAMES.index(r["mother"]["name"]),
        FAMILIES.index(r["mother"]["family"]),
        NAMES.index(r["child"]["name"]),
        r["date"][2] // 10 - 168,
    ]


def pairs(records, batch, rng):
    """A batch of pairs, half of them near in time."""
    from registers import same_family

    left, right, label = [], [], []
    for _ in range(batch):
        a, b = records[rng.randrange(len(records))], records[rng.randrange(len(records))]
        if rng.random() < 0.5:
            b = dict(b, father=a["father"])
        left.append(describe(a))
        right.append(describe(b))
        label.append(same_family(a, b))
    return torch.tensor(left), torch.tensor(right), torch.tensor(label, dtype=torch.float32)
