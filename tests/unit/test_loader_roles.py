"""Which DataLoaders feed training, by when they are fetched."""

from __future__ import annotations

import pytest
from probe_events import part

FIRST, SECOND, VALIDATION = 0, 1, 2


@pytest.fixture
def roles(monkeypatch):
    module = part("phases.loader_roles")
    monkeypatch.setattr(module, "fact", lambda *_, **__: None)
    return module.LoaderRoles()


def step(roles, number: int, *loaders: int) -> None:
    """All loaders are fetched, then comes a backward, which names the last of them, and the update of that number."""
    for loader in loaders:
        roles.fetched(loader, False)
    roles.trains(loaders[-1])
    if roles.asked:
        roles.updated(number + 1)


def test_all_loaders_that_each_step_fetches_feed_training(roles):
    for number in range(3):
        step(roles, number, FIRST, SECOND)
    assert roles.train == {FIRST, SECOND}
    assert roles.fetched(FIRST, False) == "train"


def test_what_is_fetched_in_evaluations_does_not(roles):
    for number in range(20):
        step(roles, number, FIRST)
        assert roles.fetched(VALIDATION, True) == "eval"
    assert roles.train == {FIRST}


def test_the_batch_that_an_evaluation_begins_with_does_not_count(roles):
    for number in range(20):
        step(roles, number, FIRST)
        assert roles.fetched(VALIDATION, False) == "unknown"
        roles.evaluates(VALIDATION)
    assert roles.train == {FIRST}


def test_nor_do_passes_over_validation_data_now_and_then(roles):
    for number in range(40):
        if number % 4 == 0:  # an evaluation that nothing announces
            for _ in range(8):
                roles.fetched(VALIDATION, False)
        step(roles, number, FIRST)
    assert roles.train == {FIRST}
