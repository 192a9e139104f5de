"""The project's own metric, read from what a run left; and where two versions end under several seeds."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest
from training_records import check_of, record, rounded

from trainflash.config import Settings
from trainflash.errors import UsageError
from trainflash.fidelity import compare, metric
from trainflash.fidelity.convergence import applied, judge
from trainflash.fidelity.reuse import Run
from trainflash.workflow import inputs


def run(folder: Path, log: str = "", **files: str) -> Run:
    outputs = folder / "outputs"
    outputs.mkdir(parents=True)
    (folder / "output.log").write_text(log)
    for name, text in files.items():
        (outputs / name.replace("_", ".")).write_text(text)
    return Run(record(), 1.0, folder / "output.log", outputs)


def parsed(text: str, tolerance: float = 0.01, folder: str = "."):
    return metric.parse(text, tolerance, folder=folder, interpreter=sys.executable)


@pytest.mark.parametrize(
    ("text", "values"),
    [
        (r"val=([0-9.]+)", [0.5, 0.25]),
        (r"val=(?P<value>[0-9.]+) (x|y)?", [0.5]),
        ("$.eval.loss", [3.0, 2.0]),
        ("result.json:$.epochs[*].acc", [0.1, 0.2]),
        ("result.json:$.epochs[-1].acc", [0.2]),
        ("result.json:$['best one']", [7.0]),
        ("log.jsonl:$.a", [1.0, 2.0]),
        ("gone.json:$.a", []),
        ("$.missing.part", []),
    ],
)
def test_values_are_found(tmp_path, text, values):
    log = 'start\nval=0.5 x\nval=0.25\n{"eval": {"loss": 3.0}}\n{"eval": {"loss": "2"}}\n{torn'
    result = '{"epochs": [{"acc": 0.1}, {"acc": 0.2}], "best one": 7}'
    made = run(tmp_path / "run", log, result_json=result, log_jsonl='{"a": 1}\n{"a": 2}\n')
    assert parsed(text).values(made) == values


def test_a_function_of_the_project_gets_the_output_folder(tmp_path):
    (tmp_path / "score.py").write_text(
        "from pathlib import Path\ndef lines(folder):\n    return len(Path(folder, 'a.txt').read_text().split())\n"
    )
    (tmp_path / "bad.py").write_text("def fails(folder):\n    raise ValueError('no such thing')\n")
    made = run(tmp_path / "run", a_txt="x y z")
    assert parsed("score:lines", folder=str(tmp_path)).values(made) == [3.0]
    with pytest.raises(UsageError, match="no such thing"):
        parsed("bad:fails", folder=str(tmp_path)).values(made)


@pytest.mark.parametrize("text", ["val=[0-9]+", "val=([0-9]+)-([0-9]+)", "val=(", "$", "$.a[", "x.json:$"])
def test_what_is_no_metric_is_refused_before_anything_runs(text):
    with pytest.raises(UsageError):
        parsed(text)


def test_better_is_as_much_a_change_as_worse(tmp_path):
    old, worse, better, near = (run(tmp_path / str(number), f"val={value}\n") for number, value in enumerate((0.5, 0.6, 0.4, 0.505)))
    held = parsed(r"val=([0-9.]+)")
    assert held.compare(old, near).ok
    assert held.compare(old, worse).ok is held.compare(old, better).ok is False
    silent = run(tmp_path / "silent")
    assert held.compare(silent, old).ok is None
    assert held.compare(old, silent).ok is False
    twice = run(tmp_path / "twice", "val=0.5\nval=0.5\n")
    assert "1 values" in held.compare(old, twice).evidence
    assert held.compare(old, run(tmp_path / "nan", "val=0.5\n" * 0 + "val=")).ok is False


def test_the_metric_decides_instead_of_the_loss_but_not_instead_of_the_rest(tmp_path):
    old = run(tmp_path / "old", "val=0.5\n")
    check = parsed(r"val=([0-9.]+)").compare(old, old)
    apart = rounded(2e-3, 1e-5)
    assert "loss" in compare(record(), apart).changed
    found = compare(record(), apart, metric=check)
    assert (found.verdict, found.changed) == ("close", ("numerics",))
    assert "own metric decides" in check_of(found, "loss").evidence
    assert "weights" in compare(record(), rounded(2e-3, 2e-2), metric=check).changed
    assert compare(record(), apart, metric=replace(check, ok=None)).verdict == "inconclusive"
    assert "metric" in compare(record(), record(), metric=replace(check, ok=False)).changed


SEEDS = [(1.0, 1.001), (1.1, 1.1), (0.9, 0.901), (1.05, 1.049), (0.95, 0.951)]


def test_equal_ends_pass_and_better_ones_are_refused_like_worse_ones():
    assert judge(SEEDS, None).ok
    for shift in (-0.5, 0.5):
        found = judge([(old, new + shift) for old, new in SEEDS], None)
        assert found.ok is False
        assert "over 5 seeds" in found.evidence
    assert judge(SEEDS, 1e-5).ok is None
    assert judge(SEEDS[:2], None).ok is None
    assert judge([(old, float("nan")) for old, _ in SEEDS], None).ok is False


def test_convergence_refuses_or_leaves_open_what_was_the_same():
    same = compare(record(), record())
    assert applied(same, judge(SEEDS, None)).verdict == "same"
    assert applied(same, judge(SEEDS[:2], None)).verdict == "inconclusive"
    refused = applied(same, judge([(old, new - 0.5) for old, new in SEEDS], None))
    assert (refused.verdict, refused.changed) == ("changed", ("convergence",))


def test_demands_keep_the_tolerance_of_the_losses_beside_that_of_the_metric():
    demands = inputs.demands(Settings(), metric="score:lines", tolerance=0.5, restart="python train.py --resume 'last one.pt'")
    assert (demands.metric_tolerance, demands.tolerance) == (0.5, 1e-3)
    assert demands.restart == ("python", "train.py", "--resume", "last one.pt")
    assert inputs.demands(Settings(), tolerance=0.5).tolerance == 0.5
    assert inputs.demands(Settings(), allow="precision,shape").allowed == {"precision", "shape", "numerics"}


@pytest.mark.parametrize("options", [{"metric": "val=("}, {"convergence": 2}, {"allow": "updates"}, {"allow": "loss"}])
def test_demands_that_mean_nothing_are_refused_before_anything_runs(options):
    with pytest.raises(UsageError):
        inputs.demands(Settings(), **options)
