"""The recorder inside real training programs: it changes no bit, and what it writes is what the program did."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from trainflash.fidelity import compare, work
from trainflash.fidelity.record import Record, Stream, read

PROBE = Path(__file__).parents[2] / "src" / "trainflash" / "probe"
HEAD = """
import random, torch
from torch import nn
torch.set_num_threads(1)
torch.manual_seed(0)
random.seed(0)
"""

ACCUMULATION = """
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Dropout(0.25), nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), 0.1, weight_decay=0.01)
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
for step in range(6):
    optimizer.zero_grad()
    for _ in range(2):
        loss = model(torch.randn(9, 4)).pow(2).mean() / 2
        scaler.scale(loss).backward()
        print(loss.item().hex())
    scaler.step(optimizer)
    scaler.update()
print(torch.rand(1).item().hex(), random.random().hex())
"""

ADVERSARIAL = """
maker = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 6))
critic = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 1))
make, judge = torch.optim.Adam(maker.parameters(), 1e-3), torch.optim.Adam(critic.parameters(), 1e-3)
criterion = nn.BCEWithLogitsLoss()
for step in range(6):
    judge.zero_grad()
    criterion(critic(torch.randn(5, 6)), torch.ones(5, 1)).backward()
    fake = maker(torch.randn(5, 4))
    criterion(critic(fake.detach()), torch.zeros(5, 1)).backward()
    judge.step()
    make.zero_grad()
    loss = criterion(critic(fake), torch.ones(5, 1))
    loss.backward()
    make.step()
    print(loss.item().hex())
print(torch.rand(1).item().hex(), random.random().hex())
"""

CLOSURE = """
model, inputs = nn.Linear(4, 1), torch.randn(9, 4)
optimizer = torch.optim.LBFGS(model.parameters(), max_iter=3)
def closure():
    optimizer.zero_grad()
    loss = (model(inputs) - inputs.sum(1, keepdim=True)).pow(2).mean()
    loss.backward()
    return loss
for step in range(5):
    print(optimizer.step(closure).item().hex())
print(torch.rand(1).item().hex(), random.random().hex())
"""

NO_MODULE = """
weight = torch.randn(4, requires_grad=True)
optimizer = torch.optim.SGD([weight], 0.1)
for step in range(5):
    optimizer.zero_grad()
    loss = (torch.randn(3, 4) @ weight).pow(2).mean()
    loss.backward()
    optimizer.step()
    print(loss.item().hex())
print(torch.rand(1).item().hex(), random.random().hex())
"""

SPARSE_AND_NAMED = """
class Bag(nn.Module):
    def __init__(self):
        super().__init__()
        self.table, self.head = nn.Embedding(20, 8, sparse=True), nn.Linear(8, 2)
    def forward(self, *, ids, mask):
        return self.head((self.table(ids) * mask[..., None]).mean(1))
model = Bag()
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for step in range(5):
    optimizer.zero_grad(set_to_none=True)
    batch = {"ids": torch.randint(0, 20, (4, 7)), "mask": torch.ones(4, 7)}
    loss = model(**batch).pow(2).mean()
    loss.backward()
    optimizer.step()
    print(loss.item().hex())
print(torch.rand(1).item().hex(), random.random().hex())
"""

EVALUATING_WITH_GRADIENTS = """
model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for step in range(8):
    optimizer.zero_grad()
    loss = model(torch.randn(6, 4)).pow(2).mean()
    loss.backward()
    optimizer.step()
    print(loss.item().hex())
    if step % 3 == 2:
        model.eval()
        for _ in range(2):
            model(torch.ones(10, 4))
        model.train()
        torch.save({"model": model.state_dict()}, "model.pt")
print(torch.rand(1).item().hex(), random.random().hex())
"""

RECOMPUTING = """
from torch.utils.checkpoint import checkpoint
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Sequential(nn.Linear(4, 8), nn.Tanh()), nn.Linear(8, 1)
    def forward(self, inputs):
        return self.head(checkpoint(self.body, inputs, use_reentrant=REENTRANT))
