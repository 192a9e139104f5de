"""Equal values have equal digests, unequal ones do not, and what cannot be compared has none."""

from __future__ import annotations

import functools
import io
import weakref
from pathlib import PurePath
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from probe_events import part


def arguments(*values):
    return part("facts.digests").of_arguments(list(values))


def result(value):
    return part("facts.digests").of_result(value)


@pytest.mark.parametrize("value", [1, 2.5, "text", b"bytes", (1, ("a", None)), PurePath("/a/b")])
def test_values_that_can_be_keys_are_hashable(value):
    digest, hashable, *_ = arguments(value)
    assert digest and hashable


@pytest.mark.parametrize("value", [[1], {"a": 1}, np.zeros(3), (1, [2])])
def test_values_that_cannot_are_compared_all_the_same(value):
    digest, hashable, *_ = arguments(value)
    assert digest and not hashable


@pytest.mark.parametrize("value", [torch.zeros(3), torch.eye(3).to_sparse(), (1, torch.zeros(2))], ids=["dense", "sparse", "in a tuple"])
def test_tensors_are_keys_by_identity_and_compared_by_content(value):
    digest, hashable, tensors, _ = arguments(value)
    assert digest and hashable and len(tensors) == 1
    assert tensors[0] is (value[1] if isinstance(value, tuple) else value)


class Equal:
    def __eq__(self, other):
        return True


@pytest.mark.parametrize(
    ("values", "containers"),
    [
        (({"a": 1, "b": [2.5, "text"]},), True),
        (([1, 2], "text", object()), True),
        ((1, "text"), False),  # keys as they are
        (([np.zeros(3)], np.arange(4.0)), True),
        ((np.ma.masked_array([1.0, 2.0], [True, False]),), False),
        ((np.float32(2.0), [np.zeros(2).view(np.recarray)]), False),
        (([torch.zeros(3)],), False),
        (([object()],), False),
        (([1], Equal()), False),
        (([[number] for number in range(40)],), False),
        ((list(range(100)),), False),
    ],
    ids=[
        "dict",
        "list",
        "keys",
        "array",
        "masked",
        "kind of array",
        "tensor",
        "object inside",
        "object without a hash",
        "many lists",
        "long list",
    ],
)
def test_few_keys_in_dictionaries_and_lists_can_be_told_apart(values, containers):
    assert arguments(*values)[3] is containers


def test_an_object_without_a_hash_is_no_key():
    assert arguments(Equal())[1] is False


def test_what_learns_is_no_key():
    assert arguments(torch.nn.Parameter(torch.zeros(3)))[1] is False
    assert arguments([torch.zeros(3)])[1] is False


def test_equal_tensors_are_one_key_only_where_they_are_the_same():
    same = part("facts.calls")._same_tensors
    kept, other = torch.zeros(3), torch.zeros(3)
    assert same((1, "a"), [weakref.ref(kept)]) and same((1, "a"), [weakref.ref(kept)])
    assert not same((1, "a"), [weakref.ref(other)]), "another object with equal content"
    gone = weakref.ref(torch.ones(2))
    assert same((2, "b"), [gone]) and not same((2, "b"), [gone]), "one that lived for a call only"
    assert same((3, "c"), []) and same((3, "c"), [])


def test_type_order_and_content_count():
    digests = [arguments(*values)[0] for values in ((1, 2), (2, 1), (1, "2"), ("1", "2"), ("12",), (1.0, 2), (True, 2), ((1, 2),))]
    assert len(set(digests)) == len(digests)
    assert arguments("a", (1, 2)) == arguments("a", (1, 2))


def test_arrays_by_content_shape_and_type():
    rows = np.arange(6)
    different = [rows, rows.reshape(2, 3), rows.astype("int32"), rows + 1]
    assert len({result(array)[0] for array in different}) == 4
    assert result(rows) == result(rows.copy()) and result(rows)[1] == rows.nbytes


def test_objects_are_themselves_as_arguments_and_incomparable_as_results():
    one, other = object(), object()
    assert arguments(one) == arguments(one) != arguments(other)
    assert result(one) == (None, 0) and result(None) == (None, 0)
    assert result([object()]) == (None, 0)


def test_what_is_too_large_is_incomparable():
    assert arguments(np.zeros(1 << 20))[0] is None
    assert result(np.zeros((64 << 17) + 1))[0] is None
    assert result([0] * 200_001)[0] is None


def test_a_matrix_that_is_made_anew_is_compared_though_it_is_large():
    made = np.arange(3_000_000, dtype=np.float64)
    assert result(made)[0] == result(made.copy())[0] is not None
    assert result(made)[1] == made.nbytes
    assert result(made)[0] != result(made + 1)[0]


def test_long_lists_of_plain_values_are_compared_by_content():
    pairs = [(number, float(number)) for number in range(20_000)]
    assert arguments(pairs)[0] == arguments(list(pairs))[0] != arguments([*pairs[:-1], (0, 0.5)])[0]
    assert arguments(pairs)[1] is False and arguments(tuple(pairs))[1] is True


@pytest.mark.parametrize("layout", ["to_sparse", "to_sparse_csr", "to_sparse_csc"])
def test_sparse_tensors_are_compared_by_content(layout):
    torch = pytest.importorskip("torch")

    def made(factor):
        return getattr(factor * torch.eye(5), layout)()

    assert result(made(1))[0] == result(made(1))[0] is not None
    assert result(made(1))[0] != result(made(2))[0]


