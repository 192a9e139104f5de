"""Every kind of edit but the sources of values: caches, decorators, intervals, debugging aids, threads, optimizers."""

from __future__ import annotations

import dataclasses
import pickle
import sys
import textwrap

import numpy as np
import pytest
import torch
from knob_runs import candidate_here
from knob_scenes import GB, activity, added, finding, loader, program, removed, repeated, setting, summary

from trainflash.errors import UsageError
from trainflash.schema import Location, Threads


def memo(tmp_path, source, qualname, *, memory=8 * GB, loaders=(), nth=0, **changes):
    made = program(tmp_path, train_py=textwrap.dedent(source).lstrip("\n"))
    at = made.line("train.py", f"def {qualname.split('.')[-1]}(", nth)
    run = summary(repeated=(repeated(at, qualname, **changes),), loaders=loaders)
    return made, made.propose("memoize_function", run, findings=[finding("repeated_work", at)], memory=memory)


BASIN = """
import torch
from dataclasses import dataclass


lazily = property


@dataclass
class Basin:
    metres: torch.Tensor
    order: int = 2

    @lazily
    def near(self):
        return torch.exp(-self.metres / self.order)
"""


KEEPS = """
import torch


class Family:
    def __init__(self, weight, scales):
        self.weight, self.scales = weight, scales
        self._kept = None

    @property
    def operators(self):
        self._kept = torch.stack([torch.linalg.matrix_exp(-t * self.weight) for t in self.scales])
        return self._kept
"""


def test_a_property_that_sets_what_only_it_reads_is_kept(tmp_path):
    _, candidate = memo(tmp_path, KEEPS, "Family.operators")
    assert added(candidate) == ["import functools", "    @functools.cache"]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("return self._kept", "return self._kept\n\n    def last(self):\n        return self._kept"),
        ("self._kept = torch", "old = self._kept\n        self._kept = torch"),
        ("self._kept = None", "self._kept = weight"),
        ("        self._kept = torch", "        if self.scales:\n            self._kept = torch"),
        ("self._kept = torch.stack(", "self._kept = self._kept or torch.stack("),
        ("class Family:", "class Family:\n    _kept = 0"),
        ("class Family:", "class Family(torch.nn.Module):"),
        ("import torch", "import torch\n\nheld = vars(torch)"),
    ],
    ids=[
        *("read elsewhere", "read before", "begun with something", "not always set", "made of itself", "an attribute of the class"),
        *("a network", "attributes by other names"),
    ],
)
def test_what_others_see_set_anew_each_time_is_not_kept(tmp_path, old, new):
    with pytest.raises(UsageError, match="it changes its object"):
        memo(tmp_path, KEEPS.replace(old, new), "Family.operators")


def test_a_property_of_objects_that_are_no_keys_keeps_its_result_in_them(tmp_path):
    made, candidate = memo(tmp_path, BASIN, "Basin.near", hashable=False)
    assert (removed(candidate), added(candidate)) == (["    @lazily"], ["import functools", "    @functools.cached_property"])
    made.apply(candidate)
    names: dict = {}
    exec(made.read("train.py"), names)
    basin, other = names["Basin"](torch.arange(3.0)), names["Basin"](torch.zeros(3))
    assert (
        basin.near is basin.near and torch.equal(basin.near, torch.exp(-torch.arange(3.0) / 2)) and torch.equal(other.near, torch.ones(3))
    )


@pytest.mark.parametrize(
    ("text", "instead", "reason"),
    [
        ("@dataclass\n", "@dataclass(slots=True)\n", "cannot be keys|not hashable"),
        ("    order: int = 2\n", "    order: int = 2\n\n    def move(self):\n        self.metres = self.metres + 1\n", "metres"),
        (
            "/ self.order)\n",
            "/ self.order)\n\n    @near.setter\n    def near(self, value):\n        self.metres = value\n",
            "set or deleted",
        ),
    ],
)
def test_a_property_that_must_be_asked_again_is_not_kept(tmp_path, text, instead, reason):
    with pytest.raises(UsageError, match=reason):
        memo(tmp_path, BASIN.replace(text, instead), "Basin.near", hashable=False)


