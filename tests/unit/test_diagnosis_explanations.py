from __future__ import annotations

import pytest

from trainflash.diagnosis import explain
from trainflash.diagnosis.explanations import EXPLANATIONS
from trainflash.diagnosis.rules import REPORTED
from trainflash.errors import UsageError


@pytest.mark.parametrize("kind", REPORTED)
def test_every_finding_is_explained(kind):
    found = explain(kind)
    assert found.kind == kind
    assert found.symptom and found.cause and found.evidence and found.fixes
    assert all(fix.what and fix.changes for fix in found.fixes)
    assert found.source.startswith("https://")


def test_nothing_is_explained_twice():
    assert sorted(explanation.kind for explanation in EXPLANATIONS) == sorted(REPORTED)


@pytest.mark.parametrize(
    ("name", "mend"),
    [("inputcpu", "did you mean input_cpu"), ("xyzzy", "findings: "), ("hung", "findings that are reported: ")],
)
def test_an_unknown_finding_is_a_usage_error_that_helps(name, mend):
    with pytest.raises(UsageError) as caught:
        explain(name)
    assert name in caught.value.message
    assert caught.value.mend.startswith(mend)
