"""The knob files: all good ones load, bad ones are refused with file and field."""

from __future__ import annotations

import pytest
import yaml

from trainflash import knobs
from trainflash.errors import UsageError
from trainflash.knobs import kinds, knob_files
from trainflash.knobs.edits.checks import CHECKS
from trainflash.schema import KINDS
from trainflash.workflow import explaining

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
        ({"answers": ["slow"]}, r"more\.yaml: answers: 'slow' is none of input_cpu, "),
        ({"answers": "input_io"}, r"more\.yaml: Expected `array`"),
        ({"values": ["high"]}, r"values\[0\]: 'high' is no fact"),
        ({"values": ["max(1, cpu // ranks)"]}, r"values\[0\]: 'cpu' is no fact, did you mean 'cpus'"),
        ({"titel": "x"}, r"unknown field 'titel', did you mean 'title'"),
        ({"undo": None}, r"more\.yaml.*undo"),
        ({"edits": []}, r"more\.yaml: edits"),
        ({"edits": [{"kind": "magic"}]}, r"edits\[0\]\.kind"),
        ({"edits": [{"kind": "call_argument", "calls": ["a"]}]}, r"edits\[0\].*argument"),
        ({"edits": [{"kind": "call_argument", "calls": ["a"], "argument": "b", "pos": 1}]}, r"edits\[0\]: unknown field 'pos'"),
        ({"requires": [{"fact": "cpus", "otherwise": "x"}]}, r"requires\[0\]: exactly one of"),
        ({"requires": [{"fact": "memory.peak", "above": 1, "otherwise": "x"}]}, r"requires\[0\]\.fact: 'memory.peak' is no fact"),
        (
            {"requires": [{"fact": "recompute.shar", "above": 1, "otherwise": "x"}]},
            r"'recompute.shar' is no fact, did you mean 'recompute.share'",
        ),
        ({"requires": [{"fact": "cpus.free", "above": 1, "otherwise": "x"}]}, r"'cpus.free' is no fact, did you mean 'cpus'"),
        (
            {"edits": [{"kind": "call_argument", "calls": ["a"], "argument": "b", "at": "trainloader"}]},
            r"edits\[0\]\.at: 'trainloader' is no role and no fact, did you mean 'train_loader'",
        ),
        (
            {"edits": [{"kind": "call_argument", "calls": ["a"], "argument": "b", "fact": "loader.batchsize"}]},
            r"edits\[0\]\.fact: 'loader.batchsize' is no fact, did you mean 'loader.batch_size'",
        ),
        ({"requires": [{"fact": "torch", "above": 2.5, "otherwise": "x"}]}, r"torch 2\.6 is 206"),
        ({"requires": [{"fact": "moon", "above": 1, "otherwise": "x"}]}, r"'moon' is no fact"),
        (
            {"requires": [{"fact": "settings.anomaly", "exists": True, "otherwise": "x"}]},
            r"fact: 'settings.anomaly' is no fact, did you mean 'settings.anomaly_mode'",
        ),
        (
            {"edits": [{"kind": "call_argument", "calls": ["a"], "argument": "b", "at": "setting"}]},
            r"edits\[0\]\.setting: None is no setting",
        ),
        (
            {"edits": [{"kind": "call_argument", "calls": ["a"], "argument": "b", "written": "c"}], "values": [False]},
            r"edits\[0\]\.written",
        ),
        (
            {"edits": [{"kind": "call_argument", "calls": ["a"], "argument": "b", "checks": ["same_in_worker"]}]},
            r"edits\[0\]\.checks\[0\]: 'same_in_worker' is no check, did you mean 'same_in_workers'",
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


@pytest.mark.parametrize("text", ["there are one, two or no cores", "one core: too few", "{one} core"])
def test_a_text_that_lacks_its_quotes_is_told_so(tmp_path, text):
    path = write(tmp_path, requires=None)
    path.write_text(f"{path.read_text()}requires:\n  - {{fact: cpus, above: 1, otherwise: {text}}}\n")
    with pytest.raises(UsageError, match=r"more\.yaml") as caught:
        knob_files.load(path)
    assert "quotes" in caught.value.mend


def test_a_mend_of_a_bad_field_speaks_of_knob_files(tmp_path):
    for changes in ({"undo": None}, {"check": "all of it"}, {"edits": [{"kind": "call_argument", "calls": "a", "argument": "b"}]}):
        with pytest.raises(UsageError) as caught:
            knob_files.load(write(tmp_path, **changes))
        assert "CONTRIBUTING.md" in caught.value.mend


def test_near_names_are_listed():
    with pytest.raises(UsageError, match="there is no knob 'dataloader_worker'") as caught:
        knobs.get("dataloader_worker")
    assert "dataloader_workers" in caught.value.mend
    assert knobs.get("pin-memory").name == "pin_memory"


def test_every_check_is_asked_by_some_knob():
    asked = {name for knob in knobs.catalogue() for edit in knob.edits for name in getattr(edit, "checks", ())}
    assert asked == set(CHECKS)


def test_every_knob_and_pattern_that_a_diagnosis_names_exists():
    from trainflash.diagnosis import explanations

    fixes = [fix for each in explanations.EXPLANATIONS for fix in each.fixes]
    assert {fix.knob for fix in fixes if fix.knob} <= {knob.name for knob in knobs.catalogue()}
    assert {fix.pattern for fix in fixes if fix.pattern} <= {pattern.name for pattern in knobs.patterns.catalogue()}


def test_a_knob_that_is_a_pattern_now_is_answered_with_it():
    known = {knob.name for knob in knobs.catalogue()}
    assert knobs.patterns.replaced()
    for name, pattern in knobs.patterns.replaced().items():
        assert name not in known
        with pytest.raises(UsageError, match=f"{name} is a pattern now, {pattern.name}: ") as caught:
            knobs.get(name)
        assert f"trainflash explain {pattern.name}" in caught.value.mend
        assert explaining.explain(name) is pattern
