"""Settings of the owner: extended without another byte changed, left alone where that cannot be, and given back to the byte."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_install import ALL, kept, snapshot

from trainflash import install as installer
from trainflash.errors import UsageError
from trainflash.install import agents, json_edits, record
from trainflash.install.agents import Addition
from trainflash.install.tables import tomllib

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4) | st.sampled_from(["a", "b"]), inner, max_size=3),
    max_leaves=12,
)
STYLES = st.sampled_from([{"indent": 2}, {"indent": "\t"}, {"indent": 4, "separators": (" ,", " :  ")}, {}, {"separators": (",", ":")}])
ADDITIONS = st.lists(
    st.builds(
        Addition,
        st.sampled_from([("a", "b"), ("a", "b[]"), ("mcpServers", "trainflash"), ("a", "list[]"), ("top",), ("top[]",)]),
        st.sampled_from(["x", {"command": "trainflash", "args": ["mcp"]}, {"approve": False}]),
    ),
    min_size=1,
    max_size=4,
)
ADDITION = Addition(("permissions", "ask[]"), "ours")


@given(st.dictionaries(st.text(max_size=4) | st.sampled_from(["a", "top"]), JSON, max_size=4), STYLES, ADDITIONS, st.booleans())
def test_insertions_add_what_they_should_and_come_out_to_the_byte(document, style, additions, crlf):
    text = json.dumps(document, **style) + "\n"
    start = text = text.replace("\n", "\r\n") if crlf else text
    spans = []
    for addition in additions:
        try:
            span = json_edits.insert(text, addition)
        except json_edits.Unfit:
            continue
        if span is not None:
            text = text[: span.at] + span.text + text[span.at :]
            spans.append(span)
        holder = json.loads(text)
        for key in addition.path:
            holder = holder[key]
        assert addition.value in holder if addition.is_item else holder == addition.value
        assert json_edits.insert(text, addition) is None
    rest = json.loads(json_edits.without(text, [])) if spans else document
    assert set(document) <= set(rest)
    assert json_edits.take(text, spans) == start


def test_an_insertion_has_the_form_of_what_is_around_it():
    text = '{\n\t"permissions": {\n\t\t"ask": [\n\t\t\t"a"\n\t\t]\n\t}\n}\n'
    span = json_edits.insert(text, ADDITION)
    assert span.text == ',\n\t\t\t"ours"'
    assert json_edits.insert('{"permissions": {"ask": []}}', ADDITION).text == '"ours"'
    assert json_edits.insert("{}", ADDITION).text.splitlines()[1].startswith('  "permissions": {')


@pytest.fixture
def project(tmp_path):
    root = tmp_path / "project"
    root.mkdir()
    (root / "train.py").write_text("print('training')\n")
    return root


def put(root: Path, relative: str, text: str) -> Path:
    path = root / relative
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode())
    return path


def test_every_host_gets_the_server_and_asks_the_person_first(project):
    installer.install(project, ALL)
    for name in (".mcp.json", ".cursor/mcp.json", ".gemini/settings.json"):
        assert json.loads((project / name).read_text())["mcpServers"]["trainflash"] == agents.SERVER
    assert json.loads((project / ".vscode/mcp.json").read_text())["servers"]["trainflash"]["type"] == "stdio"
    assert tomllib.loads((project / ".codex/config.toml").read_text())["mcp_servers"]["trainflash"] == agents.SERVER
    asks = json.loads((project / ".claude/settings.json").read_text())["permissions"]["ask"]
    assert any("writeback" in rule for rule in asks) and any("--approve" in rule for rule in asks)
    approvals = json.loads((project / ".vscode/settings.json").read_text())["chat.tools.terminal.autoApprove"]
    assert list(approvals.values()) == [{"approve": False, "matchCommandLine": True}]
    assert "writeback" in json.loads((project / ".cursor/permissions.json").read_text())["autoRun"]["block_instructions"][0]
    assert 'decision = "prompt"' in (project / ".codex/rules/trainflash.rules").read_text()
    [rule] = tomllib.loads((project / ".gemini/policies/trainflash.toml").read_text())["rule"]
    assert rule["decision"] == "ask_user" and "writeback" in rule["commandRegex"]


OWN = {
    "empty": {},
    "own CLAUDE.md": {"CLAUDE.md": "# Mine\n\nTabs.", ".cursorrules": "be kind"},
    "own AGENTS.md": {"AGENTS.md": "# Agents\r\n", "GEMINI.md": "", ".github/copilot-instructions.md": "hello\n"},
    "own settings": {
        ".claude/settings.json": '{"permissions":{"allow":["Bash(ls)"],"ask":["WebFetch"]},\n "model":"x"}',
        ".mcp.json": '{\n    "mcpServers": {\n        "db": {"command": "db"}\n    }\n}',
        ".vscode/settings.json": '{"chat.tools.terminal.autoApprove": {"ls": true}}',
        ".codex/config.toml": 'model = "m"  # mine\n[mcp_servers.db]\ncommand = "db"',
        ".gemini/settings.json": "{}",
    },
    "monorepo": {"packages/b/CLAUDE.md": "b\n", "packages/b/.mcp.json": "{}\n", "CLAUDE.md": "root\n"},
}


@pytest.mark.parametrize("files", OWN.values(), ids=OWN)
def test_installs_beside_what_is_there_and_comes_out_to_the_byte(project, files):
    for relative, text in files.items():
        put(project, relative, text)
    target = project / "packages/b" if "packages/b/CLAUDE.md" in files else project
    before = snapshot(project)
    assert kept(installer.install(target, ALL)) == set()
    during = snapshot(project)
    assert all(name in during for name in before)
    outside = {name: content for name, content in during.items() if not (project / name).is_relative_to(target)}
    assert {name: before[name] for name in outside} == outside, "nothing is written around the target"
    for relative, text in files.items():
        if not relative.endswith((".json", ".toml")):
            assert (project / relative).read_bytes().startswith(text.encode())
    assert installer.install(target, ALL).changes == ()
    installer.uninstall(target)
    assert snapshot(project) == before


def test_a_read_only_project_is_refused_before_anything_is_written(project):
    put(project, ".github/copilot-instructions.md", "mine\n")
    (project / ".github").chmod(0o555)
    before = snapshot(project)
    try:
        with pytest.raises(UsageError, match=r"\.github is read-only, so nothing was written"):
            installer.install(project, ALL)
        with pytest.raises(UsageError, match="read-only"):
            installer.install(project, ("copilot",), dry_run=True)
    finally:
        (project / ".github").chmod(0o755)
    assert snapshot(project) == before


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('{\n  // mine\n  "permissions": {}\n}', "comments"),
        ('{"permissions": {}', "no valid JSON"),
        ("[]", "no JSON object"),
        ('{"permissions": []}', "no object"),
        ('{"permissions": {"ask": "all"}}', "no list"),
        ("[" * 100_000, "nested too deeply"),
    ],
    ids=["comments", "broken", "list", "no-object", "no-list", "deep"],
)
def test_settings_that_cannot_be_extended_are_left_alone_and_it_is_said(project, text, why):
    path = put(project, ".claude/settings.json", text)
    report = installer.install(project, ("claude",))
    [said] = [change for change in report.changes if change.path == ".claude/settings.json"]
    assert said.action == "keep" and why in said.reason
    assert path.read_text() == text
    installer.uninstall(project)
    assert path.read_text() == text


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("model = ", "no valid TOML"),
        ('[mcp_servers.trainflash]\ncommand = "mine"\n', "a table of that name"),
        ('mcp_servers = {db = {command = "x"}}\n', "a table of that name"),
        ("\udcff".encode("utf-8", "surrogateescape").decode("latin-1"), "no valid TOML"),
    ],
)
def test_toml_that_cannot_be_extended_is_left_alone(project, text, why):
    path = put(project, ".codex/config.toml", text)
    [said] = [change for change in installer.install(project, ("codex",)).changes if change.path == ".codex/config.toml"]
    assert said.action == "keep" and why in said.reason
    assert path.read_bytes() == text.encode()


def test_a_server_of_that_name_by_the_owner_stays(project):
    path = put(project, ".mcp.json", '{"mcpServers": {"trainflash": {"command": "my-own"}}}')
    before = path.read_bytes()
    assert ".mcp.json" in kept(installer.install(project, ("claude",)))
    installer.uninstall(project)
    assert path.read_bytes() == before


def test_what_the_owner_had_himself_stays_when_ours_goes(project):
    path = put(project, ".claude/settings.json", json.dumps({"permissions": {"ask": [agents.ASK_FIRST[0]]}}))
    before = path.read_bytes()
    installer.install(project, ("claude",))
    installer.uninstall(project)
    assert path.read_bytes() == before


def test_edits_between_two_installs_survive_the_removal(project):
    path = put(project, ".claude/settings.json", '{"model": "a"}\n')
    installer.install(project, ("claude",))
    settings = json.loads(path.read_text())
    settings["model"] = "b"
    settings["permissions"]["ask"].remove(agents.ASK_FIRST[1])
    path.write_text(json.dumps(settings))
    installer.install(project, ("claude",))
    assert set(json.loads(path.read_text())["permissions"]["ask"]) == set(agents.ASK_FIRST)
    installer.uninstall(project)
    assert json.loads(path.read_text()) == {"model": "b"}


@pytest.mark.parametrize("edited", [False, True], ids=["untouched", "edited since"])
def test_a_later_version_replaces_its_own_entries_and_files(project, monkeypatch, edited):
    path = put(project, ".mcp.json", '{"mcpServers": {"db": {"command": "db"}}}')
    start = path.read_bytes()
    old = {"command": "trainflash", "args": ["serve"]}
    older = agents.Agent("CLAUDE.md", ".claude/skills", settings=((".mcp.json", (Addition(("mcpServers", "trainflash"), old),)),))
    monkeypatch.setitem(agents.AGENTS, "claude", older)
    monkeypatch.setattr(agents, "skill_files", lambda: [("trainflash/SKILL.md", b"old\n"), ("trainflash/references/gone.md", b"old\n")])
    installer.install(project, ("claude",))
    monkeypatch.undo()
    if edited:
        path.write_text(json.dumps(json.loads(path.read_text())))
    report = installer.install(project, ("claude",))
    assert json.loads(path.read_text())["mcpServers"] == {"db": {"command": "db"}, "trainflash": agents.SERVER}
    assert installer.Change("remove", ".claude/skills/trainflash/references/gone.md") in report.changes
    assert not (project / ".claude/skills/trainflash/references/gone.md").exists()
    assert b"old" not in (project / ".claude/skills/trainflash/SKILL.md").read_bytes()[:10]
    installer.uninstall(project)
    assert json.loads(path.read_text()) == json.loads(start)
    assert edited or path.read_bytes() == start


def test_nothing_of_the_owners_settings_is_copied_into_the_record(project):
    put(project, ".claude/settings.json", '{"env": {"API_TOKEN": "hunter2"}}')
    installer.install(project, ALL)
    assert "hunter2" not in (project / record.FILE).read_text()


def test_a_broken_off_installation_can_be_taken_out(project, monkeypatch):
    before = snapshot(project)
    writes = []
    real = installer.installing.places.write

    def failing(path, content):
        writes.append(path)
        if len(writes) == 9:
            raise UsageError("no space left", "make room")
        real(path, content)

    monkeypatch.setattr(installer.installing.places, "write", failing)
    with pytest.raises(UsageError, match="no space"):
        installer.install(project, ALL)
    monkeypatch.undo()
    installer.uninstall(project)
    assert snapshot(project) == before
