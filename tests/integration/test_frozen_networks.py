"""A network that nobody trains and that answers the same rows in every epoch is found, and no other."""

from __future__ import annotations

import pytest
from probed import line_of, plain, seen

PROGRAM = "frozen_networks.py"


@pytest.mark.parametrize(("kind", "mark"), [("teacher", "# the teacher"), pytest.param("backbone", "# the part", marks=pytest.mark.full)])
def test_rows_that_a_frozen_network_answers_again(tmp_path, kind, mark):
    summary, run = seen(tmp_path, PROGRAM, kind)
    (found,) = summary.frozen_repeats
    assert (found.location.line, found.phase, found.again) == (line_of(PROGRAM, mark), "Fwd", 1.0)
    assert 0.05 < found.share < 0.7
    assert run.output == plain(PROGRAM, kind)


@pytest.mark.full
@pytest.mark.parametrize("kind", ["augmented", "average", "dropout", "unfrozen"])
def test_other_rows_other_weights_or_other_answers_are_no_repetition(tmp_path, kind):
    summary, run = seen(tmp_path, PROGRAM, kind)
    assert all(found.share < 0.01 for found in summary.frozen_repeats)
    assert run.output == plain(PROGRAM, kind)
