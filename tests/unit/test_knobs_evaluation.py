"""Evaluation sees the same samples in larger batches, and leaves nothing that training would meet where inference mode makes it."""

from __future__ import annotations

import pytest
from knob_scenes import activity, added, finding, loader, program, summary

from trainflash.errors import UsageError

NETWORK = """import functools
import torch
from torch import nn

TABLES = {{}}
{0}


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.tables = {{}}
        self.calls = 0
        self.w = nn.Parameter(torch.ones(4))

    def table(self, n):
        {1}

    def forward(self, x):
        return self.w * self.table(len(x))


@torch.no_grad()
def evaluate(model, batches, seen):
    total = 0.0
    for x in batches:
        total += float(model(x).sum())  # here
        {2}
    return total
"""


def inference(tmp_path, head="", table="return 1", loop="pass"):
    made = program(tmp_path, train_py=NETWORK.format(head, table, loop))
    run = summary(activities=(activity("Eval", made.line("train.py", "# here"), grad_enabled=False),))
    return made.propose("eval_inference_mode", run, findings=[finding("evaluation")])


@pytest.mark.parametrize(
    ("head", "table"),
    [
        ("", "self.tables[n] = torch.arange(n)"),
        ("", "self.last = n"),
        ("", "self.seen += torch.ones(4)"),
        ("", "self.tables.update(n=torch.arange(n))"),
        ("", "return self.tables.setdefault(n, torch.arange(n))"),
        ("", "self.register_buffer('table', torch.arange(n))"),
        ("", "setattr(self, 'table', torch.arange(n))"),
        ("", "TABLES[n] = torch.arange(n)"),
        ("_arange = functools.cache(torch.arange)", "return _arange(n)"),
        ("_arange = functools.lru_cache(maxsize=8)(torch.arange)", "return _arange(n)"),
        ("@functools.cache\ndef arange(n):\n    return torch.arange(n)", "return arange(n)"),
        ("def arange(n):\n    TABLES[n] = torch.arange(n)\n    return TABLES[n]", "return arange(n)"),
    ],
)
def test_what_the_network_keeps_is_made_outside_inference_mode(tmp_path, head, table):
    with pytest.raises(UsageError, match="the network keeps what it computes"):
        inference(tmp_path, head, table)


@pytest.mark.parametrize("loop", ["seen[0] = model(x)", "seen.last = model(x)", "seen.append(model(x))", "seen.rows.append(model(x))"])
def test_what_evaluation_hands_out_is_made_outside_inference_mode(tmp_path, loop):
    with pytest.raises(UsageError, match="keeps what evaluation computed"):
        inference(tmp_path, loop=loop)


@pytest.mark.parametrize(
    ("table", "loop"),
    [
        ("self.calls += 1", "pass"),
        ("self.mode = 'eval'", "seen.append(float(total))"),
        ("rows = {}\n        rows[n] = torch.arange(n)\n        return rows[n]", "seen[0] = model(x).sum().item()"),
    ],
)
def test_numbers_may_be_kept(tmp_path, table, loop):
    assert added(inference(tmp_path, "", table, loop)) == ["@torch.inference_mode()"]


LOADERS = "from torch.utils.data import DataLoader\n"
VAL = f"{LOADERS}val = DataLoader(ds, batch_size=32)\n"


def larger(tmp_path, source, **files):
    made = program(tmp_path, train_py=source, **files)
    run = summary(loaders=(loader("eval", made.line("train.py", "DataLoader(ds"), batch_size=32),))
    return made.propose("eval_batch_size", run, findings=[finding("evaluation")])


@pytest.mark.parametrize("given", ["drop_last=True", "drop_last=args.drop_last"])
def test_a_loader_that_drops_its_last_batch_keeps_its_size(tmp_path, given):
    with pytest.raises(UsageError, match="given drop_last"):
        larger(tmp_path, f"{LOADERS}val = DataLoader(ds, batch_size=32, {given})\n")


def test_a_trainer_that_drops_its_last_batch_keeps_its_size(tmp_path):
    source = "from transformers import TrainingArguments\na = TrainingArguments('o', {}per_device_eval_batch_size=2)\n"
    run = summary(loaders=(loader("eval", None, batch_size=2),))
    made = program(tmp_path, train_py=source.format("dataloader_drop_last=True, "))
    with pytest.raises(UsageError, match="given dataloader_drop_last"):
        made.propose("eval_batch_size", run)


