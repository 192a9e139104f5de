"""Arrays that are made number by number: the changed program makes exactly the same ones."""

from __future__ import annotations

import pytest
import torch
from knob_runs import applied, candidate_here

from trainflash.errors import UsageError

HEAD = "import numpy as np\nimport torch\n\n\n"
STACKED = {
    "arrays of float32": """
def work():
    rng = np.random.default_rng(0)
    rows = [rng.normal(size=(3, 4)).astype(np.float32) for _ in range(5)]
    return torch.tensor(rows)  # here
""",
    "arrays of whole numbers": """
def work():
    rows = []
    for i in range(4):
        rows.append(np.full(3, i).astype(np.int32))
    return torch.as_tensor(rows)  # here
""",
    "a legacy constructor": """
def work():
    return torch.FloatTensor([np.linspace(0, 1, 7), np.ones(7)])  # here
""",
    "a legacy constructor without a type": """
def work():
    return torch.Tensor([np.linspace(0, 1, 7), np.ones(7)])  # here
""",
    "lists of a batch": """
def collate(batch):
    xs, ys = zip(*batch)
    return torch.tensor(xs, dtype=torch.float32)  # here


def work():
    return collate([([0.1, 0.2], 1), ([1 / 3, 4.0], 2)])
""",
    "a legacy constructor and lists of a batch": """
def collate(batch):
    xs, ys = zip(*batch)
    return torch.FloatTensor(xs)  # here


def work():
    arrays = collate([(np.ones(2), 1), (np.zeros(2), 2)])
    return torch.cat([arrays.flatten(), collate([(torch.ones(1, requires_grad=True).sum(), 1)])])
""",
    "rows that may be none": """
def target(boxes):
    return torch.tensor([box.tolist() for box in boxes], dtype=torch.float32)  # here


def work():
    return torch.cat([target([np.arange(4.0)]).flatten(), target([]), target([np.zeros((0, 4))]).sum().view(1)])
""",
    "rows of a network": """
def target(rows):
    return torch.tensor([row.tolist() for row in rows], dtype=torch.float32)  # here


def work():
    return target([torch.nn.functional.relu(torch.ones(2, requires_grad=True)), torch.zeros(2)])
""",
    "no rows and no type": """
def target(boxes):
    return torch.tensor([np.asarray(box, dtype=np.int64) for box in boxes])  # here


def work():
    assert target([[1, 2]]).dtype == torch.int64
    return target([])
""",
    "a type that may be none": """
def collate(batch, dtype=None):
    return torch.tensor([s["y"] for s in batch], dtype=dtype)  # here


def work():
    return collate([{"y": 0.5}, {"y": 1.5}])
""",
    "fields of a sample by their names": """
def as_batch(samples, keys):
    return {key: torch.tensor([sample[key] for sample in samples]) for key in keys}  # here


def work():
    samples = [{"x": np.linspace(0, 1, 7, dtype=np.float32), "y": 3, "z": 0.1} for _ in range(4)]
    x, y, z = as_batch(samples, ("x", "y", "z")).values()
    return torch.cat([x, y.unsqueeze(1).to(x), z.unsqueeze(1)], dim=1)
""",
    "rows that have a name": """
def join(samples, key):
    found = [sample[key] for sample in samples]
    return torch.tensor(found).flatten()  # here


def work():
    return torch.cat([join([{"x": 0.1}], "x"), join([], "x"), join([{"x": np.ones(3, np.float32)}], "x")])
""",
}


def outcome(source):
    space: dict = {}
    exec(compile(source, "train.py", "exec"), space)
    return space["work"]()


@pytest.mark.filterwarnings("ignore:Creating a tensor from a list", "ignore:Converting a tensor with requires_grad")
@pytest.mark.parametrize("form", STACKED)
def test_one_array_gives_the_same_tensor(tmp_path, form):
    source = HEAD + STACKED[form].lstrip("\n")
    changed = applied(tmp_path, candidate_here(tmp_path, "stacked_arrays", source).diff)["train.py"]
    assert "np.array(" in changed
    before, after = outcome(source), outcome(changed)
    assert before.dtype == after.dtype and torch.equal(before, after)


