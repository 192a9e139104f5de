"""Documents: round trips, versions, named errors, and files that a kill cannot tear."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from trainflash import schema
from trainflash.errors import UsageError
from trainflash.schema import Command, Experiment, Fidelity, Location, Plan, Speedup, Verdict

VERDICT = Verdict(
    verdict="accept",
    speedup=Speedup(mean=1.4, ci_low=1.3, ci_high=1.5, starts=4),
    fidelity=Fidelity("same", (), 0.0, 0.0, 1e-3, 40, ("evaluation",), ("schedule",), ()),
    starts=4,
    reasons=(),
)
EXPERIMENT = Experiment(
    n=1, parent=None, knob="memoize_function", value="", finding="input_cpu", location=Location("train.py", 3, "load"), risk="same",
    why="seen", commit="c" * 40, parent_commit="p" * 40, diff_digest="d" * 64, files=("train.py",), command=Command(("python", "train.py")),
    created_utc="2026-01-01T00:00:00Z", verdict=VERDICT, decision="accepted",
)  # fmt: skip


@pytest.mark.parametrize("name", ["experiment.json", "experiment.yaml"])
def test_round_trip(tmp_path, name):
    schema.write_document(tmp_path / name, EXPERIMENT)
    assert schema.read_document(Experiment, tmp_path / name) == EXPERIMENT


def test_the_schema_name_is_the_first_key(tmp_path):
    schema.write_document(tmp_path / "e.json", EXPERIMENT)
    assert next(iter(json.loads((tmp_path / "e.json").read_text()).items())) == ("schema", "experiment.v1")


def test_unknown_keys_are_ignored():
    plain = schema.to_plain(Plan("r", "t", ())) | {"from_the_future": 1}
    assert schema.from_plain(Plan, plain) == Plan("r", "t", ())


@pytest.mark.parametrize(
    ("change", "named"),
    [({"schema": "experiment.v9"}, "experiment.v9"), ({"n": "one"}, "$.n"), ({"decision": "maybe"}, "$.decision")],
)
def test_a_wrong_document_is_named(change, named):
    with pytest.raises(UsageError) as caught:
        schema.from_plain(Experiment, schema.to_plain(EXPERIMENT) | change, "experiment.json")
    assert named in caught.value.message
    assert "experiment.json" in caught.value.message


@pytest.mark.parametrize("text", ["", "{", "[]", "null"])
def test_a_torn_file_is_an_error_with_a_mend(tmp_path, text):
    (tmp_path / "plan.yaml").write_text(text)
    with pytest.raises(UsageError) as caught:
        schema.read_document(Plan, tmp_path / "plan.yaml")
    assert "plan.yaml" in caught.value.message
    assert caught.value.mend


def test_a_missing_file_says_what_makes_it(tmp_path):
    with pytest.raises(UsageError, match="No such file"):
        schema.read_document(Plan, tmp_path / "plan.yaml")


def test_not_a_number_is_refused():
    with pytest.raises(ValueError, match="JSON"):
        schema.dump_json(Speedup(mean=float("nan"), ci_low=1, ci_high=1, starts=4))


def test_a_failed_write_leaves_the_old_file(tmp_path):
    path = tmp_path / "plan.json"
    schema.write_document(path, Plan("old", "t", ()))
    with pytest.raises(ValueError, match="JSON"):
        schema.write_document(path, Speedup(mean=float("inf"), ci_low=1, ci_high=1, starts=4))
    assert schema.read_document(Plan, path).run == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["plan.json"]


@pytest.mark.parametrize("name", ["e.json", "e.yaml"])
def test_names_that_are_no_text_survive_their_document(tmp_path, name):
    made = replace(EXPERIMENT, files=("caf\udce9.py", "é.py"))
    schema.write_document(tmp_path / name, made)
    assert "é.py" in (tmp_path / name).read_text(encoding="utf-8")
    assert schema.read_document(Experiment, tmp_path / name) == made
