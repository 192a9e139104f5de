"""The record of a training reads tensors that have no values, or that tell of each call, without a trace in the program."""

from __future__ import annotations

import json

import pytest
from probed import plain, probed

UPDATES = 7


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    return probed(tmp_path_factory.mktemp("odd"), "odd_tensors.py", capture="fidelity", SAMPLE_HZ="0")


def test_the_program_prints_what_it_prints_alone(recorded):
    assert recorded.returncode == 0, recorded.output
    assert recorded.output == plain("odd_tensors.py")


def test_its_updates_and_its_last_weights_are_recorded(recorded):
    (file,) = recorded.run_dir.glob("training-*.jsonl")
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    updates = [line for line in lines if line["k"] == "update" and line["samples"]]
    weights = [line["n"] for line in lines if line["k"] == "weights" and line.get("norm")]
    assert len(updates) == UPDATES
    assert all(line["losses"] and line["targets"] and line["grad_norm"] for line in updates)
    assert weights[-1] == max(line["n"] for line in updates)
    assert not [line["swallowed"] for line in lines if line["k"] == "end" and line["swallowed"]]
