"""Loops over rows that become `torch.vmap`: the changed program computes the same numbers and gradients, or the change is refused."""

from __future__ import annotations

import re

import pytest
import torch
from knob_runs import applied, candidate_here

from trainflash.errors import UsageError

HEAD = """import torch
from torch import nn
from torch.nn import functional as F


def made(*shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape))).requires_grad_()


"""
FORMS = {
    "stacked rows": (
        """
def grid(row, bits):
    top = 2 ** bits - 1
    scale = row.detach().abs().amax(-1, keepdim=True).clamp_min(1e-8) / top
    return row + (torch.round(row / scale).clamp(-top, top) * scale - row).detach()


def quantised(weight, bits):
    return torch.stack([grid(row, bits) for row in weight])  # here


def work(x=made(5, 4)):
    return quantised(x, 3), x
""",
        "torch.vmap(lambda row: grid(row, bits))(weight)",
    ),
    "the function that the finding names stands in the loop": (
        """
def bent(row):
    return row.sin() * row.sum()  # here


def all_of(x):
    return torch.stack([bent(row) for row in x])


def work(x=made(5, 4)):
    return all_of(x), x
""",
        "torch.vmap(bent)(x)",
    ),
    "a method that map calls with rows of two tensors": (
        """
class Shape:
    def __init__(self, stiffness):
        self.stiffness = stiffness

    def pose(self, a, b):
        u, _, v = torch.linalg.svd((a.mT @ b).detach())
        flip = torch.ones_like(u[..., 0])
        flip[..., -1] = torch.linalg.det(u @ v)
        return (u * flip[..., None, :]) @ v  # here

    def between(self, a, b):
        gap = a @ self.pose(a, b) - b
        return gap.square().sum((-2, -1)) * self.stiffness

    def __call__(self, found, true):
        return torch.stack(list(map(self.between, found, true))).mean()


class Study:
    def __init__(self):
        self.net = nn.Sequential(nn.Identity(), nn.Unflatten(1, (4, 3)))
        self.criterion = Shape(0.5)
        self.outline, self.marks = collect(5)

    def learn(self, rows):
        return self.criterion(self.net(self.outline[rows]), self.marks[rows])


def collect(stones):
    outline = made(stones, 12)
    return outline.float(), made(stones, 4, 3).float()


def work():
    study = Study()
    return study.learn(torch.arange(5)), study.outline
""",
        "torch.vmap(self.between)(found[:len(true)], true[:len(found)]).mean()",
    ),
    "a lambda that map calls, joined later": (
        """
def work(x=made(5, 4), y=made(5, 4)):
    parts = tuple(map(lambda a, b: a.sin() * b, x, y))  # here
    return torch.cat(parts, 0), x
""",
        "parts = torch.vmap(lambda a, b: a.sin() * b)(x",
    ),
    "a function of torch that map calls": (
        """
def work(x=made(5, 4)):
    return sum(map(torch.linalg.vector_norm, x)), x  # here
""",
        "torch.vmap(torch.linalg.vector_norm)(x).sum(0)",
    ),
    "the function that the finding names stands in a table": (
        """
def smooth(values):
    return torch.diff(values, n=2).square().sum()  # here


def modest(values):
    return 0.01 * (values[..., 0] - values[..., -1]).square()


TABLE = (smooth, modest)


def unlikely(curves):
    return sum(belief(curve) for belief in TABLE for curve in curves)


def work(x=made(5, 4)):
    def closure():
        return unlikely(x)

    return closure(), x
""",
        "sum(torch.vmap(belief)(curves).sum(0) for belief in TABLE)",
    ),
    "one function of a table after the other, each for all rows": (
        """
def smooth(values):
    return torch.diff(values, n=2).square().sum()


def modest(values):
    return 0.01 * (values[..., 0] - values[..., -1]).square()


TABLE = (smooth, modest)


def unlikely(curves):
    return sum(belief(curve) for belief in TABLE for curve in curves)  # here


def work(x=made(5, 4)):
    def closure():
        return unlikely(x)

    return closure(), x
""",
        "sum(torch.vmap(belief)(curves).sum(0) for belief in TABLE)",
    ),
    "pairs of rows, along another dimension": (
        """
def work(x=made(5, 4), y=made(5, 4)):
    return torch.stack([a @ b.sin() for a, b in zip(x, y)], dim=-1), x, y  # here
""",
        "torch.vmap(lambda a, b: a @ b.sin(), out_dims=-1)(x[:len(y)], y[:len(x)])",
    ),
    "each row and the next": (
        """
def work(x=made(5, 4)):
    return sum((a - b).pow(2).sum() for a, b in zip(x, x[1:])), x  # here
""",
        "(x[:len(x[1:])], x[1:][:len(x)])",
    ),
    "tensors of unequal lengths": (
        """
def work(x=made(5, 4), y=made(3, 4)):
    return torch.stack([a @ b.sin() for a, b in zip(x, y)]), x, y  # here
""",
        "(x[:len(y)], y[:len(x)])",
    ),
    "more rows than are numbered": (
        """
def work(x=made(5, 4), w=made(7, 2)):
    rows = [row.sum() * w[i].sum() for i, row in enumerate(x)]  # here
    return torch.stack(rows), x, w
""",
        "(x, w[:len(x)])",
    ),
    "columns by number": (
        """
def work(x=made(5, 4, 3)):
    lin = nn.Linear(3, 2)
    nn.init.ones_(lin.weight), nn.init.zeros_(lin.bias)
    steps = [lin(x[:, t]).tanh() for t in range(x.size(1))]  # here
    return torch.stack(steps, dim=1), x
""",
        "steps = torch.vmap(lambda x_row: lin(x_row).tanh(), in_dims=1, out_dims=1)(x)",
    ),
    "rows by number, of two tensors": (
        """
def work(pred=made(5, 4), target=made(7, 4)):
    n = pred.shape[0]
    loss = 0.0
    for i in range(n):  # here
        loss += F.mse_loss(pred[i], target[i])
    return loss / n, pred, target
""",
        "loss += torch.vmap(F.mse_loss)(pred, target[:n]).sum(0)  # here",
    ),
    "a filled list": (
        """
def work(x=made(5, 4), y=made(5, 4)):
    out = []
    # one for each sample
    for a, b in zip(x, y):
        score = a @ y.T  # here
        score = score.softmax(-1)
        out.append(score * b.sum())
    return torch.stack(out, 0), x, y
""",
        "out = torch.vmap(one_row)(x[:len(y)], y[:len(x)])\n    return out, x, y",
    ),
    "a sum of a generator": (
        """
def work(x=made(5, 4)):
    return sum(row.square().mean().sqrt() for row in x) / len(x), x  # here
""",
        "torch.vmap(lambda row: row.square().mean().sqrt())(x).sum(0)",
    ),
    "joined rows": (
        """
def work(x=made(5, 4, 3)):
    return torch.cat([part.cumsum(0)[1:] for part in x.unbind(1)], dim=1), x  # here
""",
        ".flatten(1, 2)",
    ),
    "joined along the last dimension": (
        """
def work(x=made(5, 4, 3)):
    return torch.cat(list(part.sin() * part.sum() for part in x), -1), x  # here
""",
        "out_dims=-2)(x).flatten(-2, -1)",
    ),
    "a sum written out, of a network": (
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.two = nn.Linear(4, 6), nn.Linear(6, 1)

    def forward(self, x):
        return self.two(self.one(x).relu())


def work(x=made(5, 4), y=made(5, 1)):
    torch.manual_seed(2)
    net = Net()
    total = torch.zeros(())
    for one, wanted in zip(x, y):
        guess = net(one.unsqueeze(0))
        total = total + F.smooth_l1_loss(guess, wanted.unsqueeze(0))  # here
    return total / len(x), x, y
""",
        "total = total + torch.vmap(one_row)(x[:len(y)], y[:len(x)]).sum(0)",
    ),
    "numbers beside rows": (
        """
def work(x=made(5, 4), w=made(5, 2)):
    rows = [row.sum() * w[i, 1] + w[i].sum() for i, row in enumerate(x)]  # here
    return torch.stack(rows), x, w
""",
        "torch.vmap(lambda row, w_row: row.sum() * w_row[1] + w_row.sum())(x, w[:len(x)])",
    ),
    "a size that is asked before the tensor grows": (
        """
def work(x=made(2, 3, 4)):
    B, T, D = x.shape
    x2 = x
    x2 = torch.cat([torch.zeros(B, 1, D), x2], dim=1)
    outs = []
    for t in range(T):
        outs.append(x2[:, t].cumsum(-1))  # here
    return torch.stack(outs, dim=1), x
""",
        "(x2[:, :T])",
    ),
    "a summand in parentheses": (
        """
def work(x=made(5, 4)):
    total = torch.zeros(())
    for row in x:
        a = row.sin()
        total += (
            a.sum()
            + 100.0
        )  # here
    return total, x
""",
        "total += torch.vmap(one_row)(x).sum(0)",
    ),
    "rows of a tensor made in front": (
        """
def work(x=made(5, 4), y=made(6, 4)):
    n, width = x.shape
    out = torch.zeros(n, len(y))
    for i in range(n):
        out[i] = y @ x[i].tanh()  # here
    return out.exp(), x, y
""",
        "out = torch.vmap(lambda x_row: y @ x_row.tanh())(x)  # here\n    return out.exp(), x, y",
    ),
    "columns of a tensor made in front": (
        """
def work(x=made(5, 4, 3)):
    lin = nn.Linear(3, 2)
    nn.init.ones_(lin.weight), nn.init.zeros_(lin.bias)
    y = x.new_empty((x.size(0), x.size(1), 2))
    for t in range(x.size(1)):
        h = lin(x[:, t])
        y[:, t] = h * h.sigmoid()  # here
    return y, x
""",
        "y = torch.vmap(one_row, in_dims=1, out_dims=1)(x)",
    ),
    "rows like those of another": (
        """
def work(x=made(5, 4)):
    out = torch.empty_like(x)
    for i, row in enumerate(x):
        out[i] = row / row.norm()  # here
    return out, x
""",
        "out = torch.vmap(lambda row: row / row.norm())(x)",
    ),
    "the last dimension": (
        """
def work(x=made(5, 4, 3)):
    heads = []
    for h in range(x.shape[-1]):
        heads.append(torch.softmax(x[..., h], -1))  # here
    out = torch.stack(heads, -1)
    return out, x
""",
        "heads = torch.vmap(lambda x_row: torch.softmax(x_row, -1), in_dims=-1, out_dims=-1)(x)",
    ),
    "a sum over the places of two dimensions, the second beside numbers": (
        """
QUANTILES = [0.1, 0.5, 0.9]
HORIZON = 4


def quantile_loss(pred, target):
    total = 0.0
    for h in range(HORIZON):
        for i, q in enumerate(QUANTILES):
            err = target[:, h] - pred[:, h, i]
            total = total + torch.max(q * err, (q - 1) * err).mean()  # here
    return total / (HORIZON * len(QUANTILES))


def work(pred=made(5, 4, 3), target=made(5, 4)):
    return quantile_loss(pred, target), pred
""",
        """    def one_row(target_row, pred_row):
        total = 0
        for i, q in enumerate(QUANTILES):
            err = target_row - pred_row[:, i]
            total = total + torch.max(q * err, (q - 1) * err).mean()  # here
        return total

    total = total + torch.vmap(one_row, in_dims=1)(target[:, :HORIZON], pred[:, :HORIZON]).sum(0)
""",
    ),
    "summed and divided by how many": (
        """
def all_of(pred, target):
    losses = []
    for i in range(pred.size(0)):
        losses.append(F.mse_loss(pred[i], target[i]))  # here
    return sum(losses) / len(losses)


def work(pred=made(5, 3), target=made(5, 3)):
    return all_of(pred, target), pred
""",
        "    return losses.sum(0) / len(losses)",
    ),
    "a layer of torch's at each place": (
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(1)
        self.head = nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2))

    def forward(self, h):
        outs = []
        for t in range(h.size(1)):
            outs.append(self.head(h[:, t, :]))  # here
        return torch.stack(outs, dim=1)


def work(x=made(3, 5, 4)):
    return Net()(x), x
""",
        "outs = torch.vmap(self.head, in_dims=1, out_dims=1)(h)",
    ),
    "numbers between limits": (
        """
def work(x=made(5, 3)):
    feats = []
    for k in range(1, 4):
        feats.append((x * k).sin().mean(1))  # here
    return torch.stack(feats, 1), x
""",
        "feats = torch.vmap(lambda k: (x * k).sin().mean(1), out_dims=1)(torch.arange(1, 4, device=x.device))",
    ),
    "numbers of a list by the number of the row": (
        """
WEIGHTS = (0.5, 1.0, 2.0)


def all_of(pred, target):
    loss = 0.0
    for i in range(3):
        loss = loss + WEIGHTS[i] * F.l1_loss(pred[:, i], target[:, i])  # here
    return loss


def work(x=made(4, 3), y=made(4, 3).sin()):
    return all_of(x, y), x
""",
        "(torch.tensor(WEIGHTS[:3], device=pred.device), pred[:, :3], target[:, :3])",
    ),
    "two results of one call, one of whole numbers": (
        """
def overlap(a, b):
    low = torch.maximum(a[:, None, :2], b[None, :, :2])
    high = torch.minimum(a[:, None, 2:], b[None, :, 2:])
    return (high - low).clamp(min=0).sum(-1)


def match(anchors, boxes):
    best = torch.zeros(len(anchors))
    place = torch.zeros(len(anchors), dtype=torch.long)
    for i, anchor in enumerate(anchors):
        found = overlap(anchor[None], boxes)[0]
        best[i], place[i] = found.max(0)  # here
    return best + place


def work(x=made(5, 4).detach(), y=made(3, 4)):
    return match(x + 1, y), y
""",
        """    def one_row(anchor):
        found = overlap(anchor[None], boxes)[0]
        return found.max(0)

    best[:], place[:] = torch.vmap(one_row)(anchors)  # here
""",
    ),
    "two rows that a turn places": (
        """
def ends(x):
    top = torch.zeros(x.shape[0])
    low = torch.zeros(x.shape[0])
    for i in range(x.shape[0]):
        top[i] = x[i].max()
        low[i] = x[i].min()  # here
    return top - low


def work(x=made(5, 4)):
    return ends(x), x
""",
        "    top[:], low[:] = torch.vmap(lambda x_row: (x_row.max(), x_row.min()))(x)  # here",
    ),
    "rows of whole numbers": (
        """
def places(x):
    out = torch.zeros(len(x), dtype=torch.long)
    for i in range(len(x)):
        out[i] = x[i].sum() * 3  # here
    return x.sum() * out


def work(x=made(5, 4)):
    return places(x), x
""",
        "    out[:] = torch.vmap(lambda x_row: x_row.sum() * 3)(x)  # here",
    ),
    "the hardest of those that masks take": (
        """
def batch_hard(emb, labels, margin=1.0):
    dist = torch.cdist(emb, emb, compute_mode="donot_use_mm_for_euclid_dist")
    losses = []
    for i in range(len(labels)):
        pos = labels == labels[i]
        neg = ~pos
        pos[i] = False
        hardest_pos = dist[i][pos].max()
        hardest_neg = dist[i][neg].min()
        losses.append(F.relu(hardest_pos - hardest_neg + margin))  # here
    return torch.stack(losses).mean()


def work(x=made(9, 4), y=torch.arange(9) % 3):
    return batch_hard(x, y), x
""",
        """        pos[i] = False
        hardest_pos = dist_row.masked_fill(~pos.view_as(dist_row), float("-inf")).max()
        hardest_neg = dist_row.masked_fill(~neg.view_as(dist_row), float("inf")).min()
""",
    ),
    "means of those that masks take": (
        """
def per_class(x, y):
    total = 0.0
    for c in range(3):
        mine = (y == c) & (x > -3)
        total = total + x[mine].mean() * 2 * x[y == c].sum()  # here
    return total


def work(x=made(9), y=torch.arange(9) % 3):
    return per_class(x, y.long()), x
""",
        "(x.masked_fill(~mine.view_as(x), 0).sum() / mine.sum()) * 2 * x.masked_fill(~(y == c).view_as(x), 0).sum()",
    ),
    "an element of what the turn has made": (
        """
def contrast(z1, z2):
    sim = z1 @ z2.T
    loss = 0.0
    for i in range(sim.shape[0]):
        logits = sim[i] / 0.1
        loss = loss + (torch.logsumexp(logits, 0) - logits[i])  # here
    return loss / sim.shape[0]


def work(x=made(4, 5), y=made(5, 4)):
    return contrast(x, y.T), x, y
""",
        "        return (torch.logsumexp(logits, 0) - logits[i])",
    ),
    "a row of a matrix of pairs": (
        """
def overlap(a, b):
    out = torch.zeros(len(a), len(b))
    for i in range(len(a)):
        for j in range(len(b)):
            low = torch.maximum(a[i, :2], b[j, :2])
            high = torch.minimum(a[i, 2:], b[j, 2:])
            out[i, j] = (high - low).clamp(min=0).sum()  # here
    return out


def work(x=made(4, 4), y=made(3, 4)):
    return overlap(x, y), x, y
""",
        "        out[i] = torch.vmap(one_row)(b)  # here",
    ),
    "all rows of a matrix, whose columns are done at once": (
        """
def distances(x):
    n = x.size(0)
    d = torch.zeros(n, n)
    for i in range(n):
        d[i] = torch.vmap(lambda x_row: ((x[i] - x_row) ** 2).sum())(x)  # here
    return d


def work(x=made(4, 5)):
    return distances(x), x
""",
        "d = torch.vmap(lambda x_row_: torch.vmap(lambda x_row: ((x_row_ - x_row) ** 2).sum())(x))(x)  # here",
    ),
    "numbers of a list beside columns": (
        """
QUANTILES = [0.1, 0.5, 0.9]


def quantile_loss(pred, target):
    losses = []
    for i, q in enumerate(QUANTILES):
        err = target - pred[:, i]
        losses.append(torch.max(q * err, (q - 1) * err).mean())  # here
    return torch.stack(losses).mean()


def work(pred=made(5, 3), target=made(5)):
    return quantile_loss(pred, target), pred
""",
        "(torch.tensor(QUANTILES, device=target.device), pred[:, :len(QUANTILES)])",
    ),
    "a number that a turn computes with": (
        """
def dice(logits, target):
    probs = logits.softmax(1)
    total = 0.0
    for c in range(logits.shape[1]):
        p = probs[:, c]
        t = (target == c).float()
        total += 1 - (2 * (p * t).sum() + 1) / (p.sum() + t.sum() + 1)  # here
    return total / logits.shape[1]


def work(logits=made(2, 3, 4, 4), target=torch.arange(32).view(2, 4, 4) % 3):
    return dice(logits, target), logits
""",
        "torch.vmap(one_row, in_dims=(1, 0))(probs[:, :logits.shape[1]], torch.arange(logits.shape[1], device=probs.device)).sum(0)",
    ),
    "columns of a row of another loop": (
        """
def work(x=made(2, 3, 5)):
    outs = []
    for b in range(x.shape[0]):
        outs.append(torch.stack([x[b, :, t].softmax(0) for t in range(x.size(2))]))  # here
    return torch.stack(outs), x
""",
        "outs.append(torch.vmap(lambda x_row: x_row[b, :].softmax(0), in_dims=2)(x))",
    ),
    "columns by number from the end": (
        """
def work(x=made(2, 3, 5)):
    total = 0
    for t in range(x.shape[-1]):
        total += (x[..., 0, t] * x[..., -1, t]).exp().sum()  # here
    for t in range(3):
        total += x[..., t, :2].exp().sum()
    return total, x
""",
        "torch.vmap(lambda x_row: (x_row[..., 0] * x_row[..., -1]).exp().sum(), in_dims=-1)(x).sum(0)",
    ),
    "fewer rows than there are, by number from the end": (
        """
def work(x=made(2, 3, 5)):
    total = 0
    for t in range(2):
        total += x[..., t, :2].exp().sum()  # here
    return total, x
""",
        "torch.vmap(lambda x_row: x_row[..., :2].exp().sum(), in_dims=-2)(x[..., :2, :]).sum(0)",
    ),
}  # fmt: skip


