from __future__ import annotations

import pytest

from trainflash import knobs
from trainflash.diagnosis import EXPLANATIONS, explain
from trainflash.diagnosis.rules import LIVE, REPORTED, TRACED
from trainflash.errors import UsageError
from trainflash.report import explanation
from trainflash.schema import KINDS
from trainflash.workflow import explaining

GUIDE = {f"T{number}" for number in range(1, 24)}


@pytest.mark.parametrize("kind", KINDS)
def test_every_finding_is_explained(kind):
    found = explain(kind)
    assert found.kind == kind
    assert found.symptom and found.cause and found.evidence and found.fixes
    assert all(fix.what and fix.changes for fix in found.fixes)
    assert found.source.startswith("https://")


def test_nothing_is_explained_twice():
    assert sorted(explanation.kind for explanation in EXPLANATIONS) == sorted(KINDS)
    assert {*REPORTED, *LIVE, *TRACED} == set(KINDS)


def test_every_section_of_the_guide_leads_to_a_finding():
    assert {section for found in EXPLANATIONS for section in found.guide.split(", ") if section} == GUIDE


def test_questions_of_memory_point_to_torchs_snapshot():
    fixes = " ".join(fix.what for fix in explain("memory_pressure").fixes)
    assert "torch.cuda.memory._record_memory_history" in fixes and "https://docs.pytorch.org/memory_viz" in fixes
    assert "T22" in explain("memory_pressure").guide


@pytest.mark.parametrize(("name", "mend"), [("inputcpu", "did you mean input_cpu"), ("xyzzy", "findings: ")])
def test_an_unknown_finding_is_a_usage_error_that_helps(name, mend):
    with pytest.raises(UsageError) as caught:
        explain(name)
    assert name in caught.value.message
    assert caught.value.mend.startswith(mend)


def test_all_names_can_be_listed():
    listed = explaining.everything()
    assert [row["name"] for row in listed["findings"]] == list(KINDS)
    assert [row["name"] for row in listed["knobs"]] == [knob.name for knob in knobs.catalogue()]
    assert all(row["what"] for row in [*listed["findings"], *listed["knobs"]])
    assert explanation(listed) is not None
