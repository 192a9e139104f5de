"""What-if replays of real programs: the right thing is replayed, nothing else changes, and the program ends in order."""

from __future__ import annotations

import json
import sys

import pytest
from owner import SLOW_INPUT
from probed import PROGRAMS, Run, probed

from trainflash.schema import RunRecord, read_document
from trainflash.schema.ceilings import Ceilings
from trainflash.trace import load
from trainflash.workflow import replay_blocks

PROGRAM = "replay_loader.py"
SPIN_MS = {"getitem": 3.2, "collate": 4.0, "stream": 3.2, "function": 3.2, "data": 4.0, "edited": 3.2}  # planted in a step, beside 1 ms


def line_of(function: str) -> int:
    lines = (PROGRAMS / PROGRAM).read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if line.startswith(f"def {function}("))


def replayed(run_dir, what: str, kind: str, workers: int = 0, epochs: int = 48, function: str = "", value: int = 1) -> Run:
    run_dir.mkdir()
    at = [PROGRAM, line_of(function), function] if function else None
    settle = 2 + 3 * workers
    spec = json.dumps({"replay": what, "at": at, "value": value, "settle": settle, "block_s": 0.1})
    return probed(run_dir, PROGRAM, kind, str(workers), str(epochs), TRAINFLASH_REPLAY=spec, REPORT="1")


def said_epochs(run: Run) -> list[str]:
    return [line for line in run.output.splitlines() if line.startswith("epoch")]


def epochs_of(count: int) -> list[str]:
    """What the program says when each pass over the data has its usual length."""
    return [f"epoch {epoch} batches 16" for epoch in range(count)]


def net_ms(blocks, mode: str) -> float:
    mine = [block for block in blocks if block.mode == mode]
    return sum(block.wall_ns - block.runq_ns for block in mine) / sum(block.steps for block in mine) / 1e6


@pytest.mark.parametrize(
    ("what", "kind", "function"),
    [
        ("samples", "getitem", ""),
        pytest.param("function", "function", "parse", marks=pytest.mark.full),
        pytest.param("samples", "stream", "", marks=pytest.mark.full),
        pytest.param("samples", "edited", "", marks=pytest.mark.full),
        pytest.param("collated", "collate", "", marks=pytest.mark.full),
        pytest.param("batches", "getitem", "", marks=pytest.mark.full),
        pytest.param("batches", "edited", "", marks=pytest.mark.full),
        pytest.param("function", "data", "make_batch", marks=pytest.mark.full),
    ],
)
def test_replayed_blocks_lack_the_planted_cost_and_live_ones_keep_it(what, kind, function, tmp_path):
    run = replayed(tmp_path / "run", what, kind, function=function, value=32 if kind == "data" else 1)
    assert run.returncode == 0, run.output
    blocks, error = replay_blocks.read(run.run_dir)
    assert error == ""
    assert [block.mode for block in blocks[:4]] == ["live", "replay", "replay", "live"]
    assert net_ms(blocks, "live") - net_ms(blocks, "replay") > 0.6 * SPIN_MS[kind]
    assert net_ms(blocks, "live") > SPIN_MS[kind] + 1.0
    assert load(run.run_dir).ranks[0].swallowed == {}
    if kind != "stream":  # of a stream nobody knows where a replayed pass would end
        assert said_epochs(run) == ([] if kind == "data" else epochs_of(48))


@pytest.mark.full
@pytest.mark.parametrize(
    "what", [pytest.param("samples"), pytest.param("batches", marks=pytest.mark.full), pytest.param("function", marks=pytest.mark.full)]
)
def test_workers_replay_too_although_they_start_again_for_each_pass(what, tmp_path):
    run = replayed(tmp_path / "run", what, "function", workers=2, epochs=20, function="parse" if what == "function" else "")
    assert run.returncode == 0, run.output
    blocks, error = replay_blocks.read(run.run_dir)
    assert error == ""
    assert {block.mode for block in blocks} == {"live", "replay"}
    assert said_epochs(run) == epochs_of(20)
    if what != "batches":
        assert (run.run_dir / "replay-kept.pickle").stat().st_size > 0


