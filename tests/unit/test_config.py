"""Settings: where they come from, which one wins, and what a wrong one is told."""

from __future__ import annotations

import pytest

from trainflash import config
from trainflash.errors import UsageError


def test_defaults_without_any_file(tmp_path):
    assert config.load(tmp_path, {}) == config.Settings()


def test_trainflash_toml_wins_over_pyproject(tmp_path):
    (tmp_path / "pyproject.toml").write_text('[tool.trainflash]\nbudget = "5m"\n')
    assert config.load(tmp_path, {}).budget_s == 300
    (tmp_path / "trainflash.toml").write_text('command = "python train.py --epochs 2"\nallow = ["numerics"]\n')
    settings = config.load(tmp_path, {})
    assert settings.command == ("python", "train.py", "--epochs", "2")
    assert settings.allow == ("numerics",)
    assert settings.budget_s == config.Settings().budget_s


def test_environment_wins_over_files(tmp_path):
    (tmp_path / "trainflash.toml").write_text("tolerance = 1e-4\nonline = true\n")
    settings = config.load(tmp_path, {"TRAINFLASH_TOLERANCE": "1e-5", "TRAINFLASH_ALLOW": "order, cadence"})
    assert (settings.tolerance, settings.online, settings.allow) == (1e-5, True, ("order", "cadence"))


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("bugdet = 3\n", "bugdet"),
        ("min_gain = 1.0\n", "min_gain"),
        ("tolerance = -1\n", "tolerance"),
        ('budget = "soon"\n', "budget"),
        ("online = 3\n", "online"),
        ("command = \n", "trainflash.toml"),
    ],
)
def test_a_wrong_setting_is_named_with_its_file(tmp_path, text, named):
    (tmp_path / "trainflash.toml").write_text(text)
    with pytest.raises(UsageError) as caught:
        config.load(tmp_path, {})
    assert named in caught.value.message
    assert "trainflash.toml" in caught.value.message
    assert caught.value.mend


def test_a_broken_pyproject_is_not_our_business(tmp_path):
    (tmp_path / "pyproject.toml").write_text("[tool.\n")
    assert config.load(tmp_path, {}) == config.Settings()


@pytest.mark.parametrize(("text", "seconds"), [("90", 90), ("90s", 90), ("20m", 1200), ("1.5h", 5400), (30, 30)])
def test_durations(text, seconds):
    assert config.parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "0", "-3s", "m", "inf", "nan", "3d"])
def test_bad_durations(text):
    with pytest.raises(ValueError, match=r".+"):
        config.parse_duration(text)
