"""How much rarer an interruption is proposed: until it costs little, in round numbers, and never so rarely that the run has none left."""

from __future__ import annotations

from dataclasses import replace

import pytest
from knob_scenes import activity, added, finding, program, summary

from trainflash.knobs.cadence import LARGEST_SHARE, times_too_often

LOOP = """import torch

for step in range(1000):
    if step % 4 == 0:
        torch.save({}, "last.pt")
"""


@pytest.mark.parametrize(
    ("share", "count", "whole", "factor"),
    [
        (0.5, 1000, True, 50),
        (0.5, 30, True, 20),  # 50 times rarer there would be none
        (0.5, 30, False, 50),  # the run goes on
        (0.97, 5000, True, 1000),
        (0.04, 1000, True, 2),
        (0.03, 1000, True, None),  # it does not matter
        (0.5, 1, True, None),
    ],
)
def test_factor(share, count, whole, factor):
    assert (
        times_too_often(replace(finding("checkpoint"), share=share), activity("Ckpt", None, count=count), steps=5000, whole=whole) == factor
    )


def test_what_is_left_costs_no_more_than_it_may():
    for share in (0.05, 0.1, 0.33, 0.6, 0.9, 0.99):
        factor = times_too_often(replace(finding("logging"), share=share), activity("Log", None), steps=9, whole=False)
        rest = share / factor
        assert rest / (rest + 1 - share) <= LARGEST_SHARE


def test_without_a_finding_there_is_no_factor():
    assert times_too_often(None, activity("Log", None), steps=100, whole=True) is None


def test_where_it_was_not_counted_the_steps_bound_it():
    assert times_too_often(finding("logging"), None, steps=12, whole=True) == 10
    assert times_too_often(finding("logging"), None, steps=12, whole=False) == 50


def test_it_is_the_first_value_of_the_plan(tmp_path):
    made = program(tmp_path, train_py=LOOP)
    line = made.line("train.py", "torch.save")
    run = summary(activities=(activity("Ckpt", line, count=250),))
    candidates, _, _ = made.plan(run, finding("checkpoint", line, ["checkpoint_cadence"]))
    values = [each for each in candidates if each.knob == "checkpoint_cadence"]
    assert [each.value for each in values] == ["200", "20", "8"]
    assert added(values[0]) == ["    if step % 200 == 0:"]


@pytest.mark.parametrize(
    ("knob", "kind", "call", "after"),
    [
        ("eval_cadence", "evaluation", "TrainingArguments('out', eval_steps=0.25)", ["0.5"]),
        ("eval_cadence", "evaluation", "TrainingArguments('out', eval_steps=0.1)", ["0.5", "0.2"]),
        ("eval_cadence", "evaluation", "TrainingArguments('out', eval_steps=100)", ["500", "200"]),
        ("eval_cadence", "evaluation", "Trainer(val_check_interval=0.25)", ["0.5"]),
        ("eval_cadence", "evaluation", "Trainer(val_check_interval=0.5)", ["1.0"]),
        ("eval_cadence", "evaluation", "Trainer(val_check_interval=0.2)", ["1.0", "0.4"]),
        ("eval_cadence", "evaluation", "Trainer(val_check_interval=50)", ["250", "100"]),
        ("logging_cadence", "logging", "TrainingArguments('out', logging_steps=0.07)", ["0.7"]),
        ("checkpoint_cadence", "checkpoint", "TrainingArguments('out', save_steps=0.3)", ["0.6"]),
    ],
)
def test_a_share_of_the_whole_grows_only_while_it_is_one(tmp_path, knob, kind, call, after):
    source = f"from transformers import TrainingArguments\nfrom lightning import Trainer\nmade = {call}\n"
    made = program(tmp_path, train_py=source)
    candidates, _, _ = made.plan(summary(), replace(finding(kind, made.line("train.py", "made ="), [knob]), share=0.03))
    before = call.split("=")[-1].rstrip(")")
    assert [added(each) for each in candidates if each.knob == knob] == [[f"made = {call.replace(before, value)}"] for value in after]


def test_once_an_epoch_becomes_rarer_by_whole_epochs(tmp_path):
    made = program(tmp_path, train_py="from lightning import Trainer\nmade = Trainer(val_check_interval=1.0)\n")
    candidate = made.propose("eval_cadence", summary(), value="5", findings=(finding("evaluation"),))
    assert added(candidate) == ["made = Trainer(val_check_interval=1.0, check_val_every_n_epoch=5)"]
