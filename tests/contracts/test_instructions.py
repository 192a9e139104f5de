"""The agents' rule files come from one source, stand in step with it, and work when one of them is copied alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from trainflash import install as installer

ROOT = Path(__file__).resolve().parents[2]
CARRIED = sorted(installer.rendered())


def differing(root: Path) -> list[str]:
    """Carried files below `root` that are not what their source renders to."""
    wanted = installer.rendered()
    return [name for name, text in wanted.items() if not (root / name).is_file() or (root / name).read_bytes() != text.encode()]


def test_the_carried_files_are_in_step_with_their_source():
    assert differing(ROOT) == [], "run `make instructions`"


def test_the_check_can_fail(tmp_path):
    assert installer.main(["--render", str(tmp_path)]) == 0
    assert differing(tmp_path) == []
    (tmp_path / "CLAUDE.md").write_text((tmp_path / "CLAUDE.md").read_text().replace("never", "sometimes", 1))
    (tmp_path / ".cursorrules").unlink()
    assert differing(tmp_path) == ["CLAUDE.md", ".cursorrules"]


def test_all_expected_files_are_carried():
    assert CARRIED == [".cursor/rules/trainflash.mdc", ".cursorrules", ".github/copilot-instructions.md", "AGENTS.md", "CLAUDE.md"]


@pytest.mark.parametrize("name", CARRIED)
def test_one_file_alone_says_what_to_install_what_to_run_and_where_to_stop(name):
    text = (ROOT / name).read_text(encoding="utf-8")
    steps = ["pip install", "sandbox create", "diagnose", "optimize plan", "optimize try", "verify", "writeback --accepted --dry-run"]
    places = [text.index(step, text.index("## Get the tool")) for step in steps]
    assert places == sorted(places)
    assert "## Gates" in text and "--approve" in text and "inconclusive" in text


def test_cursor_reads_its_header_first():
    lines = (ROOT / ".cursor/rules/trainflash.mdc").read_text(encoding="utf-8").splitlines()
    assert lines[0] == "---" and lines.index("---", 1) == 3
    assert [line.split(":")[0] for line in lines[1:3]] == ["description", "alwaysApply"]
