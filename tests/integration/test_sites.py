"""Cost sites of real programs: a slow call, hooks, metrics that grow, libraries below a line, threads, recursion, generated code."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from probed import diagnosed, plain, probed

from trainflash.diagnosis import diagnose
from trainflash.schema import Site, Summary
from trainflash.summary import summarize

HEAD = """
import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
torch.set_num_threads(1)

"""
LOOP = """
net = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 8))
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
for number in range(STEPS):
    x = torch.randn(64, 32)
    y = net(x)
    loss = F.mse_loss(y, x[:, :8])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(loss.item().hex())
"""


def program(tmp_path: Path, source: str, steps: int = 120) -> Path:
    path = tmp_path / "train.py"
    path.write_text(HEAD + source.replace("STEPS", str(steps)), encoding="utf-8")
    return path


def line_of(path: Path, text: str) -> int:
    return next(number for number, row in enumerate(path.read_text().splitlines(), 1) if text in row)


def largest(found: Summary, role: str = "main") -> Site:
    return next(site for site in found.sites if site.role == role)


def test_a_slow_call_in_forward_is_the_largest_site_with_its_shapes_and_backward(tmp_path):
    pair = "    pair = torch.stack([x, x * net(x).mean()]).repeat(1, 24, 8)\n"
    slow = LOOP.replace("    y = net(x)", f"{pair}    y = net(x) + pair.norm(dim=0).mean()")
    path = program(tmp_path, slow, 60)
    found = diagnosed(tmp_path, path)
    site = largest(found)
    assert (site.location.file, site.location.line) == ("train.py", line_of(path, "pair.norm"))
    operator = site.operators[0]
    assert operator.name == "norm"
    assert operator.given[0].shape == (2, 1536, 256) and dict(operator.arguments)["dim"] == "0"
    assert operator.backward_ms > 0 and 0 < operator.share <= site.share
    first = next(each for each in diagnose(found).findings if each.kind != "startup")
    assert (first.kind, first.location) == ("slow_operator", site.location)


def test_a_profile_of_the_program_names_the_same_function(user):
    pair = "    pair = slow(torch.stack([x, x * net(x).mean()]).repeat(1, 24, 8))\n"
    function = "def slow(pair):\n    return pair.norm(dim=0).mean()\n\n\n"
    (user.project / "train.py").write_text(
        HEAD + function + LOOP.replace("    y = net(x)", f"{pair}    y = net(x) + pair").replace("STEPS", "60")
    )
    command = ("--", sys.executable, "train.py")
    site = user.trainflash("diagnose", "--in-place", "--json", *command).document["sites"][0]
    captured = user.trainflash("profile", "capture", "--in-place", "--stacks", "--json", *command).document
    user.trainflash("profile", "summarize", "--profile-dir", captured["profile_dir"], "--output", "summary.json")
    first = json.loads((user.project / "summary.json").read_text())["source_sites"][0]
    assert (first["file"], first["function"]) == (site["location"]["file"], site["location"]["function"]) == ("train.py", "slow")
    answer = user.trainflash("profile", "query", "--summary", "summary.json", "--json", "--question", "Which lines take the time?")
    assert "slow (train.py:" in answer.document["said"]


def test_hooks_of_gradients_are_callbacks_and_the_network_is_not(tmp_path):
    watch = "def watch(gradient):\n    for _ in range(60):\n        gradient.flatten().sort()\n\n\n"
    hooked = LOOP.replace("for number", f"{watch}for each in net.parameters():\n    each.register_hook(watch)\nfor number")
    path = program(tmp_path, hooked, 60)
    found = diagnosed(tmp_path, path)
    site = largest(found)
    assert (site.location.line, site.called_back) == (line_of(path, "gradient.flatten"), "hook")
    first = next(each for each in diagnose(found).findings if each.kind != "startup")
    assert (first.kind, first.phase) == ("callback", "Bwd")
    assert first.share <= found.phases["Bwd"].share + 0.02


WATCHED = """
class Watched(nn.Module):
    def __init__(self, net):
        super().__init__()
        self.net, self.score = net, torchmetrics.MeanSquaredError(num_outputs=8)

    def forward(self, x):
        y = self.net(x)
        for _ in range(20):
            self.score(y.detach() + _, x[:, :8].contiguous())
        return y


