"""Small programs rebuilt from public reports of slow training, which lie beside the checkout where they are kept: cause and line."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from probed import ROOT, probed

from trainflash.diagnosis import diagnose
from trainflash.schema import Diagnosis
from trainflash.summary import summarize

CASES = ROOT.parent / "shared" / "cases"
SECONDS = "40"
pytestmark = [pytest.mark.full, pytest.mark.skipif(not CASES.is_dir(), reason="the cases are not beside this checkout")]


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    """What a program writes, it writes where it stands."""
    monkeypatch.chdir(tmp_path)


def diagnosed(name: str, tmp_path: Path) -> tuple[Diagnosis, Path]:
    folder = tmp_path / name
    shutil.copytree(CASES / name, folder)
    limits = {"TRAINFLASH_MAX_SECONDS": SECONDS, "TRAINFLASH_MIN_STEPS": "60", "TRAINFLASH_SAMPLE_HZ": "50"}
    run = probed(tmp_path / "run", folder / "train.py", capture="diagnose", TRAINFLASH_OWN=str(folder), **limits)
    assert run.returncode == 0, run.output
    found = summarize(run.trace, run="run", project=str(folder))
    assert found.swallowed == {}
    return diagnose(found), folder


def line(folder: Path, file: str, text: str) -> int:
    return next(number for number, row in enumerate((folder / file).read_text().splitlines(), 1) if text in row)


@pytest.mark.parametrize(
    ("name", "kind", "file", "text"),
    [
        ("running_auroc", "growth", "train.py", "self.train_auc(torch.sigmoid"),
        ("broadcast_each_step", "growth", "train.py", "broadcast("),
        ("gradient_histograms", "callback", "watch.py", None),
        ("negatives_by_multinomial", "slow_operator", "train.py", "torch.multinomial("),
        ("environments_one_by_one", "launch_overhead", "train.py", None),
    ],
)
def test_the_first_finding_is_the_cause_at_its_line(name, kind, file, text, tmp_path):
    found, folder = diagnosed(name, tmp_path)
    first = next(each for each in found.findings if each.kind != "startup")
    assert (first.kind, first.location.file) == (kind, file)
    assert text is None or first.location.line == line(folder, file, text)


def test_collections_are_named_as_such_and_no_slow_samples(tmp_path):
    found, _ = diagnosed("late_batches", tmp_path)
    kinds = [each.kind for each in found.findings]
    assert "garbage_collection" in kinds and "input_tail" not in kinds
    collected = next(each for each in found.findings if each.kind == "garbage_collection")
    assert collected.phase == "Data" and collected.location.file == "train.py"
    assert (
        sum(each.share for each in found.findings if each.kind in ("input_cpu", "garbage_collection")) <= found.phases["Data"].share + 0.05
    )


def test_the_memory_that_workers_copy_is_named_with_the_data_set(tmp_path):
    found, _ = diagnosed("workers_memory", tmp_path)
    memory = next(each for each in found.findings if each.kind == "worker_memory")
    assert memory.location.function == "Lines.__getitem__"


def test_windows_that_are_copied_stand_among_the_first_sites(tmp_path):
    found, _ = diagnosed("windows_copied", tmp_path)
    assert any(site.location.function == "Forecaster.make_windows" for site in found.sites[:3])