def test_cache_on_a_function_with_its_import(tmp_path):
    source = '''
    """Doc."""
    from __future__ import annotations

    import argparse
    import torch

    # reads a split
    def load_split(name, length):
        return [ord(c) for c in open(name).read()][:length]
    '''
    made, candidate = memo(tmp_path, source, "load_split")
    assert added(candidate) == ["import functools", "@functools.lru_cache(maxsize=None, typed=True)"]
    assert candidate.value == "functools.lru_cache(maxsize=None, typed=True) on load_split"
    made.apply(candidate)
    text = made.read("train.py")
    assert text.index("__future__") < text.index("argparse") < text.index("functools") < text.index("import torch")
    with pytest.raises(UsageError, match="cached already"):
        at = made.line("train.py", "def load_split(")
        made.propose("memoize_function", summary(repeated=(repeated(at, "load_split"),)))


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        ("from functools import lru_cache, partial\n", ["@lru_cache(maxsize=None, typed=True)"]),
        ("import functools as ft\n", ["@ft.lru_cache(maxsize=None, typed=True)"]),
        ("import functools\n", ["@functools.lru_cache(maxsize=None, typed=True)"]),
        ("#!/usr/bin/env python\n# -*- coding: utf-8 -*-\n", ["import functools", "", "@functools.lru_cache(maxsize=None, typed=True)"]),
        ('"""Doc."""\n', ["", "import functools", "@functools.lru_cache(maxsize=None, typed=True)"]),
        ("from torch import nn\n", ["import functools", "@functools.lru_cache(maxsize=None, typed=True)"]),
    ],
)
def test_import_is_added_once_and_in_its_place(tmp_path, head, expected):
    made, candidate = memo(tmp_path, head + "def f(a):\n    return a * 2\n", "f")
    assert added(candidate) == expected
    made.apply(candidate)


DATASET = """
import torch
from torch.utils.data import Dataset


class Digits(Dataset):
    def __init__(self, images):
        self.images = images

    def __len__(self):
        return len(self.images)

    @torch.no_grad()
    def __getitem__(self, index):
        return torch.from_numpy(self._prepare(index)), 0

    def _prepare(self, index):
        return self.images[index] ** 2
"""


def dataset_loader(**changes):
    return loader(dataset_location=Location("train.py", 13), **changes)


def test_what_is_changed_before_the_function_exists_does_not_change_it(tmp_path):
    source = """import numpy as np

values = np.ones((9, 3))
values[:, 1] += 4


def stats():
    return values.mean(axis=0), values.std(axis=0)


for step in range(9):
    mean, std = stats()
"""
    made = program(tmp_path, train_py=source)
    run = summary(repeated=(repeated(made.line("train.py", "def stats"), "stats", distinct=1),))
    assert added(made.propose("memoize_function", run)) == ["import functools", "@functools.cache"]
    seldom = dataclasses.replace(run, repeated=(dataclasses.replace(run.repeated[0], share=0.0004),))
    _, refused, _ = made.plan(seldom, finding("input_cpu", made.line("train.py", "for step"), ["memoize_function"]))
    assert any("what functions repeat takes 0.04% of the time" in each.reason for each in refused)
    later = source.replace("for step in range(9):\n", "for step in range(9):\n    values[0] += 1\n")
    (tmp_path / "train.py").write_text(later)
    with pytest.raises(UsageError, match="it reads what is changed"):
        made.propose("memoize_function", run)


def test_a_tensor_that_inference_mode_may_make_first_is_not_kept(tmp_path):
    source = """import torch


def rope(length, dim):
    return torch.outer(torch.arange(length), 1 / 10000 ** (torch.arange(dim) / dim)).cos()


@torch.MODE()
def evaluate(model):
    return model(rope(8, 4))
"""
    (tmp_path / "train.py").write_text("")
    for mode in ("no_grad", "inference_mode"):
        made = program(tmp_path, train_py=source.replace("MODE", mode))
        run = summary(repeated=(repeated(made.line("train.py", "def rope"), "rope", distinct=1),))
        if mode == "no_grad":
            assert "@functools.lru_cache(maxsize=None, typed=True)" in added(made.propose("memoize_function", run))
        else:
            with pytest.raises(UsageError, match="made under inference_mode"):
                made.propose("memoize_function", run)


