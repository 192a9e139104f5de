"""State that is saved by other means than a plain torch.save(obj, path), and generators that nobody seeds, as the recorder sees them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from test_training_record import PROBE, start, train

from trainflash.fidelity import compare
from trainflash.fidelity.record import Record

PROGRAM = """
import multiprocessing, os, pickle, shutil, sys, numpy
def save():
    SAVES
model = nn.Linear(4, 3)
average = nn.Linear(4, 3).requires_grad_(False)
optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
seen = numpy.zeros(4)
for step in range(1, 10):
    optimizer.zero_grad()
    x = torch.randn(6, 4)
    loss = model(x).pow(2).mean()
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        for a, p in zip(average.parameters(), model.parameters()):
            a.lerp_(p, 0.3)
    seen += x.sum(0).numpy()
    print(loss.item().hex())
    if step % 3 == 0:
        save()
print(torch.rand(1).item().hex(), random.random().hex())
"""
STATE = '{"model": model.state_dict(), "optimizer": optimizer.state_dict(), "seen": seen}'
PLAIN = f"torch.save({STATE}, f'{{step}}.pt')"


def recorded(tmp_path, name, saves):
    output, stream = train(tmp_path / name, PROGRAM.replace("SAVES", saves.replace("\n", "\n    ")))
    assert stream.swallowed == {}
    return output, stream


def verdict(old, new):
    return compare(Record((old,), True), Record((new,), True))


@pytest.mark.full
def test_honest_ways_to_save_are_the_same_and_what_they_lose_is_found(tmp_path):
    output, plain = recorded(tmp_path, "plain", PLAIN)
    assert output == start(tmp_path / "plain", {})
    ways = {
        "keywords": PLAIN.replace("torch.save(", "torch.save(obj=").replace("f'", "f=f'"),
        "moved": PLAIN.replace("f'{step}.pt'", "'/dev/shm/trainflash-test-%d.pt' % os.getpid()")
        + "\nshutil.move('/dev/shm/trainflash-test-%d.pt' % os.getpid(), f'{step}.pt')",
        "forked": "multiprocessing.get_context('fork').Process(target=torch.save, args=(" + STATE + ", f'{step}.pt')).start()",
    }
    streams = {}
    for name, saves in ways.items():
        shown, streams[name] = recorded(tmp_path, name, saves)
        assert shown == output
        found = verdict(plain, streams[name])
        assert found.verdict == "same", (name, found.reasons)
        assert not [note for note in found.notes if "not seen" in note or "nobody" in note], (name, found.notes)
    _, lost = recorded(tmp_path, "lost", ways["keywords"].replace(', "optimizer": optimizer.state_dict()', ""))
    assert verdict(streams["keywords"], lost).changed == ("checkpoint",)
    stale = "global kept\nif step == 3:\n    kept = " + STATE.replace("seen}", "seen.copy()}") + "\ntorch.save(kept, f'{step}.pt')"
    _, hoisted = recorded(tmp_path, "hoisted", stale)
    found = verdict(plain, hoisted)
    assert found.changed == ("checkpoint",)
    assert "seen is saved with other values" in found.reasons[0]


@pytest.mark.full
def test_state_that_numpy_or_pickle_writes_is_a_checkpoint(tmp_path):
    saves = (
        "numpy.savez('average.npz', *[each.numpy() for each in average.parameters()], took=os.getpid())\n"
        "with open('all.pkl', 'wb') as file:\n    pickle.dump({'model': model}, file)\n"
        "with open('own.bin', 'wb') as file:\n    file.write(b''.join(each.detach().numpy().tobytes() for each in model.parameters()))"
    )
    output, plain = recorded(tmp_path, "plain", saves)
    assert output == start(tmp_path / "plain", {})
    assert [line["target"] for line in plain.checkpoints] == ["average.npz", "all.pkl"] * 3
    assert plain.written == ("own.bin",)
    _, again = recorded(tmp_path, "again", saves)
    assert verdict(plain, again).verdict == "same", verdict(plain, again).reasons  # a setting beside the arrays is none of the training
    assert any("own.bin" in note for note in verdict(plain, again).notes)
    live = saves.replace("[each.numpy() for each in average", "[each.detach().numpy() for each in model")
    _, broken = recorded(tmp_path, "broken", live)
    assert verdict(plain, broken).changed == ("checkpoint",)


GENERATORS = """
import os, random, sys, tempfile
import numpy
from trainflash_probe import seeding
seeding.own_generators()
print(numpy.random.default_rng().integers(1 << 40), numpy.random.RandomState().randint(1 << 30), random.Random().random())
print(numpy.random.default_rng().integers(1 << 40), numpy.random.default_rng(3).integers(1 << 40), random.Random(3).random())
child = os.fork()
if not child:
    print(numpy.random.default_rng().integers(1 << 40), flush=True)
    os._exit(0)
