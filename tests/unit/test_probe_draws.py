"""Does making a batch draw random numbers? Global streams, generators of the data set's own, and nothing drawn by looking."""

from __future__ import annotations

import random

import numpy as np
import pytest
import torch
from probe_events import part
from torch.utils.data import BatchSampler, DataLoader, DistributedSampler, RandomSampler, TensorDataset

draws = part("facts.draws")
data = part("phases.data")


class Holder:
    def __init__(self, **values):
        self.__dict__.update(values)


@pytest.fixture
def told(monkeypatch):
    found: list = []
    monkeypatch.setattr(draws, "fact", lambda kind, **values: found.append(values))
    return found


def look(known, dataset, fetch) -> None:
    states = known.before(dataset)
    fetch()
    known.after(states)


@pytest.mark.parametrize(
    "draw",
    [random.random, lambda: np.random.rand(), lambda: torch.rand(1)],
    ids=["python", "numpy", "torch"],
)
def test_a_global_stream(told, draw):
    look(draws.Draws(3), object(), draw)
    assert told == [{"loader": 3, "draws": True}]


@pytest.mark.parametrize(
    ("generator", "draw"),
    [
        (random.Random(1), lambda own: own.random()),
        (np.random.default_rng(1), lambda own: own.integers(9)),
        (np.random.RandomState(1), lambda own: own.rand()),
        (torch.Generator(), lambda own: torch.rand(1, generator=own)),
    ],
    ids=["Random", "Generator", "RandomState", "torch"],
)
def test_a_generator_inside_the_dataset(told, generator, draw):
    dataset = Holder(inner=Holder(transforms=[Holder(rng=generator)]))
    look(draws.Draws(0), dataset, lambda: draw(generator))
    assert told == [{"loader": 0, "draws": True}]


def test_a_generator_made_for_each_sample_is_no_stream(told):
    look(draws.Draws(0), Holder(), lambda: np.random.default_rng(7).random())
    assert told == [{"loader": 0, "draws": False}]


def test_it_is_told_once_and_again_when_it_turns_true(told):
    known = draws.Draws(0)
    look(known, Holder(), lambda: None)
    look(known, Holder(), lambda: None)
    look(known, Holder(), random.random)
    assert [each["draws"] for each in told] == [False, True]
    assert known.before(Holder()) is None  # known: no more looks


def test_looks_are_few(told):
    known = draws.Draws(0)
    for _ in range(draws.LOOKS):
        look(known, Holder(), lambda: None)
    look(known, Holder(), random.random)
    assert [each["draws"] for each in told] == [False]


def test_objects_that_hold_each_other_end(told):
    first, second = Holder(), Holder()
    first.other, second.other, first.many = second, first, list(range(100_000))
    look(draws.Draws(0), first, lambda: None)
    assert [each["draws"] for each in told] == [False]


def loaders():
    own = torch.Generator().manual_seed(0)
    plain = TensorDataset(torch.zeros(8))
    yield "global", DataLoader(plain, shuffle=True), False
    yield "the loader's, which seeds workers too", DataLoader(plain, shuffle=True, generator=own), False
    yield "given to both", DataLoader(plain, sampler=RandomSampler(plain, generator=own), generator=own), False
    yield "the sampler's", DataLoader(plain, sampler=RandomSampler(plain, generator=own)), True
    batches = BatchSampler(RandomSampler(plain, generator=own), 2, drop_last=False)
    yield "the batch sampler's", DataLoader(plain, batch_sampler=batches), True
    yield "made anew each epoch", DataLoader(plain, sampler=DistributedSampler(plain, num_replicas=2, rank=0)), True


@pytest.mark.parametrize(("loader", "own"), [pytest.param(loader, own, id=name) for name, loader, own in loaders()])
def test_a_generator_is_the_order_s_own_where_nothing_else_draws_from_it(loader, own):
    assert data._arguments(loader)["own_generator"] is own