def test_the_collate_function_that_the_run_saw_is_narrowed_whoever_makes_the_loader(tmp_path):
    source = """import torch
from transformers import Trainer


class PadToMax:
    def __init__(self, width=512):
        self.width = width

    def __call__(self, rows):
        ids = torch.zeros(len(rows), self.width, dtype=torch.long)
        for k, row in enumerate(rows):
            ids[k, : len(row)] = torch.tensor(row)
        return ids


Trainer(net, args, data_collator=PadToMax()).train()
"""
    made = program(tmp_path, train_py=source)
    collate = made.line("train.py", "def __call__")
    train = loader("train", made.line("train.py", ".train()"), collate_location=collate)
    candidate = made.propose("pad_to_longest", summary(loaders=(train,), padding_share=0.8))
    assert added(candidate) == ["        ids = torch.zeros(len(rows), max(len(row) for row in rows), dtype=torch.long)"]
    with pytest.raises(UsageError, match="only batches of like length"):
        made.propose("pad_to_longest", summary(loaders=(train,), padding_share=0.8, common_padding_share=0.02))


def test_cache_on_the_item_function_of_a_data_set(tmp_path):
    made, candidate = memo(tmp_path, DATASET, "Digits.__getitem__", loaders=(dataset_loader(),), result_bytes=3100)
    assert added(candidate) == ["import functools", "    @functools.cache"]
    assert "about 1000 results will be kept, 4 MB" in candidate.why
    made.apply(candidate)
    assert "    @functools.cache\n    @torch.no_grad()\n    def __getitem__" in made.read("train.py")


@pytest.mark.parametrize(
    ("parameters", "decorator"),
    [
        ("n, value", "functools.lru_cache(maxsize=None, typed=True)"),
        ("n: int, value: float = 0", "functools.lru_cache(maxsize=None, typed=True)"),
        ("n: str, value: str", "functools.cache"),
        ("", "functools.cache"),
    ],
)
def test_numbers_that_are_equal_but_of_two_types_are_told_apart(tmp_path, parameters, decorator):
    source = f"import torch\n\n\ndef filled({parameters}):\n    return torch.full((4,), value)\n\n\nfilled(4, 0)\nfilled(4, 0.0)\n"
    assert added(memo(tmp_path, source, "filled")[1]) == ["import functools", f"@{decorator}"]


@pytest.mark.parametrize("decorator", ["property", "staticmethod", "remembered"])
def test_a_cache_goes_under_what_binds_a_function(tmp_path, decorator):
    source = f"remembered = property\nclass A:\n    @{decorator}\n    def f(self):\n        return 1\nprint(A.f)\n"
    made, candidate = memo(tmp_path, source, "A.f")
    made.apply(candidate)
    cache = "lru_cache(maxsize=None, typed=True)" if decorator == "staticmethod" else "cache"  # what is no object may be of any type
    assert f"    @{decorator}\n    @functools.{cache}\n    def f(self)" in made.read("train.py")