os.waitpid(child, 0)
print(numpy.random.default_rng().integers(1 << 40), flush=True)
print(next(tempfile._RandomNameSequence()), file=sys.stderr)
"""


def draws(folder: Path, seed: str, **more: str) -> tuple[list[str], str]:
    environment = {**os.environ, "PYTHONPATH": str(PROBE), "TRAINFLASH_SEED": seed, "TRAINFLASH_OWN": str(folder), **more}
    program = folder / "draws.py"
    program.write_text(GENERATORS)
    done = subprocess.run([sys.executable, "-u", program], env=environment, capture_output=True, text=True, check=True, timeout=120)
    return done.stdout.split(), done.stderr


def test_generators_without_a_seed_get_one_that_is_alike_in_each_run(tmp_path):
    first, name = draws(tmp_path, "5")
    again, other_name = draws(tmp_path, "5")
    assert first == again
    assert len(set(first)) == len(first), "each generator and each process has numbers of its own"
    assert name != other_name, "names of temporary files are drawn as ever"
    for other in (draws(tmp_path, "6")[0], draws(tmp_path, "5", TRAINFLASH_VARY="order:1")[0]):
        assert not set(other) & (set(first) - set(first[4:6]))
        assert other[4:6] == first[4:6], "a seed of the program's own is kept"


CONTENTS = """
import json
import sys
import torch, numpy
from trainflash_probe.record import contents
model = torch.nn.Linear(2, 2)
def of(obj):
    seen = contents.checkpoint(obj, {})
    print(json.dumps([seen["keys"], seen["digest"], seen["values"], seen["counts"]]))
of({"model": model, "epoch": 3, "time": 1.5, "list": [1.0, {"a": 2}], "array": numpy.arange(3.0)})
of({"model": model.state_dict(), "epoch": 4, "time": 2.5, "list": [1.0, {"a": 3}], "array": numpy.arange(4.0)})
of({"optimizer": torch.optim.SGD([{"params": [each]} for each in model.parameters()], 0.1).state_dict()})
of({"optimizer": torch.optim.SGD(model.parameters(), 0.1, foreach=True).state_dict()})
of({"optimizer": torch.optim.SGD(model.parameters(), 0.2)})
of(torch.jit.script(model))
"""


def test_contents_are_the_tensors_and_what_lies_in_lists_and_arrays(tmp_path):
    program = tmp_path / "contents.py"
    program.write_text(CONTENTS)
    environment = {**os.environ, "PYTHONPATH": str(PROBE)}
    done = subprocess.run([sys.executable, program], env=environment, capture_output=True, text=True, check=True, timeout=120)
    whole, state, grouped, one, other, scripted = (json.loads(line) for line in done.stdout.splitlines())
    assert whole[:2] == state[:2] and whole[1] == scripted[1], "a module is what its state is"
    assert set(whole[2]) == {"list", "array"} and whole[3] == {"epoch": 3}
    assert all(whole[2][name][0] != state[2][name][0] for name in ("list", "array"))
    assert grouped[2] == one[2] != other[2], "settings, however the parameters are grouped, and not how they are computed"


CALLBACKS = """
about = {"best_model_path": f"EVERY-{step}.ckpt", "dirpath": ".", "best_k_models": {f"EVERY-{step}.ckpt": loss.detach()}}
stops = {"patience": 3, "best_score": loss.detach()}
torch.save({"model": model.state_dict(), "callbacks": {"ModelCheckpoint{'every': EVERY}": about, "EarlyStopping{}": stops}}, f'{step}.pt')
"""


@pytest.mark.full
def test_what_a_checkpoint_says_of_those_before_it_is_no_difference(tmp_path):
    """Lightning's `ModelCheckpoint` keeps the paths and scores of its files in each of them, under a name that has its settings in it."""
    _, often = recorded(tmp_path, "often", CALLBACKS.replace("EVERY", "2"))
    _, seldom = recorded(tmp_path, "seldom", CALLBACKS.replace("EVERY", "100"))
    assert verdict(often, seldom).verdict == "same"
    _, without = recorded(tmp_path, "without", CALLBACKS.replace("EVERY", "2").replace(', "EarlyStopping{}": stops', ""))
    refused = verdict(often, without)
    assert refused.verdict == "changed" and "EarlyStopping" in str(refused.checks)


EVALUATED = """
if step in (EVALUATED):
    torch.randint(0, 99, ())  # as a loader does that goes through its samples
torch.save({"model": model.state_dict(), "rng": torch.get_rng_state(), "unused": UNUSED}, f'{step}.pt')
"""


def test_evaluating_less_often_leaves_another_state_of_the_generator(tmp_path):
    """The loop draws its samples from a generator of its own, so that the training is bitwise the same."""
    runs = {}
    for name, steps, unused in (("often", "3, 6, 9", "0"), ("seldom", "9,", "0"), ("other", "9,", "torch.tensor(step)")):
        saves = EVALUATED.replace("EVALUATED", steps).replace("UNUSED", unused)
        text = PROGRAM.replace("torch.randn(6, 4)", "torch.randn(6, 4, generator=own)").replace("SAVES", saves.replace("\n", "\n    "))
        _, stream = train(tmp_path / name, text.replace("seen = ", "own = torch.Generator()\nseen = "))
        runs[name] = Record((stream,), True)

    def contents(candidate, agreed):
        found = compare(runs["often"], runs[candidate], agreed=frozenset(agreed))
        return next(check.ok for check in found.checks if check.name == "checkpoint contents")

    assert contents("seldom", ["cadence"]) and contents("seldom", []) is False
    assert contents("other", ["cadence"]) is False