model = Net()
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for step in range(6):
    optimizer.zero_grad()
    loss = model(torch.randn(6, 4, requires_grad=True)).pow(2).mean()
    loss.backward()
    optimizer.step()
    print(loss.item().hex())
"""

INLINE_PARTS = """
model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 1))
for step in range(6):
    x = torch.randn(12, 8)
    for part in x.split(4):
        loss = (model(part) - part.sum(1, keepdim=True)).square().sum() / len(x)
        loss.backward()
    with torch.no_grad():
        for weight in model.parameters():
            weight -= 0.05 * weight.grad
            weight.grad = None
    print(loss.item().hex())
print(torch.rand(1).item().hex(), random.random().hex())
"""

INLINE_RESULTS = """
model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 1))
weights = list(model.parameters())
for step in range(6):
    x = torch.randn(12, 8)
    loss = (model(x) - x.sum(1, keepdim=True)).square().mean()
    for weight, slope in zip(weights, torch.autograd.grad(loss, weights)):
        weight.data.sub_(0.05 * slope)
    print(loss.item().hex())
print(torch.rand(1).item().hex(), random.random().hex())
"""

LATE = """
model, optimizer = nn.Linear(8, 1), None
for step in range(6):
    model(torch.randn(4, 8)).square().mean().backward()
    optimizer = optimizer or torch.optim.SGD(model.parameters(), 0.1)
    if step:
        optimizer.step()
        optimizer.zero_grad()
