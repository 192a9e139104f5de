"""How much of a batch is padding, by the masks that programs hand to their networks."""

from __future__ import annotations

import pytest
import torch
from probe_events import part

LENGTHS = (3, 5, 8, 4)
ROWS = torch.tensor([[place < length for place in range(10)] for length in LENGTHS])  # (4 rows, 10 places)


def shares(name: str, mask: torch.Tensor) -> tuple:
    padding = part("facts.padding").Padding()
    padding.look([("x", torch.rand(4, 10, 6) + 1), (name, mask)])
    elements, padded, common = padding.totals()
    return elements, padded, common


@pytest.mark.parametrize(
    "mask",
    [ROWS, ROWS.long(), ROWS.float(), ROWS.unsqueeze(-1), ROWS.unsqueeze(-1).float(), ROWS[:, None], ROWS[:, None, None].float()],
    ids=["bool", "int", "float", "a place each", "floats, a place each", "for heads", "floats, for heads and queries"],
)
def test_a_mask_tells_whatever_its_form(mask):
    assert shares("mask", mask) == (40, 20, 8)


def test_a_mask_of_what_is_left_out():
    assert shares("key_padding_mask", ~ROWS) == (40, 20, 8)


@pytest.mark.parametrize(
    ("name", "mask"),
    [
        ("mask", torch.zeros(4, 10).masked_fill(~ROWS, float("-inf"))),
        ("mask", ROWS[:, None] & ROWS[:, :, None]),
        ("loss_mask", ROWS.float()),
        ("mask", torch.rand(4, 10)),
        ("mask", torch.tensor([[1, 0, 1, 0, 1, 1, 0, 1, 0, 1]] * 4)),
    ],
    ids=["added to scores", "pairs", "of the loss", "weights", "with holes"],
)
def test_other_masks_are_not_believed(name, mask):
    assert shares(name, mask)[1] == 0


def nameless(mask: torch.Tensor, **changes) -> tuple:
    """Kinds of atoms, of which 0 is one, and the padding."""
    kinds = torch.arange(40).reshape(4, 10) % 3 * ROWS
    padding = part("facts.padding").Padding()
    padding.look([("", changes.get("first", kinds)), ("", torch.rand(4, 10, 10)), ("", mask)])
    return padding.totals()[1:]


def test_a_nameless_mask_is_known_by_what_it_leaves_out():
    assert nameless(ROWS.unsqueeze(-1).float()) == (20, 8)


@pytest.mark.parametrize(
    ("mask", "changes"),
    [
        (ROWS.float(), {"first": torch.arange(40).reshape(4, 10) % 3}),  # something stands where it says no
        (ROWS.float() * 2, {}),
        ((torch.arange(10) < 5).repeat(4, 1), {"first": torch.zeros(4, 10).long()}),  # all rows as long: a target of another kind
        (ROWS[:, :8].float(), {}),
    ],
    ids=["values behind the end", "other numbers", "equal lengths", "another width"],
)
def test_other_nameless_parts_are_no_masks(mask, changes):
    assert nameless(mask, **changes)[0] == 0
