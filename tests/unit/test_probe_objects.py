"""What objects hold, how long they are, and our own files: read and kept without a word from the program's code."""

from __future__ import annotations

import os
from collections import OrderedDict, UserDict, namedtuple
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from probe_events import part
from torch.utils.data import ConcatDataset, Subset, TensorDataset

TOKENS = torch.ones(4, 6, dtype=torch.long)
MASK = torch.ones(4, 6)
Pair = namedtuple("Pair", ("input_ids", "mask"))


@dataclass
class Batch:
    input_ids: torch.Tensor
    mask: torch.Tensor


@dataclass(slots=True)
class Slotted:
    input_ids: torch.Tensor
    mask: torch.Tensor


class Encoding(UserDict):
    """As tokenizers of libraries give."""

    def __getitem__(self, key):
        raise AssertionError("asked")


class Shouting(dict):
    """A dict that does not want to be asked."""

    def _asked(self, *_):
        raise AssertionError("asked")

    __getitem__ = __iter__ = __len__ = keys = values = items = __eq__ = __getattribute__ = _asked


class Own(Mapping):
    def _asked(self, *_):
        raise AssertionError("asked")

    __getitem__ = __iter__ = __len__ = __getattr__ = __repr__ = _asked
    __class__ = property(_asked)


HOLDERS = {
    "dict": lambda: {"input_ids": TOKENS, "mask": MASK},
    "ordered": lambda: OrderedDict(input_ids=TOKENS, mask=MASK),
    "named tuple": lambda: Pair(TOKENS, MASK),
    "dataclass": lambda: Batch(TOKENS, MASK),
    "dataclass with slots": lambda: Slotted(TOKENS, MASK),
    "encoding": lambda: Encoding({"input_ids": TOKENS, "mask": MASK}),
    "dict of its own kind": lambda: Shouting(input_ids=TOKENS, mask=MASK),
    "deep": lambda: [Own(), {"Mask": MASK, "deep": ({"input_ids": TOKENS},)}],
}


@pytest.mark.parametrize("kind", HOLDERS)
def test_tensors_are_found_in_what_holds_them(kind):
    batch = HOLDERS[kind]()
    found = {name: id(tensor) for name, tensor in part("nested").named_tensors(batch)}
    assert found == {"input_ids": id(TOKENS), "mask": id(MASK)}
    assert {id(tensor) for _, tensor in part("record.tensors").leaves(batch)} == {id(TOKENS), id(MASK)}


def test_a_mapping_of_the_program_s_is_not_asked():
    assert part("nested").named_tensors(Own()) == [] and list(part("record.tensors").leaves(Own())) == []


def test_a_tokenizer_s_batch_of_a_library():
    transformers = pytest.importorskip("transformers")
    batch = transformers.BatchEncoding({"input_ids": TOKENS, "attention_mask": MASK})
    assert [name for name, _ in part("nested").named_tensors(batch)] == ["input_ids", "attention_mask"]


class Held:
    CLASS = 11

    def __init__(self):
        self.items, self.tensor, self.array, self.size, self.table = [1] * 5, torch.zeros(9, 2), np.zeros((6, 2)), 4, {"k": (1, 2)}
        self.inner = TensorDataset(torch.zeros(3))

    def __getattr__(self, name):
        raise AssertionError(f"asked for {name}")


SEVEN = 7


