"""The parts of the server that need no client: roots, bounded answers, schemas, and what the tools say of themselves."""

from __future__ import annotations

import inspect
import json
from dataclasses import replace
from pathlib import Path

import pytest
import report_scenarios as scenarios
import report_sites as shown
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("mcp.server.mcpserver")

import anyio
from jsonschema import Draft202012Validator

from trainflash.errors import UsageError
from trainflash.mcp_server import fitting
from trainflash.mcp_server.approval import visible
from trainflash.mcp_server.roots import Roots, chosen
from trainflash.mcp_server.schemas import output_schema
from trainflash.mcp_server.server import build
from trainflash.mcp_server.verbs import VERBS, answer
from trainflash.workflow import answers
from trainflash.workflow.shapes import SHAPES


@pytest.fixture
def root(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    place = tmp_path / "root"
    (place / "inner").mkdir(parents=True)
    (tmp_path / "outside").mkdir()
    (tmp_path / "root-beside").mkdir()
    (place / "link").symlink_to(tmp_path / "outside")
    (place / "inner" / "back").symlink_to(place)
    (place / "dangling").symlink_to(tmp_path / "outside" / "new")
    return place


@pytest.mark.parametrize("named", [".", "inner", "inner/back/inner", "new.json", "inner/../inner"])
def test_paths_inside(root, named):
    assert Roots((root,)).inside(named).is_relative_to(root)


@pytest.mark.parametrize("named", ["", "..", "link", "link/x", "dangling", "/etc", "../root-beside", "inner/../..", "a\0b", "x" * 5000])
def test_paths_outside(root, named):
    with pytest.raises(UsageError):
        Roots((root,)).inside(named)


def test_the_whole_machine_is_no_root_by_default(monkeypatch, root):
    monkeypatch.chdir("/")
    with pytest.raises(UsageError, match="no root"):
        chosen(()).inside("etc")
    assert chosen((), str(root)).places == (root,)
    assert chosen([root], "/etc").places == (root,)
    with pytest.raises(UsageError):
        chosen([root / "none"])


def test_a_sandbox_of_another_project_is_refused(root, tmp_path):
    from trainflash.workflow import session

    made = session.create(tmp_path / "outside")
    answered = answer("sandbox_status", {"sandbox": made.sandbox.directory}, Roots((root,)), lambda *_: None)
    assert "outside of the server's roots" in answered["error"]["message"]
    assert (
        answer("sandbox_status", {"sandbox": made.sandbox.directory}, Roots((root, tmp_path / "outside")), lambda *_: None)["status"]
        == "ok"
    )


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=3000),
    lambda inner: st.lists(inner, max_size=40) | st.dictionaries(st.text(max_size=10), inner, max_size=10),
    max_leaves=120,
)


@given(JSON)
@settings(deadline=None, max_examples=60)
def test_answers_are_short_and_the_whole_is_kept(tmp_path_factory, value):
    document = {"schema": "any.v1", "status": "ok", "value": value}
    sent = fitting.fit(document, tmp_path_factory.getbasetemp() / "answers")
    assert len(json.dumps(sent, ensure_ascii=False, separators=(",", ":"))) <= fitting.LIMIT
    assert (sent["schema"], sent["status"]) == ("any.v1", "ok")
    if "whole" in sent:
        assert json.loads(Path(sent["whole"]).read_text()) == json.loads(json.dumps(document))
        assert sent["cut"]
    else:
        assert json.dumps(sent).count("value") >= 1


def test_what_is_longest_is_cut_first(tmp_path):
    sent = fitting.fit({"schema": "any.v1", "status": "ok", "small": ["a", "b"], "diff": "+x\n" * 20_000}, tmp_path)
    assert sent["small"] == ["a", "b"]
    assert sent["cut"] == ["diff"]
    assert len(sent["diff"]) > 3000


def test_bytes_that_are_no_text_can_be_sent(tmp_path):
    sent = fitting.fit({"schema": "x.v1", "status": "ok", "diff": b"\xff\x00caf\xc3\xa9".decode("utf-8", "surrogateescape")}, tmp_path)
    assert sent["diff"] == "\\xff\x00café"
    json.dumps(sent, ensure_ascii=False).encode("utf-8")


