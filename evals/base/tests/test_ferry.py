"""The parts that training rests on."""

from __future__ import annotations

import random

import torch
from ferry.data.sampling import EpochSampler
from ferry.data.text import Pipeline
from ferry.data.vocabulary import BEGIN, UNKNOWN, Vocabulary
from ferry.metrics.ranking import ordered_pairs
from ferry.optim.schedules import cosine


def test_random_transforms_stay_out_of_evaluation():
    names = ("lower", "drop_words")
    text = "One two THREE four five six"
    assert Pipeline(names, 0.9, training=False)(text, random.Random(1)) == text.lower().split()
    assert len(Pipeline(names, 0.9, training=True)(text, random.Random(1))) < 6


def test_vocabulary():
    vocabulary = Vocabulary.build([["a", "a", "b"], ["a", "b", "c"]], 2, 10)
    assert vocabulary.encode(["b", "c"], 8) == [BEGIN, vocabulary.numbers["b"], UNKNOWN]


def test_ranks_share_an_epoch_without_overlap():
    parts = [list(EpochSampler(101, 3, rank, 2)) for rank in range(2)]
    assert len(parts[0]) == len(parts[1]) == 50 and not set(parts[0]) & set(parts[1])


def test_pairs_in_order():
    scores = torch.tensor([0.9, 0.1, 0.5, 0.5])
    assert ordered_pairs(scores, torch.tensor([True, False, True, False])) == (2 + 1.5) / 4


def test_the_schedule_rises_and_falls():
    factor = cosine(100, 10)
    assert factor(0) < factor(9) == 1.0 and factor(99) < 0.1
