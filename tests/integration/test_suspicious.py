"""Programs that ask torch, Python or the system whether anything is as it was: under the probe they are told what they are told alone."""

from __future__ import annotations

import pytest
from probed import plain, probed

QUICK = ("by_identity", "while_debugged")
SLOW = (
    "noisy_convolution",
    "handled_by_table", "by_a_coroutine", "closure_object", "by_its_caller", "woken_by_signals", "fault_injection", "closed_at_once",
    "arguments_by_name", "intercepted_logs",
)  # fmt: skip


@pytest.mark.parametrize("scene", [*QUICK, *(pytest.param(scene, marks=pytest.mark.full) for scene in SLOW)])
def test_a_suspicious_program_is_told_what_it_is_told_alone(tmp_path, monkeypatch, scene):
    for name in ("alone", "watched"):
        (tmp_path / name).mkdir()
    monkeypatch.setenv("SCENE_FOLDER", str(tmp_path / "alone"))
    alone = plain("suspicious.py", scene)
    run = probed(tmp_path / "run", "suspicious.py", scene, capture="diagnose", SCENE_FOLDER=str(tmp_path / "watched"))
    assert run.returncode == 0 and run.output == alone
    assert run.rank.steps >= 30 and run.rank.swallowed == {}
