"""The manifests with which plugin hosts find the skills: valid, of this version, and installable with `npx skills`."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

import trainflash

ROOT = Path(__file__).resolve().parents[2]
PLUGIN = json.loads((ROOT / ".claude-plugin/plugin.json").read_text(encoding="utf-8"))
MARKETPLACE = json.loads((ROOT / ".claude-plugin/marketplace.json").read_text(encoding="utf-8"))
SKILLS = {path.parent.name for path in (ROOT / "skills").glob("*/SKILL.md")}


def test_the_manifests_name_this_version_and_folders_that_exist():
    [listed] = MARKETPLACE["plugins"]
    assert PLUGIN["name"] == listed["name"] == "trainflash"
    assert PLUGIN["version"] == listed["version"] == MARKETPLACE["metadata"]["version"] == trainflash.__version__
    assert all(re.fullmatch(r"[a-z0-9-]+", name) for name in (PLUGIN["name"], MARKETPLACE["name"]))
    assert MARKETPLACE["owner"]["name"]
    assert (ROOT / listed["source"] / ".claude-plugin/plugin.json").is_file()
    assert {path.parent.name for path in (ROOT / PLUGIN["skills"]).glob("*/SKILL.md")} == SKILLS
    assert not {"commands", "agents", "hooks"} & set(PLUGIN), "the skills are all that there is"


@pytest.mark.full
def test_npx_skills_installs_every_skill_for_five_hosts(tmp_path):
    npx = shutil.which("npx")
    if npx is None:
        pytest.skip("npx is not installed")
    hosts = ["claude-code", "codex", "cursor", "github-copilot", "gemini-cli"]
    command = [npx, "-y", "skills@1.5.18", "add", str(ROOT), "--skill", "*", "-a", *hosts, "-y"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=240, check=False)
    if done.returncode and "ENOTFOUND" in done.stderr:
        pytest.skip("no network")
    assert done.returncode == 0, done.stdout[-500:] + done.stderr[-500:]
    assert {path.parent.name for path in tmp_path.glob(".agents/skills/*/SKILL.md")} == SKILLS
    assert {path.name for path in tmp_path.glob(".claude/skills/*") if (path / "SKILL.md").is_file()} == SKILLS