def test_many_results_get_a_bound_and_too_many_are_refused(tmp_path):
    many = (dataset_loader(dataset_len=60000),)
    _, candidate = memo(tmp_path, DATASET, "Digits.__getitem__", loaders=many)
    assert added(candidate)[1] == "    @functools.lru_cache(maxsize=65536)"
    folder = tmp_path / "large"
    folder.mkdir()
    with pytest.raises(UsageError, match=r"60000 results of 4 KB need 240 MB, more than 25% of the memory"):
        memo(folder, DATASET, "Digits.__getitem__", loaders=many, memory=GB // 2)


def test_cached_methods_still_pickle_for_spawned_workers(tmp_path, monkeypatch):
    source = DATASET.replace("import torch\nfrom torch.utils.data import Dataset\n", "class Dataset: pass\n").replace(
        "@torch.no_grad()", ""
    )
    source = source.replace("torch.from_numpy(self._prepare(index))", "self._prepare(index)")
    made, candidate = memo(tmp_path, source, "Digits.__getitem__")
    made.apply(candidate)
    (tmp_path / "cached_digits.py").write_bytes((tmp_path / "train.py").read_bytes())
    monkeypatch.syspath_prepend(str(tmp_path))
    import cached_digits

    data = cached_digits.Digits([1, 2, 3])
    assert data[1] is data[1]
    again = pickle.loads(pickle.dumps(data))
    assert again[2] == (9, 0)
    del sys.modules["cached_digits"]


@pytest.mark.parametrize(
    ("source", "name", "reason"),
    [
        ("def f(a):\n    yield a\n", "f", "generator"),
        ("async def f(a):\n    return a\n", "f", "asynchronous"),
        ("def f(a):\n    return (x for x in a)\n", "f", "iterator"),
        ("def f(a):\n    return open(a)\n", "f", "iterator or a file"),
        ("class A:\n    @classmethod\n    def f(cls):\n        return cls.n\n", "A.f", "decorated by classmethod"),
        (
            "class A:\n    @property\n    def f(self):\n        return 1\n    @f.setter\n    def f(self, v):\n        pass\n",
            "A.f",
            "can be set",
        ),
        ("class A:\n    @property\n    def f(self):\n        return [1]\na = A()\na.f[0] = 2\n", "A.f", "result is changed"),
        ("class A:\n    @property\n    def f(self):\n        return [1]\na = A()\na.f.append(2)\n", "A.f", "result is changed"),
        ("class A:\n    @property\n    def f(self):\n        return [1]\nx = A().f\nx += [3]\n", "A.f", "result is changed"),
        ("kept = print or property\nclass A:\n    @kept\n    def f(self):\n        return 1\n", "A.f", "decorated by kept"),
        ("import random\ndef f(a):\n    return a + random.random()\n", "f", "draws random numbers"),
        ("import numpy as np\ndef g(a):\n    return a + np.random.rand()\ndef f(a):\n    return g(a)\n", "f", "draws random numbers"),
        ("import torch\ndef f(a):\n    return a + torch.randn(3)\n", "f", "draws random numbers"),
        ("import subprocess\ndef f():\n    return subprocess.run(['uptime']).stdout\n", "f", "or the time"),
        ("import os\ndef f():\n    return {'load': os.getloadavg()[0]}\n", "f", "or the time"),
        ("import numpy as np\ndef f(a):\n    return a + np.random.default_rng().random()\n", "f", "draws random numbers"),
        ("import numpy as np\ndef f(a):\n    rng = np.random.default_rng(None)\n    return rng.normal(a)\n", "f", "draws random numbers"),
        (
            "import random\ndef f(a, rng=None):\n    rng = rng or random.Random(1)\n    return a * rng.random()\n",
            "f",
            "draws random numbers",
        ),
        ("import torch\nG = torch.Generator().manual_seed(1)\ndef f(a):\n    return a + torch.rand(3, generator=G)\n", "f", "draws random"),
        ("N = 0\ndef f(a):\n    global N\n    N += 1\n    return a\n", "f", "variable outside itself"),
        ("N = 0\ndef s():\n    global N\n    N = 1\ndef f(a):\n    return a + N\n", "f", "another function sets"),
        ("class A:\n    def f(self, a):\n        self.n = a\n        return a\n", "A.f", "changes its object"),
        ("class A:\n    def f(self, a):\n        self.seen.append(a)\n        return a\n", "A.f", "changes its object"),
        (
            "class A:\n    def set_epoch(self, e):\n        self.epoch = e\n    def f(self, a):\n        return a + self.epoch\n",
            "A.f",
            "set again",
        ),
        ("class A:\n    def f(self, a):\n        return a + self.scale\nx = A()\nx.scale = 3\n", "A.f", "set again"),
        ("class A:\n    def __eq__(self, o):\n        return True\n    def f(self, a):\n        return a\n", "A.f", "not hashable"),
        (
            "from dataclasses import dataclass\n@dataclass\nclass A:\n    n: int\n    def f(self, a):\n        return a\n",
            "A.f",
            "not hashable",
        ),
        ("class A(list):\n    def f(self, a):\n        return a\n", "A.f", "not hashable"),
        ("import functools\n@functools.lru_cache(maxsize=2)\ndef f(a):\n    return a\n", "f", "cached already"),
        ("STATE = {}\ndef f(a):\n    STATE['n'] = a\n    return a\n", "f", "changes what it is given"),
        ("def f(a):\n    a.append(1)\n    return a\n", "f", "changes what it is given"),
        ("import torch\ndef f(a):\n    a.add_(1)\n    return a\n", "f", "changes what it is given"),
        ("def f(a):\n    print(a)\n    return a\n", "f", "it writes"),
        ("ROWS = []\ndef f(a):\n    return ROWS[a]\nfor i in range(3):\n    ROWS.append(f(0))\n", "f", "reads what is changed"),
        ("def f(a):\n    return [a]\nrow = f(1)\nrow += [2]\n", "f", "result is changed"),
        ("import random\ndef f(a):\n    return [a]\nrow = f(1)\nrandom.shuffle(row)\n", "f", "result is changed"),
    ],
)
def test_functions_that_must_not_be_cached(tmp_path, source, name, reason):
    with pytest.raises(UsageError, match=reason):
        memo(tmp_path, source, name)


@pytest.mark.parametrize(
    "body",
    [
        "    return np.random.default_rng(a).random(5)\n",
        "    rng = np.random.default_rng([a, 3])\n    fade = rng.uniform(0.1, 0.2)\n    return rng.standard_normal(4) * fade\n",
        "    draw = random.Random(a)\n    return [draw.gauss(0, 1) for _ in range(9)]\n",
        "    g = torch.Generator().manual_seed(a)\n    return torch.randn(3, generator=g) + torch.randint(0, 9, (3,), generator=g)\n",
    ],
)
def test_random_numbers_from_a_seed_of_their_own_are_the_same_each_time(tmp_path, body):
    source = f"import random\nimport numpy as np\nimport torch\ndef f(a):\n{body}"
    assert added(memo(tmp_path, source, "f")[1]) == ["import functools", "@functools.lru_cache(maxsize=None, typed=True)"]


def test_in_place_behind_a_conversion_writes_into_the_copy(tmp_path):
    source = "import torch\nROWS = []\ndef f(i):\n    return torch.from_numpy(ROWS[i]).float(){}.div_(255)\n"
    assert added(memo(tmp_path, source.format(""), "f")[1]) == ["import functools", "@functools.lru_cache(maxsize=None, typed=True)"]
    (other := tmp_path / "other").mkdir()
    with pytest.raises(UsageError, match="changes what it is given"):
        memo(other, source.format(".view(-1)"), "f")


LENS = """import torch

CALLS = []


class Camera:
    pass


def grid(camera, size):
    x = torch.arange(float(size))
    for k in camera["k"]:
        x = x / (1 + k * x * x)
    return x * camera["focal"]


def straighten(frame, camera):
    return frame * grid(camera, frame.shape[-1])
"""


def test_results_are_kept_by_what_dictionaries_and_lists_hold(tmp_path):
    made, candidate = memo(tmp_path, LENS, "grid", hashable=False, containers=True, distinct=1)
    assert [added(candidate)[0], added(candidate)[-1]] == ["import functools", "@kept_by_contents"] and not removed(candidate)
    made.apply(candidate)
    names: dict = {}
    exec(made.read("train.py"), names)
    grid, camera = names["grid"], {"focal": 2.0, "k": [0.1, 0.2]}
    kept = grid(camera, 4)
    assert grid({"focal": 2.0, "k": [0.1, 0.2]}, 4) is kept and torch.equal(kept, grid.__wrapped__(camera, 4))
    camera["k"][1] = 0.3  # the same dictionary, with other contents
    for others in [
        (camera, 4),
        ({"focal": 2, "k": [0.1, 0.2]}, 4),
        ({"focal": 2.0, "k": (0.1, 0.2)}, 4),
        ({"focal": 2.0, "k": [0.1, 0.2]}, 5),
    ]:
        assert grid(*others) is not kept and torch.equal(grid(*others), grid.__wrapped__(*others))


MEL = """import numpy as np

WINDOW = np.hanning(8)


def mel(wave, floor=1e-6):
    wave = np.append(wave[:1], wave[1:] - 0.97 * wave[:-1])
    return np.log(np.abs(np.fft.rfft(wave * WINDOW)) + floor)
"""


def test_results_are_kept_by_what_arrays_hold(tmp_path):
    made, candidate = memo(tmp_path, MEL, "mel", hashable=False, containers=True, distinct=500, mean_ms=2.0)
    assert added(candidate)[:2] == ["import functools", "import hashlib"] and added(candidate)[-1] == "@kept_by_contents"
    made.apply(candidate)
    names: dict = {}
    exec(made.read("train.py"), names)
    mel, wave = names["mel"], np.linspace(0, 1, 8)
    kept = mel(wave)
    assert mel(wave.copy()) is kept and np.array_equal(kept, mel.__wrapped__(wave))
    wave[3] += 1e-9  # the same array, with other contents
    for others in [(wave,), (np.linspace(0, 1, 8), 1e-5), (np.linspace(0, 1, 8).astype(np.float32),), (np.linspace(0, 2, 8)[::-1],)]:
        assert mel(*others) is not kept and np.array_equal(mel(*others), mel.__wrapped__(*others))


@pytest.mark.parametrize("statement", ["np.append(wave, 1)", "np.insert(wave, 0, 1)", "np.sort(wave)"])
def test_functions_of_a_library_are_no_methods_that_change(tmp_path, statement):
    memo(tmp_path, f"import numpy as np\ndef f(wave):\n    return {statement}\n", "f")


@pytest.mark.parametrize("statement", ["np.put(wave, 0, 1)", "np.copyto(wave, 1)", "wave.sort()", "np.random.shuffle(wave)"])
def test_functions_of_a_library_that_write_into_what_they_get_do(tmp_path, statement):
    with pytest.raises(UsageError):
        memo(tmp_path, f"import numpy as np\ndef f(wave):\n    {statement}\n    return wave\n", "f")


@pytest.mark.parametrize(
    ("source", "work", "reason"),
    [
        (LENS, {"containers": False}, "cannot be keys"),
        (LENS, {"mean_ms": 0.05}, "takes as long as its work"),
        (LENS, {"distinct": 500}, "500 results"),
        (MEL.replace("mel(", "grid("), {"distinct": 500, "mean_ms": 0.2}, "500 results"),
        (LENS.replace("def grid", "@torch.no_grad()\ndef grid"), {}, "decorators"),
        (LENS.replace("class Camera", "def kept_by_contents(f):\n    return f\n\n\nclass Camera"), {}, "is used already"),
        (LENS.replace("    x = torch.arange", '    camera["focal"] += 1\n    x = torch.arange'), {}, "changes what it is given|writes"),
        (LENS.replace("    return x * c", "    CALLS.append(x)\n    return x * c"), {}, "CALLS"),
    ],
    ids=["no containers", "cheap", "many", "arrays, cheap", "decorated", "name", "changes its argument", "effect"],
)
def test_what_cannot_be_kept_by_its_contents_is_refused(tmp_path, source, work, reason):
    with pytest.raises(UsageError, match=reason):
        memo(tmp_path, source, "grid", **{"hashable": False, "containers": True, "distinct": 1, **work})


def test_unhashable_arguments_and_moved_functions_are_refused(tmp_path):
    with pytest.raises(UsageError, match="cannot be keys"):
        memo(tmp_path, "def f(a):\n    return a\n", "f", hashable=False)
    folder = tmp_path / "moved"
    folder.mkdir()
    made = program(folder, train_py="def f(a):\n    return a\n")
    with pytest.raises(UsageError, match="the source has changed since the run"):
        made.propose("memoize_function", summary(repeated=(repeated(Location("train.py", 9), "f"),)))


CADENCE = """
import argparse
import torch

LOG_EVERY = 10
parser = argparse.ArgumentParser()
parser.add_argument("--save-interval", type=int, default=100)
args = parser.parse_args()


def save(step):
    torch.save({}, "last.pt")


for step in range(1000):
    if step % LOG_EVERY == 0 and step > 0:
        print("loss", step)
    if (step + 1) % args.save_interval == 0:
        save(step)
    if not step % 50:
        evaluate()
"""


SAVE = 'parser.add_argument("--save-interval", type=int, default=100)'


@pytest.mark.parametrize(
    ("knob", "phase", "text", "old", "new", "value"),
    [
        ("logging_cadence", "Log", "print(", "LOG_EVERY = 10", "LOG_EVERY = 100", "100"),
        ("checkpoint_cadence", "Ckpt", "torch.save", SAVE, SAVE.replace("100", "500"), "500"),
        ("eval_cadence", "Eval", "evaluate()", "    if not step % 50:", "    if not step % 250:", "250"),
    ],
)  # fmt: skip
def test_intervals(tmp_path, knob, phase, text, old, new, value):
    made = program(tmp_path, train_py=CADENCE)
    run = summary(activities=(activity(phase, made.line("train.py", text)),))
    candidate = made.propose(knob, run)
    assert (removed(candidate), added(candidate), candidate.value, candidate.risk) == ([old], [new], value, "cadence")
    made.apply(candidate)


def test_shared_interval_is_multiplied_where_it_is_used(tmp_path):
    source = CADENCE.replace("if not step % 50", "if step % LOG_EVERY == 0")
    made = program(tmp_path, train_py=source)
    candidate = made.propose("eval_cadence", summary(activities=(activity("Eval", made.line("train.py", "evaluate()")),)))
    assert added(candidate) == ["    if step % (LOG_EVERY * 5) == 0:"]
    made.apply(candidate)


def test_interval_without_a_condition_is_refused(tmp_path):
    made = program(tmp_path, train_py="for step in range(9):\n    print(step)\n")
    with pytest.raises(UsageError, match="no condition of the form"):
        made.propose("logging_cadence", summary(activities=(activity("Log", Location("train.py", 2)),)))


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("import torch\ntorch.autograd.set_detect_anomaly(True)\n", ["torch.autograd.set_detect_anomaly(False)"]),
        ("import torch\nwith torch.autograd.set_detect_anomaly(mode=True, check_nan=False):\n    pass\n",
         ["with torch.autograd.set_detect_anomaly(mode=False, check_nan=False):"]),
        ("from torch import autograd\nDEBUG = True\nautograd.set_detect_anomaly(DEBUG)\n", ["DEBUG = False"]),
        ("from torch import autograd\nDEBUG = True\nautograd.set_detect_anomaly(DEBUG)\nif DEBUG:\n    check()\n",
         ["autograd.set_detect_anomaly(False)"]),
        ("import torch\nwith torch.autograd.detect_anomaly():\n    pass\n", ["with torch.autograd.set_detect_anomaly(False):"]),
    ],
)  # fmt: skip
def test_anomaly_mode_off(tmp_path, source, expected):
    made = program(tmp_path, train_py=source)
    at = made.line("train.py", "detect_anomaly(")
    candidate = made.propose("anomaly_off", summary(settings=(setting("anomaly_mode", at),)), findings=[finding("debug_api", at)])
    assert added(candidate) == expected
    made.apply(candidate)
    with pytest.raises(UsageError, match=r"already|no call|is False"):
        made.propose("anomaly_off", summary(settings=(setting("anomaly_mode", at),)), findings=[finding("debug_api", at)])


