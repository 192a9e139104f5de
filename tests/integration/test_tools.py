"""Much of what torch and Python offer, used between the steps of a training, gives under the probe what it gives without it, to the bit."""

from __future__ import annotations

import pytest
from probed import plain, probed

PROGRAMS = ("tools_of_torch.py", "tools_of_python.py")
FULL = pytest.mark.full


@pytest.fixture(scope="module", params=[PROGRAMS[0], pytest.param(PROGRAMS[1], marks=FULL)])
def alone(request):
    return request.param, plain(request.param).splitlines()


@pytest.mark.parametrize("capture", ["diagnose", pytest.param("timing", marks=FULL), pytest.param("fidelity", marks=FULL)])
def test_tools_give_what_they_give_without_the_probe(tmp_path, alone, capture):
    program, expected = alone
    run = probed(tmp_path, program, "3", capture=capture)
    if capture == "fidelity":  # the last optimizer is kept until the end, for the last weights
        expected = [line.replace("released: [True, True, True, True]", "released: [True, True, False, True]") for line in expected]
    assert run.output.splitlines()[: len(expected)] == expected, run.output[-2000:]
    assert run.returncode == (3 if "python" in program else 0)
    assert run.rank.swallowed == {}
    assert run.rank.steps == 120