"""

PROGRAMS = {
    "recomputing": RECOMPUTING.replace("REENTRANT", "False"),
    "recomputing, reentrant": RECOMPUTING.replace("REENTRANT", "True"),
    "accumulation": ACCUMULATION,
    "adversarial": ADVERSARIAL,
    "closure": CLOSURE,
    "no module": NO_MODULE,
    "sparse and named": SPARSE_AND_NAMED,
    "evaluating": EVALUATING_WITH_GRADIENTS,
    "inline parts": INLINE_PARTS,
    "inline results": INLINE_RESULTS,
}


def train(folder: Path, text: str, **environment: str) -> tuple[str, Stream]:
    """Output of the program under the recorder, and what was recorded."""
    folder.mkdir()
    (folder / "train.py").write_text(HEAD + text)
    run_dir = folder / "run"
    run_dir.mkdir()
    ours = {"PYTHONPATH": str(PROBE), "TRAINFLASH_RUN": str(run_dir), "TRAINFLASH_OWN": str(folder), "TRAINFLASH_CAPTURE": "fidelity"}
    output = start(folder, {**ours, "TRAINFLASH_SAMPLE_HZ": "0", **environment})
    (stream,) = read(run_dir).streams
    return output, stream


def start(folder: Path, environment: dict[str, str]) -> str:
    everything = {**os.environ, "OMP_NUM_THREADS": "1", **environment}
    done = subprocess.run([sys.executable, "train.py"], cwd=folder, env=everything, capture_output=True, text=True, check=True, timeout=120)
    return done.stdout


def recorded(tmp_path: Path, name: str) -> tuple[list[str], Stream]:
    output, stream = train(tmp_path / "recorded", PROGRAMS[name])
    return output.splitlines(), stream


@pytest.mark.full
@pytest.mark.parametrize("name", PROGRAMS)
def test_recording_changes_no_loss_and_no_random_state(tmp_path, name):
    output, stream = train(tmp_path / "recorded", PROGRAMS[name])
    assert output == start(tmp_path / "recorded", {})
    assert stream.ended
    assert stream.swallowed == {}


@pytest.mark.full
def test_scaled_and_accumulated_losses_are_recorded_as_the_program_sees_them(tmp_path):
    output, stream = recorded(tmp_path, "accumulation")
    assert [loss.hex() for update in stream.updates for loss in update.losses] == output[:-1]
    first = stream.updates[0]
    assert (len(first.losses), first.forwards, first.samples, first.grads) == (2, 2, 18, 4)
    assert first.modes[0] == ("Sequential", True, 1, 0.25, 0)
    assert first.settings[0]["lr"] == 0.1
    assert first.settings[0]["weight_decay"] == 0.01
    assert 0 < first.grad_norm < 10
    assert [line["n"] for line in stream.weights] == [1, 2, 5, 6]
    assert stream.weights[0]["updated"] == 4


@pytest.mark.full
def test_two_optimizers_are_told_apart_and_a_forward_counts_where_it_is_used(tmp_path):
    _, stream = recorded(tmp_path, "adversarial")
    assert [update.optimizer for update in stream.updates[:4]] == [0, 1, 0, 1]
    assert [len(update.losses) for update in stream.updates[:4]] == [2, 1, 2, 1]
    judged, made = stream.updates[2:4]
    assert (judged.forwards, judged.samples) == (2, 5)  # the real ones; what the maker made is no data, detached or not
    assert made.samples == 5  # the noise; what the maker made is no input
    assert made.targets is not None
    assert stream.evaluations == ()


def test_evaluation_is_what_no_backward_depends_on(tmp_path):
    _, stream = recorded(tmp_path, "evaluating")
    assert [(line["n"], line["forwards"], line["samples"]) for line in stream.evaluations] == [(3, 2, 20), (6, 2, 20)]
    for line in stream.evaluations:
        total, squares, count = line["outputs"]  # the same value for each sample
        assert (line["results"], count) == (2, 20) and squares > 0
        assert total**2 == pytest.approx(count * squares, rel=1e-5)
    assert all(update.samples == 6 for update in stream.updates)
    assert [line["n"] for line in stream.checkpoints] == [3, 6]
    assert any(name.startswith("model.0.weight") for name in stream.checkpoints[0]["names"])


@pytest.mark.parametrize("program", ["recomputing", pytest.param("recomputing, reentrant", marks=pytest.mark.full)])
def test_a_forward_that_backward_does_again_is_no_evaluation(tmp_path, program):
    _, stream = recorded(tmp_path, program)
    assert stream.evaluations == ()
    assert [update.forwards for update in stream.updates] == [1] * 6


@pytest.mark.full
@pytest.mark.parametrize("way", ["1", "2"])
def test_the_nudge_moves_weights_by_rounding_only(tmp_path, way):
    text = CLOSURE.replace("torch.optim.LBFGS(model.parameters(), max_iter=3)", "torch.optim.SGD(model.parameters(), 0.01)")
    _, plain = train(tmp_path / "plain", text)
    _, nudged = train(tmp_path / "nudged", text, TRAINFLASH_NUDGE=way)
    first = [stream.updates[0].loss for stream in (plain, nudged)]
    assert first[0] != first[1]
    assert first[0] == pytest.approx(first[1], rel=1e-5)
    assert plain.updates[-1].multiset == nudged.updates[-1].multiset


LOADER = """
from torch.utils.data import DataLoader, TensorDataset
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), 0.1)
points = torch.randn(24, 4, generator=torch.Generator().manual_seed(7))
for epoch in range(3):
    for (x,) in DataLoader(TensorDataset(points), batch_size=8, shuffle=True):
        optimizer.zero_grad()
        loss = model(x).pow(2).mean()
        loss.backward()
        optimizer.step()
        print(loss.item().hex())