def test_threads_set_or_inserted(tmp_path):
    made = program(tmp_path, train_py="import torch\n\ntorch.set_num_threads(16)\n")
    threads = Threads(2.0, 16, 1, None, 9.0, 9.0, 0.5, Location("train.py", 3))
    candidate = made.propose("torch_threads", summary(threads=threads))
    assert (added(candidate), candidate.risk) == (["torch.set_num_threads(2)"], "close")
    folder = tmp_path / "insert"
    folder.mkdir()
    made = program(folder, train_py='"""Doc."""\nimport os\nimport torch as th\nfrom torch import nn\n\nmodel = 1\n')
    candidate = made.propose("torch_threads", summary(threads=dataclasses.replace(threads, set_at=None)), value="1")
    made.apply(candidate)
    assert (
        made.read("train.py") == '"""Doc."""\nimport os\nimport torch as th\nfrom torch import nn\n\nth.set_num_threads(1)\n\nmodel = 1\n'
    )


@pytest.mark.parametrize(
    ("knob", "source", "expected"),
    [
        ("optimizer_foreach", "from torch.optim import AdamW\nopt = AdamW(p, lr=1e-3)\n", ["opt = AdamW(p, lr=1e-3, foreach=True)"]),
        ("optimizer_fused", "import torch\nopt = torch.optim.SGD(p, 0.1, fused=False)\n", ["opt = torch.optim.SGD(p, 0.1, fused=True)"]),
        ("optimizer_fused", "import torch.optim as optim\nopt = optim.Adam(p)\n", ["opt = optim.Adam(p, fused=True)"]),
    ],
)  # fmt: skip
def test_optimizers(tmp_path, knob, source, expected):
    made = program(tmp_path, train_py=source)
    candidate = made.propose(knob, summary())
    assert added(candidate) == expected
    made.apply(candidate)
    with pytest.raises(UsageError, match="already"):
        made.propose(knob, summary())