@pytest.mark.full
def test_what_cannot_be_found_is_said_and_the_run_ends(tmp_path):
    run = replayed(tmp_path / "run", "function", "getitem", function="make_batch")
    assert replay_blocks.read(run.run_dir) == ((), "it was not called in the first steps")
    assert run.returncode == 0
    assert json.loads((run.run_dir / "stopped.json").read_text())["because"] == "replay"


def test_the_launcher_ends_the_run_when_it_has_seen_enough(tmp_path):
    run_dir = tmp_path / "run"
    run_dir.mkdir()
    (run_dir / "replay-stop").touch()
    spec = json.dumps({"replay": "samples", "at": None, "value": None, "settle": 2, "block_s": 0.05})
    run = probed(run_dir, PROGRAM, "getitem", "0", "100000", TRAINFLASH_REPLAY=spec)
    assert (run.returncode, len(replay_blocks.read(run_dir)[0])) == (0, 1)
    assert (run_dir / "stopped.json").exists()


@pytest.mark.full
def test_anomaly_mode_is_off_in_replayed_blocks_only(tmp_path):
    run_dir = tmp_path / "run"
    run_dir.mkdir()
    spec = json.dumps({"replay": "anomaly", "at": None, "value": None, "settle": 1, "block_s": 0.05})
    run = probed(run_dir, "replay_switches.py", "anomaly", TRAINFLASH_REPLAY=spec)
    assert run.returncode == 0, run.output
    blocks, _ = replay_blocks.read(run_dir)
    on = json.loads(run.output.splitlines()[-1])
    for block in blocks:
        seen = set(on[block.first : block.first + block.steps])
        assert seen == {block.mode == "live"}, block
    assert {block.mode for block in blocks} == {"live", "replay"}


@pytest.mark.full
def test_checkpointed_functions_run_once_in_replayed_blocks(tmp_path):
    run_dir = tmp_path / "run"
    run_dir.mkdir()
    spec = json.dumps({"replay": "checkpointing", "at": None, "value": None, "settle": 1, "block_s": 0.05})
    run = probed(run_dir, "replay_switches.py", "checkpointing", TRAINFLASH_REPLAY=spec)
    assert run.returncode == 0, run.output
    blocks, _ = replay_blocks.read(run_dir)
    calls = json.loads(run.output.splitlines()[-1])
    for block in blocks:
        assert set(calls[block.first : block.first + block.steps]) == {2 if block.mode == "live" else 1}, block
    assert {block.mode for block in blocks} == {"live", "replay"}


def test_a_replay_that_is_not_wanted_changes_nothing(tmp_path):
    """Unknown names are swallowed: the program runs as ever."""
    spec = json.dumps({"replay": "nonsense", "at": None, "value": None, "settle": 1, "block_s": 0.1})
    run = probed(tmp_path / "run", PROGRAM, "getitem", "0", "2", TRAINFLASH_REPLAY=spec, REPORT="1")
    assert said_epochs(run) == epochs_of(2)
    assert replay_blocks.read(run.run_dir) == ((), "")
    assert run.rank.steps == 32


@pytest.mark.full
def test_the_command_measures_the_ceiling_and_shows_it_again(user):
    """A slow parser takes most of a step; 8 samples of it are replaced by remembered results."""
    (user.project / "train.py").write_text(SLOW_INPUT.replace("range(40)", "range(4000)"))
    user.git("commit", "--quiet", "--all", "--message", "longer")
    ran = user.trainflash("diagnose", "--json", "--ceilings", "--steps", "120", "--", sys.executable, "train.py")
    assert ran.code == 0, ran.err
    findings = {each["kind"]: each for each in ran.document["findings"]}
    assert findings["input_cpu"]["ceiling"]["how"] == "measured"
    assert findings["input_cpu"]["ceiling"]["speedup"] > 2
    runs = next(user.project.parent.parent.glob("home/state/trainflash/*/runs"))
    run = ran.document["run"]
    ceilings = read_document(Ceilings, runs / run / "ceilings.json")
    assert ceilings.runs and {read_document(RunRecord, runs / name / "run.json").kind for name in ceilings.runs} == {"ceiling"}
    again = user.trainflash("diagnose", "--json", "--run", run)
    assert again.document["findings"] == ran.document["findings"]