def test_a_tensor_in_another_memory_format_has_the_same_digest():
    torch = pytest.importorskip("torch")
    from trainflash_probe.record import tensors

    plain = torch.randn(64, 32, 3, 3)
    other = plain.to(memory_format=torch.channels_last)
    assert {tensors.digest([each]) for each in (plain, other, other.clone(), plain.clone())} == {tensors.digest([plain])}


def test_tensors_of_torch_func_are_compared_by_content():
    seen = []

    def loss(weights):
        made = torch.exp(torch.arange(3.0))
        seen.append((result(made), result(torch.exp(torch.arange(3.0))), result(made + 1)))
        return (weights * made).sum()

    torch.func.grad_and_value(loss)(torch.ones(3))
    ((first, same, other),) = seen
    assert first == same == result(torch.exp(torch.arange(3.0))) and first[0] is not None and other != first


def large_digest(array):
    digest = part("facts.digests").Digest(most=64 << 20)
    digest.add(array, by_identity=False)
    return digest.hex()


@pytest.mark.parametrize("kind", [np.float32, np.float64, np.uint8, bool])
def test_large_arrays_are_compared_by_all_of_their_content(kind):
    rows = np.random.default_rng(0).integers(0, 2 if kind is bool else 200, (1201, 1203)).astype(kind)
    rows = np.concatenate([rows] * 4) if rows.nbytes < 2 << 20 else rows
    known = large_digest(rows)
    assert large_digest(rows.copy()) == known
    for at in ((0, 0), (-1, -1), (700, 333)):
        other = rows.copy()
        other[at] = not other[at] if kind is bool else other[at] + 1
        assert large_digest(other) != known
    assert large_digest(rows[::-1].copy()) != known and large_digest(rows.reshape(-1)) != known
    swapped = rows.copy()
    swapped[[0, 1]] = swapped[[1, 0]]
    assert large_digest(swapped) != known


TENSORS = {
    "plain": lambda: torch.randn(3, 4),
    "sliced": lambda: torch.randn(6, 8)[1:5, ::2],
    "turned": lambda: torch.randn(3, 4).t(),
    "expanded": lambda: torch.randn(3, 1).expand(3, 5),
    "empty": lambda: torch.zeros(0, 4),
    "number": lambda: torch.tensor(3),
    "flags": lambda: torch.tensor([True, False]),
    "half": lambda: torch.randn(5).half(),
    "complex": lambda: torch.randn(5, dtype=torch.complex64),
}


@pytest.mark.parametrize("kind", TENSORS)
def test_the_memory_of_a_tensor_is_what_numpy_would_show(kind):
    tensor = TENSORS[kind]()
    seen, truth = part("nested").memory_of(tensor), tensor.clone().numpy()
    assert seen.dtype == truth.dtype and seen.shape == truth.shape and np.array_equal(seen, truth)


@pytest.mark.parametrize("made", [lambda: torch.randn(4).bfloat16(), lambda: torch.randn(4, dtype=torch.complex64).conj()])
def test_a_tensor_that_numpy_cannot_show_has_no_memory(made):
    with pytest.raises((TypeError, ValueError)):
        part("nested").memory_of(made())
    assert result(made()) == (None, 0)


def test_a_tensor_whose_memory_was_freed_is_not_read():
    tensor = torch.randn(64)
    tensor.untyped_storage().resize_(0)
    assert result(tensor) == (None, 0)


def test_what_was_looked_at_can_still_be_resized():
    """FSDP frees and fills the storages of its parameters; `Tensor.numpy()` would forbid that for good."""
    batch = torch.arange(12).reshape(3, 4)
    weight = torch.nn.Parameter(torch.randn(4, 4))
    assert None not in (result(batch)[0], result(weight)[0])
    assert part("facts.padding").rows_of(batch).shape == (3, 4)
    batch.resize_(100)
    weight.untyped_storage().resize_(0)
    assert batch.shape == (100,)


def test_tables_that_the_code_makes_are_no_state():
    module = torch.nn.Sequential(torch.nn.BatchNorm1d(2), torch.nn.Linear(2, 2))
    module[1].register_buffer("mask", torch.ones(2), persistent=False)
    module[1].register_buffer("scale", torch.ones(2))
    module.add_module("again", module[0])
    names = {name for name, value in module.named_buffers() if any(value is each for each in part("record.state").buffers(module))}
    assert names == {"0.running_mean", "0.running_var", "0.num_batches_tracked", "1.scale"}


def test_a_window_over_the_calls_of_modules_is_seen_by_the_next_one():
    class Module:
        def __call__(self):
            return 1

    watched, torch = part("facts.watched"), SimpleNamespace(nn=SimpleNamespace(Module=Module))
    own = Module.__call__
    assert not watched.is_watched(torch)
    Module.__call__ = watched.watching(functools.wraps(own)(lambda self: own(self)))
    assert watched.is_watched(torch) and Module()() == 1
    Module.__call__ = own
    assert not watched.is_watched(torch)


def test_images_in_memory_are_told_apart_by_their_pixels():
    image = pytest.importorskip("PIL.Image")
    one, same, other = (image.new("RGB", (4, 3), color) for color in ("red", "red", "blue"))
    assert result(one) == result(same) != result(other)
    assert result(one)[1] == 36 and result(one) != result(one.convert("L"))
    file = io.BytesIO()
    one.save(file, "PNG")
    assert result(image.open(file)) == (None, 0), "nothing of a file is read for us"
