"""The bundled examples train as they say: offline, reproducibly, with losses, evaluation and a checkpoint; none names its cost."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from trainflash import resources

EXAMPLES = resources.folder("examples")
TIMES = re.compile(r"\(\s*\d+ s\)|'\w+_(?:runtime|per_second)': '?[\d.e+]+'?")  # printed times differ from run to run


@dataclass(frozen=True)
class Example:
    """One folder: a short run of it, the checkpoint it leaves, and the owner's mend of what makes it slow."""

    name: str
    short: tuple[str, ...]  # passes the end of an epoch
    checkpoint: str
    mended: str
    replacements: tuple[tuple[str, str], ...]


CACHED = ("import argparse\n", "import argparse\nimport functools\n")
ALL = [
    Example(
        "digits_cnn",
        ("--epochs", "2"),
        "runs/last.pt",
        "train.py",
        (CACHED, ("    def __getitem__", "    @functools.cache\n    def __getitem__")),
    ),
    Example("wine_mlp", ("--epochs", "2"), "runs/checkpoint.pt", "config.yaml", (("detect_anomaly: true", "detect_anomaly: false"),)),
    Example(
        "stdlib_charlm",
        ("--epochs", "2", "--steps-per-epoch", "25"),
        "runs/ckpt.pt",
        "train.py",
        (CACHED, ("def load_corpus", "@functools.cache\ndef load_corpus")),
    ),
    Example(
        "docstring_classifier",
        ("--epochs", "0.5"),
        "runs/final/model.safetensors",
        "train.py",
        (("per_device_eval_batch_size=1", "per_device_eval_batch_size=64"),),
    ),
]


def train(project: Path, *arguments: str) -> str:
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, "train.py", *arguments], cwd=project, env=environment, capture_output=True, text=True, timeout=280, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return TIMES.sub("", done.stdout)


def copy(example: Example, folder: Path) -> Path:
    return Path(shutil.copytree(EXAMPLES / example.name, folder / example.name, ignore=shutil.ignore_patterns("runs", "__pycache__")))


QUICK = ("digits_cnn",)
EACH = pytest.mark.parametrize("example", ALL, ids=lambda example: example.name)


@pytest.mark.parametrize(
    "example", [pytest.param(each, marks=() if each.name in QUICK else pytest.mark.full, id=each.name) for each in ALL]
)
def test_it_trains_evaluates_and_saves(example, tmp_path):
    project = copy(example, tmp_path)
    output = train(project, *("1" if word == "2" else word for word in example.short))
    assert re.search(r"\bloss\b", output) and re.search(r"accuracy|val loss", output)
    assert (project / example.checkpoint).stat().st_size > 0


@pytest.mark.full
@EACH
def test_two_runs_and_the_mended_program_print_the_same(example, tmp_path):
    first = train(copy(example, tmp_path / "a"), *example.short)
    assert train(copy(example, tmp_path / "b"), *example.short) == first
    project = copy(example, tmp_path / "c")
    text = (project / example.mended).read_text(encoding="utf-8")
    for old, new in example.replacements:
        assert text.count(old) == 1
        text = text.replace(old, new)
    (project / example.mended).write_text(text, encoding="utf-8")
    assert lines(train(project, *example.short)) == lines(first)


def lines(output: str) -> list[str]:
    """Printed lines, numbers rounded: sums over other evaluation batches differ in the last digits of a float."""
    return [re.sub(r"\d+\.\d{5,}", lambda found: f"{float(found[0]):.5f}", line) for line in output.splitlines()]


@EACH
def test_nothing_in_it_names_what_makes_it_slow(example):
    telling = re.compile(r"\b(slow\w*|fast\w*|bottleneck|cache\w*|speed\w*|perform\w*|trainflash|optimi[sz]ation)\b", re.I)
    for path in sorted((EXAMPLES / example.name).rglob("*")):
        if path.suffix in {".py", ".md", ".yaml"}:
            assert telling.findall(path.read_text(encoding="utf-8")) == [], path.name


def test_folders_are_clean():
    assert sorted(path.name for path in EXAMPLES.iterdir() if path.is_dir()) == sorted(example.name for example in ALL)
    for example in ALL:
        assert 2 <= len((EXAMPLES / example.name / "README.md").read_text(encoding="utf-8").splitlines()) <= 8