print(torch.rand(1).item().hex(), random.random().hex())
"""


def keys(stream: Stream) -> list[str]:
    return [key for update in stream.updates for key in update.keys]


@pytest.mark.full
def test_samples_are_known_by_their_keys_and_another_order_is_nothing_but_that(tmp_path):
    _, plain = train(tmp_path / "plain", LOADER)
    _, again = train(tmp_path / "again", LOADER)
    _, other = train(tmp_path / "other", LOADER, TRAINFLASH_VARY="order:1")
    assert plain.seeded
    assert keys(plain) == keys(again)
    assert keys(plain) != keys(other)
    for epoch in range(3):
        assert sorted(keys(plain)[24 * epoch :][:24]) == sorted(keys(other)[24 * epoch :][:24])
    assert {row for update in plain.updates for row in update.rows} == {row for update in other.updates for row in update.rows}


SLOW_SAMPLES = """
from torch.utils.data import DataLoader, Dataset
import time
class Points(Dataset):
    points = torch.randn(24, 4, generator=torch.Generator().manual_seed(7))
    def __len__(self):
        return 24
    def __getitem__(self, number):
        time.sleep(0.3 if number in (0, 13) else 0.0)
        return self.points[number]
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), 0.1)
loader = DataLoader(Points(), batch_size=2, num_workers=2, in_order=IN_ORDER, persistent_workers=True)
for epoch in range(2):
    for x in loader:
        optimizer.zero_grad()
        model(x).pow(2).mean().backward()
        optimizer.step()
"""


@pytest.mark.full
def test_batches_that_come_as_they_are_ready_keep_the_keys_of_their_samples(tmp_path):
    _, plain = train(tmp_path / "plain", SLOW_SAMPLES.replace("IN_ORDER", "True"))
    _, ready = train(tmp_path / "ready", SLOW_SAMPLES.replace("IN_ORDER", "False"))
    known = {key: row for update in plain.updates for key, row in zip(update.keys, update.rows, strict=True)}
    assert len(known) == 24 and keys(plain) != keys(ready) and sorted(keys(plain)) == sorted(keys(ready))
    assert all(known[key] == row for update in ready.updates for key, row in zip(update.keys, update.rows, strict=True))


@pytest.mark.full
def test_another_seed_is_another_training(tmp_path):
    _, plain = train(tmp_path / "plain", LOADER)
    _, other = train(tmp_path / "other", LOADER, TRAINFLASH_VARY="seed:1")
    assert plain.weights[0]["norm"] != pytest.approx(other.weights[0]["norm"], rel=1e-4)
    assert {row for update in plain.updates for row in update.rows} == {row for update in other.updates for row in update.rows}


SAVING = """
import os, threading
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
started = torch.load("a.pt")["step"] if os.path.exists("a.pt") else 0
for step in range(1, 13):
    optimizer.zero_grad()
    model(torch.randn(6, 4)).pow(2).mean().backward()
    optimizer.step()
    if step % 4 == 0:
        state = {"model": {name: value.clone() for name, value in model.state_dict().items()}, "step": step}
        torch.save(state, "a.tmp")
        os.replace("a.tmp", "a.pt")
    if step == 8:
        writer = threading.Thread(target=torch.save, args=(state, "b.pt"))
        writer.start()
        writer.join()
"""


@pytest.mark.full
def test_files_are_read_back_and_saves_of_other_threads_and_loads_are_seen(tmp_path):
    _, stream = train(tmp_path / "recorded", SAVING)
    assert [(line["n"], line.get("thread")) for line in stream.checkpoints] == [(4, None), (8, None), (8, "other"), (12, None)]
    assert sorted((line["n"], line["target"]) for line in stream.stored) == [(4, "a.pt"), (8, "a.pt"), (8, "b.pt"), (12, "a.pt")]
    assert {line["digest"] for line in stream.stored} == {line["digest"] for line in stream.checkpoints}
    assert all(line["current"] == line["live"] == 2 for line in stream.checkpoints)
    assert stream.loads == ()


FULL_DISK = """
import resource
resource.setrlimit(resource.RLIMIT_FSIZE, (6000, 6000))
"""


@pytest.mark.full
def test_a_full_disk_ends_the_record_and_never_the_program(tmp_path):
    output, stream = train(tmp_path / "full", FULL_DISK + ACCUMULATION)
    plain, whole = train(tmp_path / "plain", ACCUMULATION)
    assert output == plain
    assert whole.ended and not stream.ended
    found = compare(Record((whole,), True), Record((stream,), True))
    assert found.verdict == "inconclusive"
    assert "stops before the program does" in found.reasons[0]


WATCHED = """
import os
timed = os.environ["TRAINFLASH_CAPTURE"] == "timing" and os.environ.get("LAZY")
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for step in range(60):
    optimizer.zero_grad()
    loss = model(torch.randn(8, 4)[: 4 if timed else 8]).pow(2).mean()
    loss.backward()
    optimizer.step()
