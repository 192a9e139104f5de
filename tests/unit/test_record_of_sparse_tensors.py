"""A sparse tensor is recorded at the cost of what it holds, however large it would be if it were dense."""

from __future__ import annotations

import torch
from probe_events import part

tensors = part("record.tensors")

ROWS = 1 << 40


def gradient(values, rows=ROWS):
    return torch.sparse_coo_tensor(torch.tensor([[5, 9, 5]]), torch.tensor(values), (rows, 2), check_invariants=True)


def test_a_huge_one_is_squared_by_the_values_it_holds():
    assert tensors.squares(gradient([[1.0, 2.0], [3.0, 0.0], [1.0, 0.0]])) == 4 + 4 + 9


def test_a_huge_one_has_a_hash_of_its_places_and_values():
    one, same, other = gradient([[1.0, 2.0]] * 3), gradient([[1.0, 2.0]] * 3), gradient([[1.0, 2.0]] * 2 + [[1.0, 2.5]])
    assert tensors.digest([one]) == tensors.digest([same]) != tensors.digest([other])
    assert tensors.rows([one]) == tensors.rows([same]) != tensors.rows([other])


def test_a_small_one_is_recorded_as_if_it_were_dense():
    small = gradient([[1.0, 2.0], [3.0, 0.0], [1.0, 0.0]], rows=20)
    assert tensors.squares(small) == tensors.squares(small.to_dense())
    assert tensors.elements([small]) == tensors.elements([small.to_dense()])
    assert tensors.digest([small]) == tensors.digest([small.to_dense()])
    assert tensors.sketch([small]) == tensors.sketch([small.to_dense()])