def test_what_a_screen_would_hide_is_shown():
    assert visible("a\tb\n\x1b[8mhidden\u202e\u200b\r") == "a\tb\n\\x1b[8mhidden\\u202e\\u200b\\r"
    assert visible("café 漢字") == "café 漢字"


@pytest.mark.parametrize("name", sorted(SHAPES))
def test_schemas_are_valid_and_open_for_cut_answers(name):
    schema = output_schema(name)
    Draft202012Validator.check_schema(schema)
    Draft202012Validator(schema).validate({"schema": "x.v1", "status": "error", "error": {"message": "m", "mend": "m"}})
    with pytest.raises(Exception, match="status"):
        Draft202012Validator(schema).validate({"schema": "x.v1", "status": "fine"})


def test_every_tool_says_what_it_is(root):
    tools = anyio.run(build(Roots((root,))).list_tools)
    assert {each.name for each in tools} >= {verb.name for verb in VERBS} | {"writeback"}
    for each in tools:
        assert each.description and each.annotations.title
        assert each.annotations.destructive_hint is (each.name == "writeback")
        assert each.input_schema["additionalProperties"] is False


@pytest.mark.parametrize(
    ("verb", "arguments"),
    [("explain", {}), ("explain", {"name": "input_cpu"}), ("sandbox_status", {}), ("log", {}), ("profile_query", {"summary": "x.json"})],
)
def test_answers_match_their_schema(root, verb, arguments):
    shape = next(each.shape for each in VERBS if each.name == verb)
    document = json.loads(json.dumps(answer(verb, arguments, Roots((root,)), lambda *_: None)))
    Draft202012Validator(output_schema(shape)).validate(document)


def test_diagnoses_and_briefs_tell_where_the_time_goes():
    found = replace(scenarios.BEFORE, sites=shown.SITES)
    made = replace(scenarios.PLAN, briefs=(replace(scenarios.PLAN.briefs[0], sites=shown.SITES),))
    for name, document in (("diagnose", answers.diagnosis(found, "/s", "mount")), ("optimize_plan", answers.plan(made))):
        sent = json.loads(json.dumps(document))
        holder = sent if name == "diagnose" else sent["briefs"][0]
        assert [each["location"]["line"] for each in holder["sites"]] == [29, 27, 48, 212, 12]
        Draft202012Validator(output_schema(name)).validate(sent)
        holder["sites"][0]["share"] = "much"
        with pytest.raises(Exception, match="much"):
            Draft202012Validator(output_schema(name)).validate(sent)
    assert "sites" in output_schema("phase_summary")["properties"]


@pytest.mark.parametrize("verb", [each.name for each in VERBS])
def test_no_verb_fails_by_itself(root, verb):
    """On an empty project each one works or says what is missing; arguments that must be given name nothing that there is."""
    given = {
        "run": "none-001",
        "pid": 2**22 + 1,
        "summary": "none.json",
        "before": "a.json",
        "after": "b.json",
        "text": "note",
        "metric": ["x"],
    }
    if verb in ("diagnose_pid", "sandbox_create", "doctor", "gate_env", "gate_bench", "gate_eval"):
        pytest.skip("tried for real elsewhere, or needs a machine's time")
    function = next(each.function for each in VERBS if each.name == verb)
    parameters = list(inspect.signature(function).parameters.values())[1:]
    needed = {each.name: given[each.name] for each in parameters if each.default is each.empty}
    document = answer(verb, needed, Roots((root,)), lambda *_: None)
    assert "a fault of trainflash" not in json.dumps(document)
    assert document["status"] in ("ok", "error")
    assert "error" not in document or document["error"]["mend"]


def test_a_fault_of_ours_is_told_without_its_insides(root, monkeypatch, capsys):
    monkeypatch.setattr("trainflash.workflow.explaining.everything", lambda: 1 / 0)
    document = answer("explain", {}, Roots((root,)), lambda *_: None)
    assert document["status"] == "error"
    assert "ZeroDivisionError" not in json.dumps(document)
    assert "ZeroDivisionError" in capsys.readouterr().err
