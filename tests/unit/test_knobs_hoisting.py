"""Work is moved out of a loop only where each step may get the same object: nobody writes into it, keeps it or hands it out."""

from __future__ import annotations

import pytest
from knob_scenes import added, program, summary

from trainflash.errors import UsageError

LOOP = "import numpy as np\nimport torch\n{0}for epoch in range(3):\n    made = {1}\n{2}"


def hoisted(tmp_path, rest, makes="torch.zeros(9)", imports=""):
    rows = "".join(f"    {row}\n" for row in rest.split("\n"))
    made = program(tmp_path, train_py=LOOP.format(f"{imports}\n" if imports else "", makes, rows))
    return made.propose("hoist_invariant", summary(), at=made.line("train.py", "made = "))


@pytest.mark.parametrize(
    ("imports", "rest"),
    [
        ("", "np.add.at(made, labels, 1)"),
        ("", "np.put(made, labels, 1)"),
        ("", "np.place(made, labels, 1)"),
        ("", "np.copyto(made, labels)"),
        ("", "np.fill_diagonal(made, 1)"),
        ("", "np.add(made, labels, made)"),
        ("", "np.add(made, labels, out=made)"),
        ("", "total = np.exp(labels, made)"),
        ("", "made[0].fill_(1)"),
        ("", "flat = made.view(-1)\nflat[0] = epoch"),
        ("", "for row in made:\n    row += 1"),
        ("import torch.distributed as dist", "dist.all_reduce(made)"),
        ("import torch.distributed as dist", "work = dist.all_reduce(made, async_op=True)"),
        ("from torch.distributed import broadcast", "broadcast(made, 0)"),
        ("import random", "random.shuffle(made)"),
        ("from random import shuffle", "shuffle(made)"),
        ("", "rng.shuffle(made)"),
        ("import heapq", "heapq.heappush(made, epoch)"),
        ("import heapq", "least = heapq.heappop(made)"),
        ("", "torch.nn.init.normal_(made)"),
        ("", "x = torch.relu_(made)"),
        ("", "x = torch.nn.functional.relu(made, inplace=True)"),
        ("import cv2", "cv2.circle(made, (1, 1), 2, 3)"),
        ("import scipy.linalg", "x = scipy.linalg.solve(made, y, overwrite_a=True)"),
        ("", "work(fill(made))\ndef fill(rows):\n    rows[0] = 1"),
    ],
)
def test_what_the_loop_writes_into_is_made_in_each_pass(tmp_path, imports, rest):
    with pytest.raises(UsageError, match="changes it in the loop"):
        hoisted(tmp_path, rest, imports=imports)


@pytest.mark.parametrize(
    ("rest", "said"),
    [
        ("rows.append(made)", "may change or keep"),
        ("queue.put((epoch, made))", "may change or keep"),
        ("comm.Allreduce(counts, made)", "may change or keep"),
        ("kernel[grid](made)", "may change or keep"),
        ("rows[epoch] = made", "is kept here"),
        ("holder.rows = made", "is kept here"),
    ],
)
def test_what_is_kept_is_made_in_each_pass(tmp_path, rest, said):
    with pytest.raises(UsageError, match=said):
        hoisted(tmp_path, rest)


def test_what_a_generator_hands_out_is_made_in_each_pass(tmp_path):
    source = "import torch\ndef batches(data):\n    for x in data:\n        made = torch.zeros(9)\n        yield x, made\n"
    made = program(tmp_path, train_py=source)
    with pytest.raises(UsageError, match="is handed out here"):
        made.propose("hoist_invariant", summary(), at=made.line("train.py", "made = "))


@pytest.mark.parametrize(
    "rest",
    [
        "loss = model(x, made)",
        "x = torch.where(x > 0, x, made)",
        "x = x + made[:3]",
        "print(made)\nwriter.add_scalar('n', made.sum(), epoch)",
        "np.save('made.npy', made)",
        "loss = weigh(made)\ndef weigh(rows):\n    return rows.sum()",
        "out[:] = made.sum()",
        "total += made.mean()",
    ],
)
def test_what_is_only_read_is_made_once(tmp_path, rest):
    assert added(hoisted(tmp_path, rest))[0] == "made = torch.zeros(9)"