"""


@pytest.mark.full
def test_a_program_that_does_less_while_it_is_timed_is_found_out(tmp_path):
    seen = {}
    for name, extra in (
        ("recorded", {}),
        ("timed", {"TRAINFLASH_CAPTURE": "timing"}),
        ("lazy", {"TRAINFLASH_CAPTURE": "timing", "LAZY": "1"}),
    ):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "train.py").write_text(HEAD + WATCHED)
        (folder / "run").mkdir()
        ours = {"PYTHONPATH": str(PROBE), "TRAINFLASH_RUN": str(folder / "run"), "TRAINFLASH_OWN": str(folder)}
        start(folder, {**ours, "TRAINFLASH_CAPTURE": "fidelity", "TRAINFLASH_SAMPLE_HZ": "0", **extra})
        seen[name] = work.read(folder / "run")
    assert len(seen["timed"]) > 24
    honest = work.compare(seen["recorded"], seen["recorded"], [(seen["timed"], seen["timed"])], 1e-3)
    assert honest.ok, honest.evidence
    lazy = work.compare(seen["recorded"], seen["recorded"], [(seen["timed"], seen["lazy"])], 1e-3)
    assert "step 1: 8 samples when it is recorded, 4 when it is timed" in lazy.evidence


LOGGING = """
import logging
import tqdm
bar = tqdm.tqdm(total=6)
logger = logging.getLogger("run")
logger.setLevel("INFO")
logger.addHandler(logging.NullHandler())
of_torch = {"__name__": "torch._dynamo.convert", "logger": logging.getLogger("torch.convert")}
exec("def convert():\\n    logger.warning('compiling')", of_torch)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for step in range(6):
    model(torch.randn(9, 4)).mean().backward()
    optimizer.step()
    optimizer.zero_grad()
    bar.set_postfix(step=step)
    if step == 2:
        of_torch["convert"]()
    if step % 2 == 0:
        logger.info("step %d", step)
"""


@pytest.mark.full
def test_what_torch_itself_logs_and_a_progress_bar_are_no_lines_of_the_training(tmp_path):
    _, stream = train(tmp_path / "logging", LOGGING)
    assert [update.logs for update in stream.updates] == [0, 1, 0, 1, 0, 1]  # noted with the update that follows


def test_updates_by_lines_of_the_program_are_recorded(tmp_path):
    for name, losses in (("inline parts", 3), ("inline results", 1)):
        (tmp_path / name).mkdir()
        _, stream = recorded(tmp_path / name, name)
        assert [len(update.losses) for update in stream.updates] == [losses] * 6, name
        assert {update.optimizer_class for update in stream.updates} == {"Inline"}
        assert [update.samples for update in stream.updates] == [12] * 6
        assert all(update.step is not None for update in stream.updates) and len(stream.weights) >= 4
        assert len({line["digest"] for line in stream.weights}) == len(stream.weights)


@pytest.mark.full
def test_lines_that_update_otherwise_train_otherwise(tmp_path):
    _, old = train(tmp_path / "old", PROGRAMS["inline parts"])
    _, new = train(tmp_path / "new", PROGRAMS["inline parts"].replace("0.05", "0.06"))
    found = compare(Record((old,), True), Record((new,), True))
    assert found.verdict == "changed", found


def test_an_optimizer_that_updates_later_is_the_only_one(tmp_path):
    _, stream = train(tmp_path / "late", LATE)
    assert [(update.optimizer_class, update.optimizer) for update in stream.updates] == [("SGD", 0)] * 5
