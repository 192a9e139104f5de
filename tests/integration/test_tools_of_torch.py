"""Much of what torch offers, used between the steps of a training, gives under the probe what it gives without it, to the bit."""

from __future__ import annotations

import pytest
from probed import plain, probed

PROGRAM = "tools_of_torch.py"
FULL = pytest.mark.full


@pytest.fixture(scope="module")
def alone():
    return plain(PROGRAM)


@pytest.mark.parametrize(
    "capture", ["diagnose", pytest.param("timing", marks=pytest.mark.full), pytest.param("fidelity", marks=pytest.mark.full)]
)
def test_tools_of_torch_give_what_they_give_without_the_probe(tmp_path, alone, capture):
    run = probed(tmp_path, PROGRAM, capture=capture)
    said = [line for line in run.output.splitlines() if not line.startswith("USDT:")]
    assert (run.returncode, said) == (0, alone.splitlines())
    assert run.rank.swallowed == {}
    assert run.rank.steps == 120
