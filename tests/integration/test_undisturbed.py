"""Programs that look closely at torch, or change it, do under the probe what they do alone."""

from __future__ import annotations

import functools

import pytest
from probed import plain, probed

MODES = [pytest.param(mode, marks=pytest.mark.full) for mode in ("diagnose", "timing", "fidelity")]
SCENES = (
    "meta_learning", "copy_survives", "patched_call", "patched_loss", "own_parameters", "scripted_class", "scripted", "symbolic",
    "moved_files", "built_ins", "named_callers", "looked_at",
)  # fmt: skip


def scenes(output: str) -> dict[str, str]:
    """What each scene printed, by its name."""
    parts = [part.partition("\n") for part in output.partition("===== end")[0].split("===== ")[1:]]
    return {name: printed for name, _, printed in parts}


@functools.cache
def alone() -> dict[str, str]:
    return scenes(plain("peculiar.py"))


@pytest.fixture(scope="module", params=MODES)
def watched(request, tmp_path_factory):
    run = probed(tmp_path_factory.mktemp(request.param), "peculiar.py", capture=request.param, SAMPLE_HZ="0")
    assert run.returncode == 0, run.output
    return scenes(run.output)


@pytest.mark.parametrize("scene", SCENES)
def test_a_peculiar_program_prints_what_it_prints_alone(watched, scene):
    assert watched[scene] == alone()[scene]


@pytest.mark.full
def test_every_scene_is_compared():
    assert tuple(alone()) == SCENES
