"""The knob files: all good ones load, bad ones are refused with file and field."""

from __future__ import annotations

import pytest
import yaml

from trainflash import knobs
from trainflash.errors import UsageError
from trainflash.knobs import kinds, knob_files
from trainflash.schema import KINDS

GOOD = {
    "schema": "knob.v1",
    "name": "more",
    "title": "more of it",
    "answers": ["input_io"],
    "what": "Sets more.",
    "values": [True],
    "effect": {"expected": "much", "source": ["https://docs.pytorch.org/docs/stable/data.html"]},
    "risk": "same",
    "check": ["all of it"],
    "undo": "remove it",
    "requires": [{"fact": "cpus", "above": 1, "otherwise": "there is one core"}],
    "edits": [{"kind": "call_argument", "calls": ["torch.utils.data.DataLoader"], "argument": "in_order"}],
}


def test_every_knob_is_complete():
    found = knobs.catalogue()
    assert len(found) >= 16
    for knob in found:
        assert set(knob.answers) <= set(KINDS) and knob.undo and knob.check and knob.edits
        assert all(source.startswith("https://") for source in knob.effect.source)


def write(tmp_path, **changes):
    path = tmp_path / "more.yaml"
    path.write_text(yaml.safe_dump({key: value for key, value in {**GOOD, **changes}.items() if value is not None}))
    return path


def test_a_knob_needs_only_a_file(tmp_path):
    knob = knob_files.load(write(tmp_path))
    assert knob.edits == (kinds.CallArgument(calls=("torch.utils.data.DataLoader",), argument="in_order"),)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"risk": "none"}, r"more\.yaml.*risk"),
        ({"answers": ["slow"]}, r"more\.yaml.*answers"),
        ({"titel": "x"}, r"unknown field 'titel', did you mean 'title'"),
        ({"undo": None}, r"more\.yaml.*undo"),
        ({"edits": []}, r"more\.yaml: edits"),
        ({"edits": [{"kind": "magic"}]}, r"edits\[0\]\.kind"),
        ({"edits": [{"kind": "call_argument", "calls": ["a"]}]}, r"edits\[0\].*argument"),
        ({"edits": [{"kind": "call_argument", "calls": ["a"], "argument": "b", "pos": 1}]}, r"edits\[0\]: unknown field 'pos'"),
        ({"requires": [{"fact": "cpus", "otherwise": "x"}]}, r"requires\[0\]: exactly one of"),
        ({"requires": [{"fact": "moon", "above": 1, "otherwise": "x"}]}, r"'moon' is no fact"),
        (
            {"requires": [{"fact": "settings.anomaly", "exists": True, "otherwise": "x"}]},
            r"fact: 'anomaly' is no setting, did you mean 'anomaly_mode'",
        ),
        (
            {"edits": [{"kind": "call_argument", "calls": ["a"], "argument": "b", "at": "setting"}]},
            r"edits\[0\]\.setting: None is no setting",
        ),
        (
            {"edits": [{"kind": "call_argument", "calls": ["a"], "argument": "b", "written": "c"}], "values": [False]},
            r"edits\[0\]\.written",
        ),
        ({"answers": ["compute"]}, r"answers: compute is"),
        ({"name": "other"}, r"name: is 'other'"),
        ({"schema": "knob.v2"}, r"knob\.v2"),
        ({"values": []}, r"values"),
    ],
)
def test_bad_files_are_refused_by_file_and_field(tmp_path, changes, message):
    with pytest.raises(UsageError, match=message):
        knob_files.load(write(tmp_path, **changes))


def test_near_names_are_listed():
    with pytest.raises(UsageError, match="there is no knob 'dataloader_worker'") as caught:
        knobs.get("dataloader_worker")
    assert "dataloader_workers" in caught.value.mend
    assert knobs.get("pin-memory").name == "pin_memory"


def test_every_knob_that_a_diagnosis_names_exists():
    from trainflash.diagnosis import explanations

    named = {fix.knob for each in explanations.EXPLANATIONS for fix in each.fixes if fix.knob}
    assert named <= {knob.name for knob in knobs.catalogue()}