@pytest.mark.parametrize(
    ("method", "length"),
    [
        (lambda self: len(self.items), 5),
        (lambda self: 64, 64),
        (lambda self: self.size, 4),
        (lambda self: self.CLASS, 11),
        (lambda self: len(self.items) // 2, 2),
        (lambda self: (len(self.tensor) - 1) // self.size, 2),
        (lambda self: self.tensor.shape[0], 9),
        (lambda self: self.tensor.size(0), 9),
        (lambda self: len(self.table["k"]), 2),
        (lambda self: SEVEN, 7),
        (lambda self: max(1, len(self.items) - 2), 3),
        (lambda self: len(self.array), 6),
        (lambda self: len(self.inner) + 1, 4),
        (lambda self: print("asked") or 3, None),
        (lambda self: len(self.items) if self.size else 2, None),
        (lambda self: len(self.missing), None),
    ],
)
def test_a_length_is_read_from_what_the_method_says(method, length, capsys):
    made = type("Rows", (Held,), {"__len__": method})()
    assert part("lengths").length_of(made) == length
    assert capsys.readouterr().out == ""


def test_the_length_of_what_stands_around_a_data_set():
    length_of = part("lengths").length_of
    rows = type("Rows", (Held,), {"__len__": lambda self: len(self.items)})()
    assert length_of(Subset(rows, [1, 2])) == 2 and length_of(ConcatDataset([rows, rows])) == 10
    assert length_of(iter([])) is None and length_of(object()) is None and length_of([1, 2]) == 2


def test_a_slow_sample_s_file_is_known_without_keeping_the_data_set(tmp_path):
    file_of = part("facts.named_files").file_of
    rows = type("Rows", (Held,), {"__len__": lambda self: len(self.items)})()
    rows.items = [(f"/data/{index}.png", 1) for index in range(5)]
    assert file_of(rows, 3) == "/data/3.png" and file_of(Subset(rows, [4, 2]), 1) == "/data/2.png"
    assert file_of(ConcatDataset([rows, rows]), 6) == "/data/1.png" and file_of(Own(), 1) is None


def test_a_file_of_ours_that_somebody_closed_is_opened_again_and_his_is_left_alone(tmp_path):
    kept = part("files").Kept(str(tmp_path / "ours"), os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND)
    kept.write(b"one ")
    number = kept.fileno()
    assert number >= 100
    os.close(number)
    theirs = os.open(tmp_path / "theirs", os.O_RDWR | os.O_CREAT)
    os.dup2(theirs, number)
    kept.write(b"two")
    kept.close()
    assert (tmp_path / "ours").read_text() == "one two" and (tmp_path / "theirs").read_text() == ""
    os.close(number)  # still theirs
    os.close(theirs)


def test_a_mapped_file_keeps_no_descriptor(tmp_path):
    before = sorted(os.listdir("/proc/self/fd"))
    fd = os.open(tmp_path / "words", os.O_RDWR | os.O_CREAT)
    os.posix_fallocate(fd, 0, 8192)
    words = part("files").shared_words(fd, 4096, 4096)
    os.close(fd)
    words[0] = 7
    assert sorted(os.listdir("/proc/self/fd")) == before
    del words
    assert (tmp_path / "words").read_bytes()[4096] == 7


class Unspeakable:
    def _asked(self, *_):
        raise AssertionError("asked")

    __repr__ = __hash__ = __eq__ = __str__ = __int__ = __index__ = _asked


@pytest.mark.parametrize(
    ("index", "same"),
    [([1, 2], [np.int64(1), np.int64(2)]), ([1, 2], (1, torch.tensor(2))), ([("a", 1)], [("a", 1)]), (5, [5])],
)
def test_keys_of_samples_are_told_by_plain_values_alone(index, same):
    keys = part("record.drawn")._keys
    assert keys(index) == keys(same) and all(len(key) == 16 for key in keys(index))
    assert keys([Unspeakable()]) is None and keys([1, (2, Unspeakable())]) is None


def test_tensors_without_values_are_left_out_of_a_record():
    fake = pytest.importorskip("torch._subclasses.fake_tensor")
    with fake.FakeTensorMode():
        made = torch.ones(3)
    freed = torch.ones(4)
    freed.untyped_storage().resize_(0)
    leaves = part("record.tensors").leaves
    assert [name for name, _ in leaves({"fake": made, "freed": freed, "empty": torch.ones(0), "there": TOKENS})] == ["empty", "there"]
