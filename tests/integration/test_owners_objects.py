"""Programs whose objects, functions and files answer in ways of their own do under the probe what they do alone."""

from __future__ import annotations

import subprocess
import sys

import pytest
from probed import PROBE, environment

HEAD = """
import os, random, sys, time, weakref, gc
import torch, torch.nn.functional as F
from torch import nn
torch.manual_seed(0)
torch.set_num_threads(1)
def net(): return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
"""

OBJECTS = """
from collections.abc import Mapping
from torch.utils.data import DataLoader, Dataset
class Lazy(Mapping):
    "Makes what it is asked for anew."
    def __init__(self, x, y): self.kept = {"x": x, "y": y}
    def __getitem__(self, key): return self.kept[key] + 0.1 * torch.randn(8, 8) if key == "x" else self.kept[key]
    def __iter__(self): print("asked for its keys"); return iter(self.kept)
    def __len__(self): print("asked for its length"); return 2
class PutOff:
    @property
    def __class__(self): print("loaded"); return dict
    @property
    def __dict__(self): print("opened"); return {}
    def __getattr__(self, name): print("asked for", name); raise AttributeError(name)
BIG = PutOff()
class Index:
    def __init__(self, at): self.at = at
    def __repr__(self): raise RuntimeError("no repr")
    def __hash__(self): raise RuntimeError("no hash")
    def __eq__(self, other): raise RuntimeError("not comparable")
class Rows(Dataset):
    def __init__(self): self.rows, self.put_off = torch.randn(64, 8), PutOff()
    def __len__(self): print("asked for the length of the rows"); return 64
    def __getitem__(self, index):
        if index.at % 16 == 5: time.sleep(0.004)
        return self.rows[index.at]
class Batches(list):
    def __iter__(self): print("begun"); return super().__iter__()
def collate(rows, again=PutOff()): return Lazy(torch.stack(rows), torch.zeros(len(rows), dtype=torch.long))
model = net()
optimizer = torch.optim.SGD(model.parameters(), 0.05)
kept = []
for epoch in range(3):
    rows = Rows()
    kept.append(weakref.ref(rows))
    batches = Batches([[Index(8 * batch + at) for at in range(8)] for batch in range(8)])
    for batch in DataLoader(rows, batch_sampler=batches, collate_fn=collate):
        loss = F.cross_entropy(model(batch["x"]), batch["y"])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(loss.item().hex())
    del rows, batch
    gc.collect()
    print("alive:", sum(each() is not None for each in kept))
"""

FUNCTIONS = """
import inspect
GAIN = {F.relu: 1.41, torch.tanh: 1.6}
class Act(nn.Module):
    def __init__(self, act): super().__init__(); self.act = act; self.line = nn.Linear(8, 4)
    def forward(self, x): return self.act(self.line(x * GAIN[F.relu] if self.act is F.relu else x))
def get_batch(n: int, *, seed=0): return torch.randn(n, 8), torch.randint(0, 4, (n,))
def batches(n):
    while True:
        yield torch.randn(n, 8), torch.randint(0, 4, (n,))
def child():
    "What a forked child sees of tracing."
    read, write = os.pipe()
    if not os.fork():
        os.write(write, str(sys.gettrace()).encode())
        os._exit(0)
    os.wait()
    return os.read(read, 100).decode()
hits = 0
def note(frame, event, argument):
    global hits
    hits += frame.f_code is work.__code__
def work(): return [0]
model = Act(F.relu)
optimizer = torch.optim.SGD(model.parameters(), 0.05)
for step in range(40):
    made = batches(16)
    x, y = get_batch(16) if step < 24 else next(made)
    loss = F.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step < 6:
        print(child())
    if step == 18:
        sys.settrace(note)
    work()
    if step == 22:
        print(hits, sys.gettrace() is note)
        sys.settrace(None)
    print(loss.item().hex(), inspect.signature(get_batch), inspect.getsource(get_batch)[:14])
    print(type(made).__name__, inspect.isgeneratorfunction(batches))
"""

FILES = """
import tempfile
kept = []
model = net()
optimizer = torch.optim.SGD(model.parameters(), 0.05)
for step in range(120):
    if step in (5, 60):
        os.closerange(3, 2000)
        files = [tempfile.TemporaryFile() for _ in range(8)]
        kept.append(files)  # closed by number: when they go they would close what has their numbers
        pid = os.fork()
        if not pid:
            os._exit(sum(file.seek(0, 2) for file in files))
        print(os.waitpid(pid, 0)[1])
    loss = F.cross_entropy(model(torch.randn(16, 8)), torch.randint(0, 4, (16,)))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    time.sleep(0.02)
    print(loss.item().hex())
print([file.seek(0, 2) for file in files], sorted(file.fileno() for file in files))
sys.stdout.flush()
os._exit(0)
"""

SOURCES = {"objects": OBJECTS, "functions": FUNCTIONS, "files": FILES}


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """What each program prints without the probe."""
    known: dict[str, str] = {}

    def run(name: str) -> str:
        if name not in known:
            known[name] = start(tmp_path_factory.mktemp(name), name)
        return known[name]

    return run


def start(folder, name: str, **extra: str) -> str:
    path = folder / "program.py"
    path.write_text(HEAD + SOURCES[name])
    done = subprocess.run([sys.executable, path], env=environment(**extra), capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


def modes():
    for name, quick, slow in (
        ("objects", ("diagnose", "fidelity"), ("timing",)),
        ("functions", (), ("diagnose", "timing", "fidelity")),
        ("files", (), ("diagnose", "timing", "fidelity")),
    ):
        yield from (pytest.param(name, mode, id=f"{name}-{mode}") for mode in quick)
        yield from (pytest.param(name, mode, id=f"{name}-{mode}", marks=pytest.mark.full) for mode in slow)


@pytest.mark.parametrize(("name", "mode"), list(modes()))
def test_a_program_does_what_it_does_alone(name, mode, alone, tmp_path):
    run = tmp_path / "run"
    run.mkdir()
    ours = {"RUN": str(run), "OWN": str(tmp_path), "CAPTURE": mode, "SAMPLE_HZ": "200"}
    probed = start(tmp_path, name, PYTHONPATH=str(PROBE), **{f"TRAINFLASH_{key}": value for key, value in ours.items()})
    assert list(run.glob("facts-*")), "the probe was not there"
    assert probed == alone(name)
