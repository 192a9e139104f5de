"""Skills follow the agentskills convention, stay short, and name only knobs, findings and references that exist."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from typing import get_args, get_type_hints

import pytest
from skills_ref import validate

from trainflash import knobs
from trainflash.diagnosis.rules import REPORTED
from trainflash.schema import KINDS, WholeRun, profile_ops, profile_times, profiles

ROOT = Path(__file__).resolve().parents[2]
SKILLS = sorted(path for path in (ROOT / "skills").iterdir() if path.is_dir())
MOST_LINES = 150
LINK = re.compile(r"\]\((?!https?:)([^)#]+)\)")


def problems(skill: Path) -> list[str]:
    """What is wrong with one skill folder, one line each."""
    found = [str(each) for each in validate(skill)]
    if (skill / "SKILL.md").is_file():
        text = (skill / "SKILL.md").read_text(encoding="utf-8")
        header = text.split("---\n")[1] if text.startswith("---\n") else ""
        found += ["angle bracket in the header"] * ("<" in header or ">" in header)
        found += ["too long"] * (len(text.splitlines()) >= MOST_LINES)
        found += ["compatibility does not name the command"] * ("trainflash command" not in header)
        found += [f"no {word}" for word in ("**Iron law", "## Excuses and answers") if word not in text]
        linked = set(LINK.findall(text))
        found += [f"missing {name}" for name in linked if not (skill / name).is_file()]
        found += [f"{name} leads out of the skill" for name in linked if not name.startswith("references/") or name.count("/") != 1]
        there = {path.relative_to(skill).as_posix() for path in skill.rglob("*") if path.is_file()} - {"SKILL.md"}
        found += [f"{name} is linked from nowhere" for name in there - linked]
    return found


@pytest.mark.parametrize("skill", SKILLS, ids=lambda path: path.name)
def test_every_skill_is_sound(skill):
    assert problems(skill) == []


PHRASES = {  # words with which users of the documents that TrainFlash came from ask for each
    "trainflash": ("speed up training in this repo", "training is slow", "throughput", "GPU utilisation"),
    "trainflash-diagnose": ("bottleneck", "GPU-bound", "data-bound", "comms-bound", "long-tail batches", "sync points", "hung"),
    "trainflash-optimize": (
        "num_workers",
        "persistent_workers",
        "pin_memory",
        "prefetch_factor",
        "torch.compile",
        "bf16",
        "channels_last",
        "SDPA",
    ),
    "trainflash-profile": ("profile training", "hotspots", "XPlane", "TensorBoard", "Perfetto", "W&B", "JAX"),
    "trainflash-sandbox": ("experiments", "uncommitted"),
    "trainflash-verify": ("faster", "trains the same", "writes it back", "claiming any speed-up"),
    "trainflash-gate": (
        "performance benchmarks",
        "regression gate",
        "MFU",
        "step time",
        "CI",
        "baseline",
        "tokens per second",
        "scaling efficiency",
    ),
}


@pytest.mark.parametrize("skill", SKILLS, ids=lambda path: path.name)
def test_descriptions_carry_the_words_that_users_say(skill):
    description = (skill / "SKILL.md").read_text(encoding="utf-8").split("---\n")[1]
    assert [phrase for phrase in PHRASES[skill.name] if phrase not in description] == []


def test_half_of_the_skills_are_short():
    lengths = sorted(len((skill / "SKILL.md").read_text(encoding="utf-8").splitlines()) for skill in SKILLS)
    assert lengths[len(lengths) // 2] < 200


def test_the_expected_skills_exist():
    expected = ("", "-diagnose", "-optimize", "-profile", "-sandbox", "-verify")
    assert {path.name for path in SKILLS} - {"trainflash-gate"} == {f"trainflash{name}" for name in expected}


def test_the_check_can_fail(tmp_path):
    skill = tmp_path / "bad-skill"
    (skill / "references").mkdir(parents=True)
    (skill / "references" / "forgotten.md").write_text("text")
    (skill / "SKILL.md").write_text(
        "---\nname: Other_Name\ndescription: does <things>\nowner: me\n---\n[x](references/gone.md)\n" + "line\n" * 200
    )
    text = "\n".join(problems(skill))
    for expected in (
        "name",
        "owner",
        "angle bracket",
        "too long",
        "missing references/gone.md",
        "forgotten.md is linked from nowhere",
        "Iron law",
    ):
        assert expected in text


def unknown_names(text: str) -> list[str]:
    """Names in code style that look like a knob or a finding and are neither."""
    fields = {
        "bound_by",
        "base_ref",
        "mean_ms",
        "p95_ms",
        "p99_ms",
        "per_occurrence",
        "diff_digest",
        "not_seen",
        "ci_low",
        "ci_high",
        "loss_delta",
    }
    fields |= {"mean_abs_loss_delta", "stopped_because", "spent_s", "wall_s", "zero_grad", "run_as", "whole_run"}
    fields |= set(get_args(get_type_hints(WholeRun)["basis"])) | {each.name for each in dataclasses.fields(WholeRun)}
    fields |= set(get_args(profile_times.IdleCauseName)) | set(get_args(profile_times.BreakdownMode))
    classes = (made for part in (profiles, profile_times, profile_ops) for made in vars(part).values() if dataclasses.is_dataclass(made))
    fields |= {each.name for made in classes for each in dataclasses.fields(made)}
    known = set(REPORTED) | {knob.name for knob in knobs.catalogue()} | fields
    named = set(re.findall(r"`([a-z]+(?:_[a-z0-9]+)+)`", text)) | set(re.findall(r"trainflash (?:explain|optimize try) ([a-z_]+)", text))
    return sorted((named - known) | (named & (set(KINDS) - set(REPORTED))))


@pytest.mark.parametrize("path", sorted((ROOT / "skills").rglob("*.md")), ids=lambda path: path.relative_to(ROOT / "skills").as_posix())
def test_named_knobs_and_findings_exist(path):
    assert unknown_names(path.read_text(encoding="utf-8")) == []


def test_the_check_of_names_can_fail():
    assert unknown_names("`input_gpu` and trainflash explain wrong_knob") == ["input_gpu", "wrong_knob"]
