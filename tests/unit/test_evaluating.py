"""What evaluations spend on batches that come about as training's do."""

from __future__ import annotations

import numpy as np
import pytest
import stack_scenarios as stacks

from trainflash.summary.evaluating import evaluation_input

LOADER = "torch:torch/utils/data/dataloader.py"
NEXT = f"{LOADER}:1:_BaseDataLoaderIter.__next__"
WAITS = f"{NEXT} {LOADER}:2:_MultiProcessingDataLoaderIter._get_data py:selectors.py:4:select"
MAKES = f"{NEXT} own:data.py:9:Rows.__getitem__"
TRAIN, SCORE = "own:train.py:10:main", "own:train.py:30:validate"


@pytest.mark.parametrize(
    ("training", "evaluating", "making"),
    [
        (WAITS, WAITS, 0.25),
        (MAKES, MAKES, 0.25),
        (MAKES, WAITS, 0.0),
        (WAITS, f"{NEXT} own:data.py:40:Pairs.__getitem__", 0.0),
        (MAKES, "own:data.py:9:Rows.__getitem__", 0.0),
    ],
    ids=["both wait for workers", "the same function", "only one waits", "other rows", "no loader"],
)
def test_batches_of_evaluations_that_are_made_as_training_s_are_input(training, evaluating, making):
    rows = [(f"{TRAIN} {training}", "Data", 2), (f"{SCORE} {evaluating}", "Eval", 1), (SCORE, "Eval", 1)]
    found = evaluation_input(stacks.samples(rows, 4), np.full(16, True))
    assert found is not None and found.making == pytest.approx(making)
