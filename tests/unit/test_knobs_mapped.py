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
    return torch.stack([x[i] * i for i in range(len(x))])  # here
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
    print(len(out))
    return torch.stack(out)
""",
        "has other uses",
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
    "rows of whole numbers": (
        """
def work(x):
    out = torch.zeros(len(x), 4, dtype=torch.long)
    for i in range(len(x)):
        out[i] = x[i] * 3  # here
    return out
""",
        "whether the loop fills all",
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
