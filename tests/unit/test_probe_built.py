"""Which of the owner's classes a loader is made of."""

from __future__ import annotations

import pytest
from probe_events import part
from torch.utils.data import Dataset, Subset

built = part("built")


class Base(Dataset):
    pass


class Inner(Base):
    def __getitem__(self, index):
        return index


class Outer(Dataset):
    def __init__(self, inner, extra=None):
        self.parts, self.table, self.extra = {"first": inner}, list(range(1000)), extra

    def __getitem__(self, index):
        return self.parts["first"][index]


class Transform:
    def __call__(self, value):
        return value


@pytest.fixture(autouse=True)
def ours(monkeypatch):
    monkeypatch.setattr(built.own, "inside", lambda name: name if name == __file__ else None)
    monkeypatch.setattr(built.own, "absolute", lambda name: name)


def names(*roots):
    found = built.classes_of(*roots)
    return None if found is None else {name for file, line, name in found if (file, line) == (__file__, 0)}


def test_what_a_data_set_holds_and_is_derived_from():
    assert names(Outer(Inner()), None) == {"Outer", "Inner", "Base"}
    assert names(Subset(Outer(Inner(), extra=[Transform()]), [0, 1])) == {"Outer", "Inner", "Base", "Transform"}


def test_what_holds_more_than_is_looked_at_is_not_known():
    assert names(Outer(Inner(), extra=[Inner() for _ in range(40)])) is None
    assert names(Outer(Inner(), extra=list(range(40)))) == {"Outer", "Inner", "Base"}
    deep = Inner()
    for _ in range(8):
        deep = Outer(deep)
    assert names(deep) is None
