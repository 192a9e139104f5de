"""Rules and skills go into a project beside what is there, and come out again without a trace."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from trainflash import install as installer
from trainflash.errors import UsageError
from trainflash.install import agents, blocks, record

ALL = tuple(installer.AGENTS)


def snapshot(root: Path) -> dict[str, bytes | str | None]:
    """Every path below `root`: bytes of a file, target of a link, None for a folder."""
    found: dict[str, bytes | str | None] = {}
    for path in sorted(root.rglob("*")):
        name = path.relative_to(root).as_posix()
        found[name] = os.readlink(path) if path.is_symlink() else path.read_bytes() if path.is_file() else None
    return found


def kept(report: installer.Report) -> set[str]:
    """Files that were left alone, each with a reason."""
    found = [change for change in report.changes if change.action == "keep"]
    assert all(change.reason for change in found)
    return {change.path for change in found}


@pytest.fixture
def project(tmp_path):
    root = tmp_path / "project"
    root.mkdir()
    (root / "train.py").write_text("print('training')\n")
    return root


def test_empty_project_gets_rules_skills_and_the_permission(project):
    report = installer.install(project, ALL)
    for agent in installer.AGENTS.values():
        assert (project / agent.rules).is_file()
        if agent.skills:
            assert (project / agent.skills / "trainflash-verify" / "SKILL.md").is_file()
    assert json.loads((project / ".claude/settings.json").read_text())["permissions"]["ask"] == list(agents.ASK_FIRST)
    assert {change.action for change in report.changes} == {"create"}
    assert (project / "CLAUDE.md").read_text() == installer.render("claude")


@pytest.mark.parametrize(
    "text",
    [b"# Mine\n\nUse tabs.\n", b"no line end", b"# Windows\r\n\r\nText\r\n", b"", "# 规则\n".encode(), b"\xff\xfe not utf-8\n"],
    ids=["plain", "no-newline", "crlf", "empty", "chinese", "bytes"],
)
def test_uninstall_restores_every_byte(project, text):
    (project / "CLAUDE.md").write_bytes(text)
    (project / "AGENTS.md").write_bytes(text)
    (project / ".claude").mkdir()
    (project / ".claude/settings.json").write_bytes(b'{\r\n\t"permissions": {"allow": ["Bash(ls:*)"]}, "x": 1.50}')
    before = snapshot(project)
    installer.install(project, ALL)
    during = (project / "CLAUDE.md").read_bytes()
    assert during.startswith(text) and blocks.BEGIN in during
    assert json.loads((project / ".claude/settings.json").read_bytes())["permissions"]["allow"] == ["Bash(ls:*)"]
    installer.uninstall(project)
    assert snapshot(project) == before


def test_crlf_files_get_a_crlf_block(project):
    (project / "CLAUDE.md").write_bytes(b"mine\r\n")
    installer.install(project, ("claude",))
    content = (project / "CLAUDE.md").read_bytes()
    assert content.count(b"\n") == content.count(b"\r\n")


def test_installing_again_changes_nothing(project):
    (project / "AGENTS.md").write_text("mine\n")
    installer.install(project, ALL)
    before = snapshot(project)
    assert installer.install(project, ALL).changes == ()
    assert snapshot(project) == before


def test_one_agent_after_the_other_and_all_out(project):
    before = snapshot(project)
    for name in ALL:
        installer.install(project, (name,))
    installer.uninstall(project)
    assert snapshot(project) == before


def test_dry_run_says_all_and_writes_nothing(project):
    before = snapshot(project)
    said = installer.install(project, ALL, dry_run=True)
    assert snapshot(project) == before
    assert installer.install(project, ALL) == said
    during = snapshot(project)
    assert installer.uninstall(project, dry_run=True).changes
    assert snapshot(project) == during


def test_text_around_the_block_survives_an_upgrade_and_the_removal(project, monkeypatch):
    (project / "CLAUDE.md").write_text("before\n")
    installer.install(project, ("claude",))
    with (project / "CLAUDE.md").open("a") as file:
        file.write("after\n")
    monkeypatch.setattr(agents, "rules", lambda: "newer rules\n")
    installer.install(project, ("claude",))
    text = (project / "CLAUDE.md").read_text()
    assert text.startswith("before\n") and "newer rules" in text and text.endswith("after\n") and "The loop" not in text
    installer.uninstall(project)
    assert (project / "CLAUDE.md").read_text() == "before\nafter\n"


def test_what_the_owner_edited_is_kept(project):
    installer.install(project, ("claude",))
    skill = project / ".claude/skills/trainflash/SKILL.md"
    skill.write_text("my own version\n")
    assert kept(installer.install(project, ("claude",))) == {".claude/skills/trainflash/SKILL.md"}
    assert kept(installer.uninstall(project)) == {".claude/skills/trainflash/SKILL.md"}
    assert skill.read_text() == "my own version\n"
    assert not (project / ".claude/skills/trainflash-verify").exists()


def test_settings_edited_since_lose_only_our_rules(project):
    installer.install(project, ("claude",))
    path = project / ".claude/settings.json"
    settings = json.loads(path.read_text())
    settings["permissions"]["ask"].append("Bash(git push:*)")
    path.write_text(json.dumps(settings))
    installer.uninstall(project)
    assert json.loads(path.read_text())["permissions"]["ask"] == ["Bash(git push:*)"]


@pytest.mark.parametrize("text", ["{ // comment\n}", "[]", '{"permissions": []}', '{"permissions": {"ask": "all"}}', ""])
def test_settings_that_we_cannot_extend_are_kept(project, text):
    (project / ".claude").mkdir()
    (project / ".claude/settings.json").write_text(text)
    installer.install(project, ("claude",))
    if text:
        assert (project / ".claude/settings.json").read_text() == text
    installer.uninstall(project)
    assert (project / ".claude/settings.json").read_text() == text


def test_a_copied_rule_file_is_recognised(project):
    (project / "AGENTS.md").write_text(installer.render("codex"))
    report = installer.install(project, ("codex",))
    assert "AGENTS.md" not in {change.path for change in report.changes}
    installer.uninstall(project)
    assert not (project / "AGENTS.md").exists()


def test_linked_rule_files_get_one_block(project):
    (project / "AGENTS.md").write_text("mine\n")
    (project / "CLAUDE.md").symlink_to("AGENTS.md")
    before = snapshot(project)
    installer.install(project, ("claude", "codex"))
    assert (project / "CLAUDE.md").is_symlink()
    assert (project / "AGENTS.md").read_bytes().count(blocks.BEGIN) == 1
    installer.uninstall(project)
    assert snapshot(project) == before


def test_permissions_of_the_file_stay(project):
    (project / "AGENTS.md").write_text("mine\n")
    (project / "AGENTS.md").chmod(0o640)
    installer.install(project, ("codex",))
    assert (project / "AGENTS.md").stat().st_mode & 0o777 == 0o640


def test_a_link_out_of_the_project_is_refused_before_anything_is_written(project, tmp_path):
    outside = tmp_path / "dotfiles.md"
    outside.write_text("shared by all my projects\n")
    (project / "GEMINI.md").symlink_to(outside)
    before = snapshot(project)
    with pytest.raises(UsageError, match="leads out of the project"):
        installer.install(project, ALL)
    assert snapshot(project) == before and outside.read_text() == "shared by all my projects\n"


def test_a_record_cannot_lead_out_of_the_project(project, tmp_path):
    victim = tmp_path / "victim.txt"
    victim.write_text("precious")
    written = {"schema": record.SCHEMA, "files": {"../victim.txt": record.digest(b"precious")}}
    (project / record.FILE).write_text(json.dumps(written))
    with pytest.raises(UsageError, match="leads out of the project"):
        installer.uninstall(project)
    assert victim.read_text() == "precious"


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"schema": "trainflash-install.v2", "files": []}', '{"schema": "other"}'])
def test_a_damaged_record_is_said(project, text):
    (project / record.FILE).write_text(text)
    with pytest.raises(UsageError, match="cannot be read"):
        installer.uninstall(project)


@pytest.mark.parametrize("marks", [blocks.BEGIN, blocks.END, blocks.END + blocks.BEGIN, blocks.BEGIN * 2 + blocks.END])
def test_damaged_marks_are_said(project, marks):
    (project / "CLAUDE.md").write_bytes(b"mine\n" + marks)
    for action in (lambda: installer.install(project, ("claude",)), lambda: installer.uninstall(project)):
        with pytest.raises(UsageError, match="marks"):
            action()
    assert (project / "CLAUDE.md").read_bytes() == b"mine\n" + marks


@pytest.mark.parametrize("name", ["CLAUDE.md", ".github"])
def test_something_else_in_the_way_is_said(project, name):
    path = project / name
    path.mkdir() if name.endswith(".md") else path.write_text("a file")
    with pytest.raises(UsageError):
        installer.install(project, ("claude", "copilot"))


def test_unknown_agent_and_missing_project(project):
    with pytest.raises(UsageError, match="emacs"):
        installer.install(project, ("emacs",))
    with pytest.raises(UsageError, match="not a folder"):
        installer.install(project / "nowhere", ALL)
