"""Real training programs under the real probe: probe → trace → summary → diagnosis names what was planted."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import trainflash
from trainflash import trace
from trainflash.diagnosis import diagnose
from trainflash.schema import Diagnosis
from trainflash.summary import summarize

PROGRAM = """
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.set_num_threads(1)
torch.manual_seed(0)


class Numbers(Dataset):
    def __len__(self):
        return 128

    def __getitem__(self, index):
        {getitem}
        return torch.full((64,), float(index)), index % {classes}


def parse(index):
    return sum(k * k % (index + 7) for k in range(12000))


def tokenized(batch):
    for _, index in batch:
        parse(index)
    return torch.utils.data.default_collate(batch)


def evaluate(model, data):
    model.eval()
    return sum(float(model(data[i][0][None]).sum()) for i in range(120))


def main():
    width = {width}
    model = nn.Sequential(nn.Linear(64, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, {outputs}))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    data = Numbers()
    loader = DataLoader(data, batch_size=16, shuffle=True, collate_fn={collate})
    {before}
    for epoch in range({epochs}):
        for step, (x, y) in enumerate(loader):
            model.train()
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
            {each_step}


main()
"""
BUSY = "sum(k * k for k in range(20000))"
PLANTS = {
    "input_cpu": {"getitem": BUSY},
    "collate": {"collate": "tokenized", "classes": 128, "outputs": 128},
    "debug_api": {"before": "torch.autograd.set_detect_anomaly(True)", "epochs": 40},
    "evaluation": {"each_step": "evaluate(model, data) if step % 2 == 0 else None", "width": 128, "epochs": 40},
    "compute": {"width": 2048, "epochs": 20},
}


def line_of(text: str, part: str) -> int:
    return next(number for number, line in enumerate(text.splitlines(), 1) if part in line)


def diagnosed(folder: Path, plant: dict) -> tuple[Diagnosis, str]:
    """The diagnosis of the program with `plant` in it, and its source."""
    text = PROGRAM.format(
        **{
            "epochs": 10,
            "getitem": "pass",
            "width": 512,
            "before": "pass",
            "each_step": "pass",
            "collate": "None",
            "classes": 10,
            "outputs": 10,
        }
        | plant
    )
    (folder / "train.py").write_text(text)
    run = folder / "run"
    run.mkdir()
    environment = os.environ | {
        "PYTHONPATH": str(Path(trainflash.__file__).parent / "probe"),
        "OMP_NUM_THREADS": "1",
        "TRAINFLASH_RUN": str(run),
        "TRAINFLASH_OWN": str(folder),
        "TRAINFLASH_CAPTURE": "diagnose",
    }
    subprocess.run([sys.executable, "train.py"], cwd=folder, env=environment, check=True, timeout=240)
    return diagnose(summarize(trace.load(run), run="run", project=str(folder))), text


@pytest.mark.parametrize(
    "kind",
    [pytest.param(kind, marks=pytest.mark.full if kind in ("collate", "compute", "debug_api", "evaluation") else ()) for kind in PLANTS],
)
def test_what_was_planted_is_found_first(kind, tmp_path):
    found, text = diagnosed(tmp_path, PLANTS[kind])
    first = found.findings[0]
    assert (found.abstained, first.kind) == (None, kind)
    assert sum(stat.share for stat in found.phases.values()) == pytest.approx(1.0)
    if kind == "input_cpu":
        assert (first.location.file, first.location.line) == ("train.py", line_of(text, BUSY))
        assert (found.findings[1].kind, first.knobs[0]) == ("repeated_work", "memoize_function")
    if kind == "collate":
        assert (found.findings[1].kind, found.findings[1].location.function) == ("repeated_work", "parse")
        assert first.knobs[0] == "memoize_function"
    if kind == "debug_api":
        assert (first.location.file, first.location.line) == ("train.py", line_of(text, "set_detect_anomaly"))
    if kind == "evaluation":
        assert first.location.function == "evaluate"
        assert first.knobs[:2] == ("eval_batch_size", "eval_cadence")