@pytest.mark.parametrize(
    "line, says",
    [
        ("return [row.sum() for row in torch.tensor([s[key] for s in samples])]  # here", "can be given here"),
        ("return torch.tensor([s[key] for s in samples]).abs() + rows + arrays  # here", "the name rows means something else"),
    ],
)
def test_a_list_that_cannot_get_a_name_is_left(tmp_path, line, says):
    with pytest.raises(UsageError, match=says):
        candidate_here(tmp_path, "stacked_arrays", f"{HEAD}def join(samples, key, rows=0, arrays=0):\n    {line}\n")


SAMPLES = {
    "dictionaries": '[{"early": [0.5, i], "marks": [i, 2], "at": i, "name": "core"} for i in range(3)]',
    "tuples": "[([0.1 * i, 1 / 3], torch.ones(2), 0.5) for i in range(3)]",
    "lists": "[[i, i + 1, 7] for i in range(3)]",
    "lists of words and of truths": '[(["a", "b"], [True, False], ([0.5], [1, 2])) for i in range(3)]',
    "whole numbers first": '[{"box": [10, 20, 16777217]}, {"box": [10.5, 20, 30]}, {"box": [1, 2, 3]}]',
    "halves first": "[([0.5, 1.5], [1, 2]), ([1, 2], [True, 2])]",
    "arrays": "[(np.ones(3), [np.float32(1), np.float32(2)]) for _ in range(3)]",
}


def same(before, after) -> bool:
    if isinstance(before, torch.Tensor):
        return before.dtype == after.dtype and torch.equal(before, after) and after.is_contiguous()
    if isinstance(before, dict):
        return list(before) == list(after) and all(same(before[key], after[key]) for key in before)
    if isinstance(before, (list, tuple)):
        return type(before) is type(after) and len(before) == len(after) and all(map(same, before, after))
    return before == after


@pytest.mark.parametrize("form", SAMPLES)
def test_one_tensor_for_a_list_gives_the_same_batch(tmp_path, form):
    source = (
        f"{HEAD}from torch.utils.data import DataLoader\n\n\ndef work():\n    return next(iter(DataLoader({SAMPLES[form]}, 3)))  # here\n"
    )
    changed = applied(tmp_path, candidate_here(tmp_path, "collated_lists", source, listed_numbers=64).diff)["train.py"]
    assert "collate_fn=collate_lists" in changed
    assert same(outcome(source), outcome(changed))


def test_lists_of_unequal_length_are_refused_as_before(tmp_path):
    source = (
        f"{HEAD}from torch.utils.data import DataLoader\n\n\ndef work():\n    return next(iter(DataLoader([[1, 2], [3]], 2)))  # here\n"
    )
    changed = applied(tmp_path, candidate_here(tmp_path, "collated_lists", source, listed_numbers=64).diff)["train.py"]
    for text in (source, changed):
        with pytest.raises(RuntimeError, match="equal size"):
            outcome(text)


def test_tuples_of_unequal_length_are_refused_as_before(tmp_path):
    source = (
        f"{HEAD}from torch.utils.data import DataLoader\n\n\ndef work():\n    return next(iter(DataLoader([(1, 2), (3,)], 2)))  # here\n"
    )
    changed = applied(tmp_path, candidate_here(tmp_path, "collated_lists", source, listed_numbers=64).diff)["train.py"]
    for text in (source, changed):
        with pytest.raises(RuntimeError, match="equal size"):
            outcome(text)


@pytest.mark.parametrize(
    ("loader", "says"),
    [
        ("DataLoader(rows, 8, collate_fn=join)", "collate function of the program's own"),
        ("DataLoader(rows, batch_size=None)", "makes no batches"),
    ],
)
def test_other_ways_to_join_are_left(tmp_path, loader, says):
    source = f"{HEAD}from torch.utils.data import DataLoader\nloader = {loader}  # here\n"
    with pytest.raises(UsageError, match=says):
        candidate_here(tmp_path, "collated_lists", source, listed_numbers=64)