def test_optimizer_refused_beside_what_it_conflicts_with_and_where_there_are_two(tmp_path):
    made = program(tmp_path, train_py="import torch\nopt = torch.optim.Adam(p, fused=True)\n")
    with pytest.raises(UsageError, match="is given fused"):
        made.propose("optimizer_foreach", summary())
    folder = tmp_path / "two"
    folder.mkdir()
    made = program(folder, train_py="import torch\ng = torch.optim.Adam(p)\nd = torch.optim.Adam(q)\n")
    with pytest.raises(UsageError, match="several places"):
        made.propose("optimizer_foreach", summary())
    assert added(made.propose("optimizer_foreach", summary(), at=Location("train.py", 3))) == ["d = torch.optim.Adam(q, foreach=True)"]


TRAINER = """
from transformers import Trainer, TrainingArguments

args = TrainingArguments(
    output_dir="out",
    per_device_eval_batch_size=2,
    eval_steps=10,
    logging_steps=1,
    save_steps=500,
)
Trainer(args=args).train()
"""


def test_arguments_of_the_hugging_face_trainer(tmp_path):
    made = program(tmp_path, train_py=TRAINER)
    outside = Location("/site-packages/transformers/trainer.py", 900)
    run = summary(
        loaders=(loader("train", outside, num_workers=0), loader("eval", outside, batch_size=2)),
        activities=tuple(activity(phase, outside) for phase in ("Eval", "Ckpt", "Log")),
    )
    expected = {
        "eval_batch_size": ["    per_device_eval_batch_size=16,"],
        "eval_cadence": ["    eval_steps=50,"],
        "logging_cadence": ["    logging_steps=10,"],
        "checkpoint_cadence": ["    save_steps=2500,"],
        "dataloader_workers": ["    dataloader_num_workers=3,"],
    }
    for knob, lines in expected.items():
        candidate = made.propose(knob, run)
        assert added(candidate) == lines
        made.apply(candidate)