def run(text: str, tmp_path) -> list[torch.Tensor]:
    """The result of `work`, and the gradients of what it was given."""
    space: dict = {}
    exec(compile(text, str(tmp_path / "train.py"), "exec"), space)
    result, *given = space["work"]()
    result.square().sum().backward()
    return [result.detach(), *(each.grad for each in given)]


@pytest.mark.parametrize("form", FORMS)
def test_all_rows_at_once_give_the_same(tmp_path, form):
    source, told = FORMS[form]
    found = candidate_here(tmp_path, "vmap_rows", HEAD + source)
    after = applied(tmp_path, found.diff)["train.py"]
    assert told in after, after
    for a, b in zip(run(HEAD + source, tmp_path), run(after, tmp_path), strict=True):
        assert a.shape == b.shape
        torch.testing.assert_close(a, b)


REFUSED = {
    "a running state": (
        """
def work(x):
    h = x[0]
    out = []
    for row in x:
        h = torch.tanh(h + row)  # here
        out.append(h)
    return torch.stack(out)
""",
        "is also used outside the loop",
    ),
    "what the turn before has left": (
        """
def work(x):
    out = []
    for row in x:
        if len(out):
            row = row + before  # here
        before = row.sin()
        out.append(before)
    return torch.stack(out)
""",
        "has other uses|is read before the turn sets it",
    ),
    "a list of tensors": (
        """
def work(x):
    parts = x.split(2)
    return torch.stack([part.sin().sum() for part in parts])  # here
""",
        "is a tensor, and no list of them",
    ),
    "layers": (
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.heads = nn.ModuleList(nn.Linear(2, 2) for _ in range(3))

    def forward(self, x):
        return torch.stack([head(x) for head in self.heads])  # here
""",
        "is a tensor, and no list of them",
    ),
    "numbers that are read": (
        """
def work(x):
    return sum(row.sum().item() for row in x)  # here
""",
        "does once for each row is not known",
    ),
    "counted calls": (
        """
class Net:
    def one(self, row):
        self.calls += 1
        return row.sin()

    def work(self, x):
        return torch.stack([self.one(row) for row in x])  # here
""",
        "changes what others read",
    ),
    "a list of others": (
        """
def work(x, seen):
    def one(row):
        seen.append(row.mean())
        return row.sin()
    return torch.stack([one(row) for row in x])  # here
""",
        "changes what others read",
    ),
    "numbers drawn at random": (
        """
def noisy(row):
    return row + torch.randn(row.shape)


def work(x):
    return torch.stack([noisy(row) for row in x])  # here
""",
        "draws anew for each row",
    ),
    "a number that is more than a place": (
        """
def work(x):
    return torch.stack([x[i] * weight_of(i) for i in range(len(x))])  # here
""",
        "is used for more than to take a row",
    ),
    "left early": (
        """
def work(x):
    out = []
    for row in x:
        if len(row) > 3:
            break  # here
        out.append(row.sin())
    return torch.stack(out)
""",
        "belongs to one turn",
    ),
    "a list that is read elsewhere": (
        """
def work(x):
    out = []
    for row in x:
        out.append(row.sin())  # here
    print(out[0])
    return torch.stack(out)
""",
        "has other uses",
    ),
    "a list whose length each turn asks for": (
        """
def work(x):
    out = []
    for row in x:
        out.append(row * len(out))  # here
    return torch.stack(out)
""",
        "has other uses",
    ),
    "a length of a list that is joined along its rows": (
        """
def work(x):
    out = []
    for row in x:
        out.append(row.sin())  # here
    return torch.cat(out) / len(out)
""",
        "joined, has another length",
    ),
    "a number that a function of the program gets": (
        """
SHARP = {2: 0.5, 4: 2.0}


def bent(row, k):
    return row.sin() * SHARP.get(k, 1.0)


def work(x):
    total = 0.0
    for i in range(len(x)):
        total = total + bent(x[i], 2 * i).sum()  # here
    return total
""",
        "is used for more than to take a row",
    ),
    "a part of a row of a matrix": (
        """
def work(x):
    n = x.size(0)
    d = torch.zeros(n, n)
    for i in range(n):
        for j in range(n - 1):
            d[i, j] = (x[i] * x[j]).sum()  # here
    return d
""",
        "whether the loop fills all of `d` is not known|may be less than none",
    ),
    "a matrix that its own loop reads": (
        """
def work(x):
    n = x.size(0)
    d = torch.zeros(n, n)
    for i in range(n):
        for j in range(n):
            d[i, j] = (x[i] * x[j]).sum() + d[j, i]  # here
    return d
""",
        "`d` is used before the loop has filled it",
    ),
    "drawing in what is mapped already": (
        """
def work(x):
    d = torch.zeros(len(x), len(x))
    for i in range(len(x)):
        d[i] = torch.vmap(lambda row: (x[i] * torch.rand_like(row)).sum(), randomness="different")(x)  # here
    return d
""",
        "draws anew for each row",
    ),
    "elements that a mask takes, row by row": (
        """
def work(x):
    total = 0.0
    for c in range(3):
        total = total + x[x > c].std()  # here
    return total
""",
        "takes another number of elements in each row",
    ),
    "a number that decides": (
        """
def work(x):
    total = 0.0
    for i in range(len(x)):
        total = total + (x[i].sum() if i > 1 else x[i].mean())  # here
    return total
""",
        "is used for more than",
    ),
    "a number that is the place of a neighbour": (
        """
def work(x):
    total = 0.0
    for i in range(1, len(x)):
        total = total + (x[i] - x[i - 1]).abs().sum()  # here
    return total
""",
        "is used for more than to compute",
    ),
    "a list of texts by number": (
        """
NAMES = ["a", "b"]


def work(x):
    total = 0.0
    for i in range(2):
        total = total + x[i].sum() * len(NAMES[i])  # here
    return total
""",
        "is a tensor, and no list of them",
    ),
    "a sum that inner loops read": (
        """
def work(x):
    total = 0.0
    for i in range(len(x)):
        for j in range(2):
            total = total + x[i].sum() * total  # here
    return total
""",
        "a turn reads `total`",
    ),
    "a sum that the turn goes on with": (
        """
def work(x):
    total = 0.0
    for i in range(len(x)):
        first = total
        for j in range(2):
            total = total + x[i].sum() * first  # here
    return total
""",
        "a turn reads `total`",
    ),
    "what the inner turn before has left": (
        """
def work(x):
    total = 0.0
    for i in range(len(x)):
        for j in range(2):
            if j:
                total = total + before
            before = x[i].sum()
            total = total + before * 2  # here
    return total
""",
        "a turn reads `total`|is read before",
    ),
    "the sum so far": (
        """
def work(x):
    total = 0.0
    for row in x:
        total += row.sum() * (1 + total)  # here
    return total
""",
        "the sum so far",
    ),
    "functions of a table, stacked": (
        """
def work(x, y):
    return torch.stack([f(row) for f in (torch.sin, torch.cos) for row in x])  # here
""",
        "is no plain comprehension",
    ),
    "functions that nobody knows": (
        """
def work(x, table):
    return sum(f(row.sin()) for f in table for row in x)  # here
""",
        "is not known",
    ),
    "chosen rows": (
        """
def work(x, keep):
    return torch.stack([row.sin() for row in x if keep])  # here
""",
        "is no plain comprehension",
    ),
    "some rows of a tensor": (
        """
def work(x, n):
    out = torch.zeros(n, 4)
    for i in range(len(x)):
        out[i] = x[i].sin()  # here
    return out
""",
        "whether the loop fills all",
    ),
    "rows that later ones read": (
        """
def work(x):
    out = torch.zeros(len(x), 4)
    for i in range(len(x)):
        out[i] = out[i - 1] + x[i].sin()  # here
    return out
""",
        "is used before the loop has filled it",
    ),
    "a tensor that is shown in between": (
        """
def work(x):
    out = torch.zeros_like(x)
    seen = out
    for i in range(len(x)):
        out[i] = x[i].sin()  # here
    return out, seen
""",
        "is used before the loop has filled it",
    ),
    "rows that read what the turn has placed": (
        """
def work(x):
    top = torch.zeros(x.shape[0])
    low = torch.zeros(x.shape[0])
    for i in range(x.shape[0]):
        top[i] = x[i].max()
        low[i] = top[i] - 1  # here
    return top - low
""",
        "`top` is used before the loop has filled it",
    ),
    "a list that a caller passes": (
        """
def last(states):
    return torch.stack([h[-1].mean(0) for h in states])  # here


def work(x):
    return last([x, x + 1, x + 2])
""",
        "is a tensor, and no list of them",
    ),
    "what the last turn leaves to an outer loop": (
        """
def work(x):
    for epoch in range(2):
        total = torch.zeros(())
        for row in x:
            reg = row.square().mean()
            total = total + reg  # here
        print(reg)
""",
        "is also used outside the loop",
    ),
    "a generator of another library": (
        """
import numpy as np
rng = np.random.default_rng(0)


def work(x):
    return torch.stack([row * rng.uniform() for row in x])  # here
""",
        "does once for each row is not known",
    ),
    "a lambda that draws": (
        """
import random


def work(x):
    aug = lambda r: r * random.uniform(0, 1)
    return torch.stack([aug(row) for row in x])  # here
""",
        "does once for each row is not known",
    ),
    "an iterator": (
        """
def work(x, ws):
    it = iter(ws)
    return torch.stack([row * next(it) for row in x])  # here
""",
        "does once for each row is not known",
    ),
    "a network that counts": (
        """
class Net(nn.Module):
    def forward(self, x):
        self.seen.append(1)
        return x.sin()


def work(x, net):
    return torch.stack([net(row) for row in x])  # here
""",
        "changes what others read",
    ),
    "a network that counts in a tensor": (
        """
class Net(nn.Module):
    def forward(self, x):
        self.counts[0] += 1
        return x.sin()


def work(x):
    net = Net()
    return torch.stack([net(row) for row in x])  # here
""",
        "changes what others read|is done once for each row",
    ),
    "a network that draws in Python": (
        """
import random


class Net(nn.Module):
    def forward(self, x):
        return 0 * x if random.random() < 0.5 else x


def work(x):
    net = Net()
    return torch.stack([net(row) for row in x])  # here
""",
        "does once for each row is not known",
    ),
    "what torch says of a mapped row": (
        """
def bent(row):
    return row * 2 if row.requires_grad else row * 3


def work(x):
    return torch.stack([bent(row) for row in x])  # here
""",
        "says something else of mapped rows",
    ),
    "an error that is caught": (
        """
def work(x, drop):
    try:
        return sum(drop(row).sum() for row in x)  # here
    except RuntimeError:
        return torch.zeros(())
""",
        "is caught",
    ),
    "a row that is not used": (
        """
def work(x, w):
    return torch.stack([w.sin() for row in x])  # here
""",
        "does not use its row",
    ),
    "fewer than none": (
        """
def work(x, skip):
    total = torch.zeros(())
    for t in range(len(x) - skip):
        total += x[t].sum()  # here
    return total
""",
        "may be less than none",
    ),
    "a comment inside": (
        """
def work(x):
    return torch.stack(  # here
        [
            row.sin()  # of each
            for row in x
        ]
    )
""",
        "a comment stands where",
    ),
    "a function that draws, called by map": (
        """
def noisy(row):
    return row + torch.randn(4)


def work(x):
    return torch.stack(list(map(noisy, x)))  # here
""",
        "draws anew for each row",
    ),
    "a function of the library's, called by map": (
        """
def work(x):
    return torch.stack(list(map(torch.rand_like, x)))  # here
""",
        "once for each row is not known",
    ),
    "what a caller hands to map": (
        """
def work(x, change):
    return torch.stack(list(map(change, x)))  # here
""",
        "once for each row is not known",
    ),
    "a function that counts, called by map": (
        """
class Counter:
    calls = 0

    def one(self, row):
        self.calls += 1
        return row.sin()

    def all(self, x: torch.Tensor):
        return torch.stack(list(map(self.one, x)))  # here
""",
        "is done once for each row",
    ),
    "a data set": (
        """
class Data:
    def __getitem__(self, i):
        return self.x[i] + torch.randn(2)


def work(x):
    ds = Data()
    return torch.stack([ds[i] for i in range(len(x))])  # here
""",
        "is a tensor, and no list of them",
    ),
    "another name for the list": (
        """
def work(x):
    net.kept = out = []
    for row in x:
        out.append(row.sin())  # here
    return torch.stack(out)
""",
        "is not empty in front of the loop",
    ),
    "written into another tensor": (
        """
def work(x, out):
    total = 0.0
    for i in range(len(x)):
        out[i] = x[i].sin()
        total += x[i].sum()  # here
    return out
""",
        "is used for more than|changes what others read",
    ),
}  # fmt: skip


@pytest.mark.parametrize("form", REFUSED)
def test_turns_that_do_more_than_their_row_stay(tmp_path, form):
    source, reason = REFUSED[form]
    source = re.sub(r"def (work|forward)\((self, )?x\b", r"def \1(\2x: torch.Tensor", source)
    with pytest.raises(UsageError, match=reason):
        candidate_here(tmp_path, "vmap_rows", HEAD + source)


def test_a_mask_with_fewer_dimensions_fails_where_it_would_fill_others(tmp_path):
    source = """
def work(x=made(4, 4, 4), y=torch.arange(4) % 2):
    total = 0.0
    for i in range(len(x)):
        mine = y == y[i]
        total = total + x[i][mine].max()  # here
    return total, x
"""
    after = applied(tmp_path, candidate_here(tmp_path, "vmap_rows", HEAD + source).diff)["train.py"]
    with pytest.raises(RuntimeError, match="shape"):
        run(after, tmp_path)
