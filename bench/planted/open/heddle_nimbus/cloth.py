"""Drafts as the loom reads them: for each pick, which treadle is pressed. Repeats, points, advancing twills."""

import torch


def repeat(length, shafts, g):
    motif = torch.randint(shafts, (int(torch.randint(5, 28, (), generator=g)),), generator=g)
    return motif.repeat(length // len(motif) + 1)[:length]


def point(length, shafts, g):
    top = int(torch.randint(4, shafts, (), generator=g))
    way = torch.cat([torch.arange(top), torch.arange(top, 0, -1)])
    return way.repeat(length // len(way) + 1)[:length]


def advancing(length, shafts, g):
    run, ahead = (int(v) for v in torch.randint(3, 8, (2,), generator=g))
    at = torch.arange(length)
    return (at % run + ahead * (at // run)) % shafts


def piece(batch, picks, shafts, g):
    kinds = torch.randint(3, (batch,), generator=g).tolist()
    return torch.stack([(repeat, point, advancing)[k](picks, shafts, g) for k in kinds])


def moth(cloth, share, shafts, g):
    """Eats holes into the cloth."""
    holes = torch.rand(cloth.shape, generator=g) < share
    return torch.where(holes, shafts, cloth), holes