def test_a_number_that_is_shown_and_becomes_0_goes_with_the_owners_consent_only(tmp_path):
    shown = candidate_here(tmp_path, "gc_collect_off", "import gc\nfor x in data:\n    print(gc.collect())  # here\n")
    assert shown.risk == "cadence" and "shown as 0" in shown.why
    assert candidate_here(tmp_path, "gc_collect_off", "import gc\nfor x in data:\n    gc.collect()  # here\n").risk == "same"


@pytest.mark.parametrize(("persistent", "distinct", "kept"), [(False, 900, False), (True, 900, True), (False, 40, True)])
def test_a_cache_that_ends_with_its_worker_before_it_is_asked_again_is_none(tmp_path, persistent, distinct, kept):
    source = "import math\n\n\ndef work(index: str):\n    return math.sqrt(len(index))\n"
    made = program(tmp_path, train_py=source)
    at = made.line("train.py", "def work(")
    run = summary(
        loaders=(loader("train", at, num_workers=2, persistent_workers=persistent, dataset_len=1000),),
        repeated=(repeated(at, "work", role="worker", distinct=distinct, result_bytes=8),),
    )
    candidates, refused, _ = made.plan(run, finding("repeated_work", at, ["memoize_function"]))
    assert ("memoize_function" in [each.knob for each in candidates]) is kept
    assert kept or any("started anew for each pass" in each.reason for each in refused)
