"""The gate's benchmark on real programs: an unmodified one by the probe, two gloo ranks, and the checkout's own command."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from owner import User

from trainflash.schema import GateEval, GateMetrics, from_plain

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = """
import os, sys
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
torch.set_num_threads(1)
several = int(os.environ.get("WORLD_SIZE", "1")) > 1
if several:
    torch.distributed.init_process_group("gloo")


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.table, self.up, self.down = nn.Embedding(64, 32), nn.Linear(32, 128), nn.Linear(128, 64)

    def forward(self, ids):
        return self.down(torch.relu(self.up(self.table(ids))))


net = Net()
model = nn.parallel.DistributedDataParallel(net) if several else net
optimizer = torch.optim.Adam(model.parameters(), 1e-3)
bad = "--nan" in sys.argv
for epoch in range(12):
    for (ids,) in DataLoader(TensorDataset(torch.randint(64, (80, 16))), batch_size=8):
        loss = nn.functional.cross_entropy(model(ids).flatten(0, 1), ids.flatten())
        if bad:
            loss = loss * float("nan")
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
print(f"val_loss={loss.item():.6f}")
"""
TOKENS, SAMPLES = 8 * 16, 8
EMBEDDING, MATRICES, BIASES = 64 * 32, 32 * 128 + 128 * 64, 128 + 64


@pytest.fixture(scope="module")
def person(tmp_path_factory):
    folder = tmp_path_factory.mktemp("gate")
    home, project = folder / "home", folder / "project"
    home.mkdir()
    project.mkdir()
    (project / "train.py").write_text(PROGRAM)
    (project / "silent.py").write_text("print('nothing to see')\n")
    someone = User(home, project)
    someone.git("init", "--quiet")
    someone.git("add", "--all")
    someone.git("commit", "--quiet", "--message", "start")
    return someone


@pytest.fixture(scope="module")
def benched(person):
    """One benchmark of the program: the document that was written, and what was answered."""
    out = person.project.parent / "metrics.json"
    words = ("--warmup", "10", "--steps", "40", "--no-stall", "--peak-tflops", "1", "--out", str(out))
    ran = person.trainflash("gate", "bench", *words, "--json", "--", sys.executable, "train.py")
    assert ran.code == 0, ran.err
    return from_plain(GateMetrics, json.loads(out.read_text())), ran.document


@pytest.mark.full
def test_an_unmodified_program_is_measured(benched):
    found, _ = benched
    assert (found.source, found.mode, found.world_size, len(found.repeats[0].step_ms)) == ("program", "e2e", 1, 40)
    assert (found.tokens_per_step, found.samples_per_step) == (TOKENS, SAMPLES)
    assert found.flops.parameters == EMBEDDING + MATRICES + BIASES
    assert found.flops.non_embedding_parameters == MATRICES + BIASES
    assert found.flops.per_step == 6 * (MATRICES + BIASES) * TOKENS
    assert 0 < found.mfu_p50 < 1 and found.memory_peak_bytes > 1 << 26 and found.loss_slope < 0
    assert {"Data", "Fwd", "Bwd", "Opt", "Other"} <= found.phases.keys()
    assert sum(phase.share for phase in found.phases.values()) == pytest.approx(1.0)


@pytest.mark.full
def test_the_answer_is_the_document_without_its_steps(benched):
    found, document = benched
    assert (document["schema"], document["status"]) == ("gate_bench.v1", "ok")
    assert document["tokens_per_sec_p50"] == found.tokens_per_sec_p50 and "repeats" not in document


@pytest.mark.full
def test_the_project_is_left_as_it_was(person, benched):
    assert person.git("status", "--porcelain") == ""


@pytest.mark.full
def test_an_evaluation_that_prints_nothing_is_no_pass(person):
    words = ("gate", "eval", "--metric", "val_loss=([0-9.]+)", "--out", str(person.project.parent / "none.json"))
    ran = person.trainflash(*words, "--json", "--", sys.executable, "silent.py")
    assert ran.code == 2 and "no value of the metric" in ran.document["error"]["message"]
    assert not (person.project.parent / "none.json").exists()


@pytest.mark.full
def test_the_owners_own_evaluation(person):
    out = person.project.parent / "eval.json"
    words = ("gate", "eval", "--metric", "val_loss=([0-9.]+)", "--out", str(out))
    texts = []
    for _ in range(2):
        ran = person.trainflash(*words, "--", sys.executable, "train.py")
        assert ran.code == 0, ran.err
        texts.append(out.read_bytes())
    found = from_plain(GateEval, json.loads(texts[0]))
    assert texts[0] == texts[1] and found.metrics[0].better == "lower" and 0 < found.metrics[0].value < 10


@pytest.mark.full
@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        (("--warmup", "500", "--steps", "10"), 2, "warm-up"),
        (("--warmup", "2", "--steps", "0"), 2, "measure_steps"),
    ],
)
def test_nothing_measured_is_said_plainly(person, options, code, said):
    ran = person.trainflash("gate", "bench", *options, "--no-stall", "--json", "--", sys.executable, "train.py")
    assert ran.code == code and said in ran.document["error"]["message"]


@pytest.mark.full
def test_a_loss_that_is_no_number_is_no_benchmark(person):
    ran = person.trainflash(
        "gate", "bench", "--warmup", "2", "--steps", "30", "--no-stall", "--json", "--", sys.executable, "train.py", "--nan"
    )
    assert ran.code == 6 and "not a number" in ran.document["error"]["message"]


@pytest.mark.full
def test_traces_and_operations_of_the_program(person, tmp_path):
    words = (
        "--warmup",
        "5",
        "--steps",
        "20",
        "--mfu",
        "transformer_aware",
        "--profile",
        "trace",
        "--profile-dir",
        str(tmp_path / "profile"),
    )
    ran = person.trainflash("gate", "bench", *words, "--out", str(tmp_path / "m.json"), "--", sys.executable, "train.py")
    assert ran.code == 0, ran.err
    found = from_plain(GateMetrics, json.loads((tmp_path / "m.json").read_text()))
    assert set(found.regions) == {"data", "backward", "optimizer_step"} and any("cannot be told apart" in note for note in found.notes)
    assert list((tmp_path / "profile").glob("*.pt.trace.json"))
    assert found.flops.counted_per_step == pytest.approx(6 * MATRICES * TOKENS, rel=0.02)
    assert found.flops.per_step == pytest.approx(found.flops.counted_per_step, rel=0.02)


@pytest.mark.full
def test_replayed_batches_of_the_program(person, tmp_path):
    (person.project / "long.py").write_text(PROGRAM.replace("range(12)", "range(3000)"))
    words = ("--warmup", "5", "--steps", "20", "--mode", "synthetic", "--out", str(tmp_path / "m.json"))
    ran = person.trainflash("gate", "bench", *words, "--", sys.executable, "long.py")
    (person.project / "long.py").unlink()
    assert ran.code == 0, ran.err
    found = from_plain(GateMetrics, json.loads((tmp_path / "m.json").read_text()))
    assert found.mode == "synthetic" and found.stall is not None and found.loss_slope is None


@pytest.mark.full
def test_two_ranks_of_the_program_and_their_scaling(person, tmp_path):
    words = ("--warmup", "5", "--steps", "30", "--world-size", "2", "--out", str(tmp_path / "m.json"))
    ran = person.trainflash("gate", "bench", *words, "--", sys.executable, "train.py")
    assert ran.code == 0, ran.err
    found = from_plain(GateMetrics, json.loads((tmp_path / "m.json").read_text()))
    assert (found.world_size, found.tokens_per_step) == (2, 2 * TOKENS)
    assert found.scaling.unit == "tokens" and found.scaling.efficiency > 0


@pytest.mark.full
def test_two_ranks_of_a_step_function(tmp_path):
    program = Path(__file__).parents[1] / "unit" / "gate_workloads.py"
    words = (
        "--bench",
        "--workload",
        f"{program}:gpt",
        "--warmup-steps",
        "2",
        "--measure-steps",
        "20",
        "--world-size",
        "2",
        "--profile",
        "trace",
    )
    done = checkout(tmp_path, *words)
    assert done.returncode == 0, done.stderr
    found = from_plain(GateMetrics, json.loads((tmp_path / "metrics.json").read_text()))
    assert (found.world_size, found.tokens_per_step) == (2, 128) and found.scaling.efficiency > 0
    assert found.regions == ("data", "forward", "loss", "backward", "optimizer_step", "grad_sync")
    assert len(list((tmp_path / "profile").glob("*.pt.trace.json"))) == 2


@pytest.mark.full
def test_the_checkouts_own_command(tmp_path):
    done = checkout(tmp_path, "--bench", "--eval", "--warmup-steps", "5", "--measure-steps", "20")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == {"bench": str(tmp_path / "metrics.json"), "eval": str(tmp_path / "eval.json")}
    from_plain(GateMetrics, json.loads((tmp_path / "metrics.json").read_text()))
    assert len(from_plain(GateEval, json.loads((tmp_path / "eval.json").read_text())).probes) == 3


def checkout(out: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "tools.bench.run", *words, "--out", str(out)]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=280, check=False)
