"""Targets are the same ones in float64 and in float32: the number format is a change of its own."""

from __future__ import annotations

import torch
from probe_events import part


def seen(target):
    tensors = part("record.tensors")
    return tensors.rows([tensors.as_single(target)])


def test_the_format_of_targets_is_not_their_content():
    target = torch.rand(6, 2, dtype=torch.float64)
    assert seen(target) == seen(target.float())
    assert seen(target) != seen(target.flip(0))
    assert seen(target) != seen(target * (1 + 1e-6))


def test_whole_numbers_keep_all_their_digits():
    large = torch.tensor([2**40, 2**40 + 1])
    assert seen(large) != seen(large.flip(0))
    assert len(set(seen(large))) == 2


def padded(rows, width, end):
    return torch.tensor([row + [end] * (width - len(row)) for row in rows])


LABELS = [[3, 0, 2, 0], [1, 1], [4, 0, 0]]


def test_classes_that_a_loss_leaves_out_are_no_targets():
    tensors = part("record.tensors")
    wide, narrow = padded(LABELS, 9, -100), padded(LABELS, 4, -100)
    assert tensors.rows([wide], ignored=-100) == tensors.rows([narrow], ignored=-100)
    assert tensors.rows([wide], ignored=7) != tensors.rows([narrow], ignored=7), "another index is left out"
    assert tensors.rows([padded(LABELS, 9, 0)], ignored=-100) != tensors.rows([narrow], ignored=-100), "zeros are a class"
    masked = narrow.clone()
    masked[1, 1] = -100
    assert tensors.rows([masked], ignored=-100) != tensors.rows([narrow], ignored=-100)
    floats = torch.full((3, 2), -100.0)
    assert tensors.rows([floats], ignored=-100) == tensors.rows([floats])


def test_a_flattened_batch_of_them_is_the_same_however_far_it_is_padded():
    def aimed(labels, ignored=-100):
        forwards = part("record.forwards").Forwards()
        forwards.aim(labels.reshape(-1), ignored)
        return forwards.taken()["targets"]

    wide, narrow = padded(LABELS, 9, -100), padded(LABELS, 4, -100)
    assert aimed(wide) == aimed(narrow) != aimed(narrow.flip(0))
    assert aimed(wide, None) != aimed(narrow, None)
    changed = narrow.clone()
    changed[0, 0] = -100
    assert aimed(changed) != aimed(narrow)


def test_padded_inputs_may_hold_the_labels_too():
    tensors = part("record.tensors")
    ids, ones = [[5, 6, 7, 8], [5, 6], [9, 9, 9]], [[1] * len(row) for row in LABELS]

    def row(width):
        return tensors.rows([padded(ids, width, 0), padded(ones, width, 0), padded(LABELS, width, -100)], trim=True)

    assert row(9) == row(4)
    pictures = torch.full((2, 4), 156, dtype=torch.uint8)
    assert tensors.rows([pictures], trim=True) != tensors.rows([pictures[:, :2]], trim=True), "a byte that looks like -100 is none"


def test_squares_are_the_same_however_far_both_their_sides_are_padded():
    tensors = part("record.tensors")
    generator = torch.Generator().manual_seed(3)
    squares = [torch.randint(0, 3, (size, size), generator=generator) for size in (4, 2, 6)]

    def padded_to(width, squares=squares, kind=torch.int64, fill=0):
        made = torch.full((len(squares), width, width), fill, dtype=kind)
        for row, square in zip(made, squares, strict=True):
            row[: len(square), : len(square)] = square
        return made

    for kind in (torch.int64, torch.float32, torch.bool, torch.bfloat16, torch.complex64):
        assert tensors.rows([padded_to(9, kind=kind)], trim=True) == tensors.rows([padded_to(6, kind=kind)], trim=True)
        assert tensors.rows([padded_to(9, kind=kind)]) != tensors.rows([padded_to(6, kind=kind)])
    assert tensors.rows([padded_to(9, fill=-100)], trim=True) == tensors.rows([padded_to(6, fill=-100)], trim=True)
    turned = [square.T.contiguous() for square in squares]
    assert tensors.rows([padded_to(9, turned)], trim=True) != tensors.rows([padded_to(6)], trim=True)
    nothing = torch.zeros(2, 5, 5)
    assert tensors.rows([nothing], trim=True) == tensors.rows([nothing[:, :2, :3]], trim=True)
    shifted = torch.zeros(1, 5, 5)
    shifted[0, 1:3, 1:3] = 1
    assert tensors.rows([shifted], trim=True) != tensors.rows([shifted[:, 1:, 1:]], trim=True), "what is in front counts"