"""


@pytest.mark.parametrize("inside", [False, pytest.param(True, marks=pytest.mark.full)])
def test_metrics_of_each_batch_are_no_forward(inside, tmp_path):
    """Between the phases, and as a part of the network that is asked in its forward."""
    measured = LOOP.replace("for number", "score = torchmetrics.MeanSquaredError(num_outputs=8)\nfor number").replace(
        "    loss =", "    for _ in range(20):\n        score(y.detach() + _, x[:, :8].contiguous())\n    loss ="
    )
    if inside:
        measured = LOOP.replace("net = ", WATCHED + "net = Watched(").replace("nn.Linear(64, 8))", "nn.Linear(64, 8)))")
    path = program(tmp_path, "import torchmetrics\n\n" + measured, 150)
    found = diagnosed(tmp_path, path)
    site = largest(found)
    assert (site.location.line, site.phase, site.called_back) == (line_of(path, "score(y.detach"), "Other", "metric")
    assert found.phases["Other"].share > found.phases["Fwd"].share
    first = next(each for each in diagnose(found).findings if each.kind != "startup")
    assert (first.kind, first.location, first.phase) == ("callback", site.location, "Other")


@pytest.mark.full
def test_a_list_that_grows_is_growth_at_its_line(tmp_path):
    grows = LOOP.replace("for number", "seen = []\nfor number").replace(
        "    print(", "    seen.append(y.detach())\n    torch.cat(seen * 4).sort(0)\n    print("
    )
    path = program(tmp_path, grows, 150)
    found = diagnosed(tmp_path, path)
    assert found.trend.late_ms > 1.25 * found.trend.early_ms
    assert found.trend.location.line == line_of(path, "torch.cat(seen")
    assert found.trend.site_late_ms - found.trend.site_early_ms > 0.5 * (found.trend.late_ms - found.trend.early_ms)


SHAPING = """
class Compose:
    def __init__(self, *steps):
        self.steps = steps

    def __call__(self, value):
        for step in self.steps:
            value = step(value)
        return value


class Cheap:
    def __call__(self, value):
        return value


class Encoding:
    def __call__(self, value):
        for _ in range(4000):
            value = [each for each in value]
        return value
"""


@pytest.mark.parametrize("workers", [pytest.param(0, marks=pytest.mark.full), 1])
def test_the_function_of_a_library_below_the_loaders_line_is_named(tmp_path, workers):
    library = tmp_path / "env" / "lib" / "python3" / "site-packages" / "shaping"
    library.mkdir(parents=True)
    library.joinpath("__init__.py").write_text(SHAPING)
    source = f"""
import sys
sys.path.insert(0, {str(library.parent)!r})
import shaping


class Rows(torch.utils.data.Dataset):
    shape = shaping.Compose(shaping.Cheap(), shaping.Encoding())

    def __len__(self):
        return 240

    def __getitem__(self, index):
        return torch.tensor(self.shape([float(index)] * 32)) / 240


net = nn.Linear(32, 8)
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
for x in torch.utils.data.DataLoader(Rows(), batch_size=4, num_workers={workers}):
    loss = net(x).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(loss.item().hex())
"""
    path = program(tmp_path, source)
    found = diagnosed(tmp_path, path)
    site = largest(found, "worker" if workers else "main")
    assert site.phase == "Data"
    assert site.location.line in (line_of(path, "self.shape("), line_of(path, "DataLoader(Rows"))
    assert site.path[-1].function.endswith("Encoding.__call__") and site.path[-1].file == "shaping/__init__.py"


TRAINED_BY_A_LIBRARY = """
import sys
sys.path.insert(0, FOLDER)
import trainer

net = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 8))
trainer.Trainer(net).fit(STEPS)
"""
LIBRARY = """
import torch
from torch.nn import functional as F


class Trainer:
    def __init__(self, net):
        self.net, self.optimizer = net, torch.optim.SGD(net.parameters(), lr=0.01)

    def fit(self, steps):
        for number in range(steps):
            self.training_step()

    def training_step(self):
        x = torch.randn(64, 32)
        windows = x.repeat(1, 800).unfold(1, 32, 4).flatten(0, 1)
        loss = F.mse_loss(self.net(windows.contiguous()[:64]), x[:, :8])
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        print(loss.item().hex(), file=open("steps.txt", "a"))
"""


def test_a_loop_inside_a_library_is_divided_among_its_lines(tmp_path, monkeypatch):
    library = tmp_path / "env" / "lib" / "python3" / "site-packages"
    library.mkdir(parents=True)
    library.joinpath("trainer.py").write_text(LIBRARY)
    monkeypatch.chdir(tmp_path)
    path = program(tmp_path, TRAINED_BY_A_LIBRARY.replace("FOLDER", repr(str(library))), 200)
    found = diagnosed(tmp_path, path)
    site = largest(found)
    windows = next(number for number, row in enumerate(LIBRARY.splitlines(), 1) if "windows = " in row)
    assert site.location.file == "trainer.py" and site.location.line in (windows, windows + 1)
    assert site.under.line == line_of(path, ".fit(")
    assert not any(finding.location and finding.location.line == site.under.line for finding in diagnose(found).findings)


RECURSION = """
import sys

sys.setrecursionlimit(20000)
exec("def made(n):\\n    return sum(range(60000)) if n == 0 else made(n - 1)")
"""


def test_recursion_thousands_deep_and_code_without_a_file_are_no_trouble(tmp_path):
    path = program(tmp_path, RECURSION + LOOP.replace("    y = net(x)", "    made(3000)\n    y = net(x)"), 60)
    found = diagnosed(tmp_path, path)  # nothing swallowed, the same output
    assert line_of(path, "made(3000)") in [site.location.line for site in found.sites]
    assert sum(site.share for site in found.sites if site.role == "main") <= 1.0 + 1e-6


def test_a_thread_that_trains_beside_the_main_one_has_its_own_sites(tmp_path):
    body = "\n".join(f"    {row}" if row else "" for row in LOOP.splitlines())
    source = f"import threading\n\n\ndef train():{body}\n\n\nworker = threading.Thread(target=train)\nworker.start()\nworker.join()\n"
    path = program(tmp_path, source, 300)
    found = diagnosed(tmp_path, path)
    assert found.sites
    assert {site.location.file for site in found.sites if site.location.function.startswith("train")} == {"train.py"}


def test_each_moment_counts_once_and_the_machine_is_measured(tmp_path):
    path = program(tmp_path, LOOP, 200)
    found = diagnosed(tmp_path, path)
    assert sum(site.share for site in found.sites if site.role == "main") <= 1.0 + 1e-6
    run = probed(tmp_path / "again", path, capture="diagnose", TRAINFLASH_OWN=str(tmp_path))
    peaks = run.rank.peaks
    assert peaks.threads == 1
    assert peaks.flops_per_s["float32"] > 1e8 and peaks.bytes_per_s["cache"] > 1e8
    known = probed(tmp_path / "known", path, capture="diagnose", TRAINFLASH_OWN=str(tmp_path), TRAINFLASH_PEAKS="1,4")
    assert known.rank.peaks is None  # it is known already


@pytest.mark.full
def test_a_run_that_is_timed_carries_none_of_it(tmp_path):
    path = program(tmp_path, LOOP, 60)
    run = probed(tmp_path / "timed", path, capture="timing", TRAINFLASH_OWN=str(tmp_path))
    assert run.rank.calls == () and run.rank.peaks is None
    assert summarize(run.trace, run="run", project=str(tmp_path)).sites == ()
    assert run.output == plain(path)