MAKE = "def make(ds):\n    a = DataLoader(other)\n    return a, DataLoader(ds, batch_size=32)\ntrain, val = make(data)\n"
SHORT = "for i, x in enumerate(val):\n    if i >= 20:\n        break\n    model(x)\n"


@pytest.mark.parametrize(
    "source",
    [
        VAL + SHORT,
        f"{VAL}for x in val:\n    with quiet():\n        if seen > 20:\n            break\n",
        f"{VAL}def evaluate():\n    for i, x in enumerate(val):\n        if i > 20:\n            return 3\n",
        f"{VAL}def evaluate(rows):\n    for x in tqdm(rows):\n        if seen > 20:\n            break\nevaluate(val)\n",
        f"{VAL}class T:\n    def __init__(self, a, b):\n        self.rows = b\n    def run(self):\n        for x in self.rows:\n"
        "            break\nT(1, val)\n",
        f"{LOADERS}{MAKE}{SHORT}",
        f"{LOADERS}def main():\n    train, val = make(data)\n    score(val)\ndef score(rows):\n    for x in rows:\n        break\n"
        "def make(ds):\n    a = DataLoader(other)\n    return a, DataLoader(ds, batch_size=32)\nmain()\n",
        f"{VAL}from itertools import islice\nfor x in islice(val, 20):\n    model(x)\n",
        f"{VAL}for i, x in zip(range(20), val):\n    model(x)\n",
        f"{VAL}rows = iter(val)\nfor i in range(20):\n    model(next(rows))\n",
    ],
)
def test_a_number_of_batches_is_no_larger_number_of_samples(tmp_path, source):
    with pytest.raises(UsageError, match="more samples"):
        larger(tmp_path, source)


def test_the_loop_may_stand_in_another_file(tmp_path):
    source = f"from score import evaluate\n{VAL}evaluate(val)\n"
    with pytest.raises(UsageError, match=r"score\.py:3"):
        larger(tmp_path, source, score_py="def evaluate(rows):\n    for x in rows:\n        break\n")
    folder = tmp_path / "other"
    folder.mkdir()
    with pytest.raises(UsageError, match=r"train\.py:3"):
        made = program(folder, train_py="from data import val as rows\nfor x in rows:\n    break\n", data_py=VAL)
        run = summary(loaders=(loader("eval", made.line("data.py", "DataLoader(ds"), batch_size=32),))
        made.propose("eval_batch_size", run)


@pytest.mark.parametrize(
    "source",
    [
        f"{VAL}for x in val:\n    model(x)\nfor x in other:\n    break\n",
        f"{LOADERS}val = DataLoader(ds, batch_size=32, drop_last=False)\n",
        f"{LOADERS}{MAKE}for x in train:\n    break\nfor x in val:\n    model(x)\n",
        f"{VAL}for x in val:\n    for row in x:\n        if row > 3:\n            break\n",
        f"{VAL}def evaluate(rows):\n    for x in rows:\n        model(x)\n    return 3\nevaluate(val)\n",
        f"{VAL}for i, (x, y) in zip(ids, val):\n    model(x)\n",
    ],
)
def test_all_samples_in_larger_batches_are_the_same_samples(tmp_path, source):
    assert "batch_size=256" in added(larger(tmp_path, source))[0]


@pytest.mark.parametrize(
    ("loop", "reason"),
    [
        ("for i, x in enumerate(val):\n    torch.save(net(x), f'{i}.pt')\n", "once for each batch"),
        ("for i, x in enumerate(val):\n    print(i, net(x))\n", "once for each batch"),
        ("for x in val:\n    if len(x) < 4:\n        continue\n    net(x)\n", "left out"),
        ("for a, b in val:\n    hits += ((a @ b.t()).argmax(1) == torch.arange(len(a))).sum()\n", "with each other"),
        ("def rank(a, b):\n    return torch.cdist(a, b)\nfor a, b in val:\n    rank(a, b)\n", "with each other"),
    ],
)
def test_what_is_done_for_each_batch_is_not_done_for_larger_ones(tmp_path, loop, reason):
    with pytest.raises(UsageError, match=reason):
        larger(tmp_path, VAL + loop)


@pytest.mark.parametrize(
    "loop",
    [
        "for x, names in val:\n    for each, name in zip(net(x), names):\n        torch.save(each, name)\nprint('done')\n",
        "for x in val:\n    if not ready:\n        continue\n    total += (x @ weights).sum() + torch.arange(10).sum()\n",
    ],
)
def test_what_is_done_for_each_sample_is_done_in_larger_batches_too(tmp_path, loop):
    assert "batch_size=256" in added(larger(tmp_path, VAL + loop))[0]
