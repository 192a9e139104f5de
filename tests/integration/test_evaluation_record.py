"""Evaluations of real training programs under the recorder: broken ones are told from honest ones, whatever they print."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_training_record import train

from trainflash.fidelity import compare
from trainflash.fidelity.record import Record

PROGRAM = """
import copy
from torch.nn import functional as F
x, y = torch.randn(6, 48, 8), torch.randint(0, 2, (48,))  # time, batch, features
vx, vy = torch.randn(6, 20, 8), torch.randint(0, 2, (20,))
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn, self.head = nn.RNN(8, 16), nn.Linear(16, 2)
    def forward(self, x, y=None):
        out = self.head(self.rnn(x)[0][-1])
        return out if y is None else F.cross_entropy(out, y)
model, teacher = Net(), Net().requires_grad_(False)
average = copy.deepcopy(model).requires_grad_(False)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
GROUP, kept = 4, {}
def score(net):
    net.eval()
    with torch.no_grad():
        means = sum(net(vx[:, at:at + 4], vy[at:at + 4]).item() for at in range(0, 20, 4))
        for at in range(0, 20, GROUP):
            out, b = net(vx[:, at:at + GROUP]), vy[at:at + GROUP]
            means += F.cross_entropy(out, b).item()
        single = [net(vx[:, at]).argmax() for at in range(4)]
    net.train()
    return means
for epoch in range(4):
    for at in range(0, 48, 8):
        xs, ys = x[:, at:at + 8], y[at:at + 8]
        out = model(xs)
        with torch.no_grad():
            t = teacher(xs)
            right = (model(xs).argmax(1) == ys).sum()
        loss = F.cross_entropy(out, ys) + F.mse_loss(out, t)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            for a, b in zip(average.parameters(), model.parameters()):
                a.lerp_(b, 0.05)
    print(epoch, score(model), score(average))
"""
TEACHER = "            t = teacher(xs)\n"
HONEST = {
    "answers of a teacher kept": ((TEACHER, "            t = kept[at] = kept[at] if at in kept else teacher(xs)\n"),),
    "accuracy of the forward that was made": (("model(xs).argmax", "out.argmax"),),
    "evaluated in larger groups along the second dimension": (("GROUP, kept = 4", "GROUP, kept = 20"),),
    "single samples evaluated at once": (("[net(vx[:, at]).argmax() for at in range(4)]", "net(vx[:, :4]).argmax(1)"),),
    "another name of the class": (("model, teacher = Net()", "class FastNet(Net): pass\nmodel, teacher = FastNet()"),),
}
BROKEN = {
    "other targets": ("evaluation", (", vy[at:at + GROUP]", ", vy[:4]")),
    "a part scored": ("evaluation", ("            means += F", "            if at >= 8: continue\n            means += F")),
    "live weights": ("evaluation", ("score(average))", "score(model))")),
    "autocast": ("precision", ("with torch.no_grad():\n        means", "with torch.no_grad(), torch.autocast('cpu'):\n        means")),
    "a part evaluated": ("evaluation", ("range(0, 20, GROUP)", "range(0, 12, GROUP)")),
    "evaluated half as often": ("cadence", ("    print(epoch, ", "    if epoch % 2: print(epoch, ")),
}


@pytest.fixture(scope="module")
def baseline(tmp_path_factory) -> Record:
    return recorded(tmp_path_factory.mktemp("evaluations") / "baseline")


def recorded(folder: Path, *edits: tuple[str, str]) -> Record:
    text = PROGRAM
    for old, new in edits:
        assert old in text
        text = text.replace(old, new)
    return Record((train(folder, text)[1],), True)


def test_each_line_is_of_one_kind_of_network_and_tells_the_step_from_the_evaluation(baseline):
    lines = baseline.streams[0].evaluations
    step = [line for line in lines if line.get("step")]
    assert {line["n"] for line in step} == set(range(24))
    assert all(line["forwards"] == 2 for line in step), "the teacher's and the second of the model"
    (first, *_) = [line for line in lines if not line.get("step")]
    assert (first["n"], first["forwards"], first["scores"]["cross_entropy"][0]) == (6, 28, 80)
    assert len(first["weights"]) == 2 and first["means"][2] == 10


SCRIPTED = """
from torch.nn import functional as F
model = MODEL
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for step in range(6):
    optimizer.zero_grad()
    F.cross_entropy(model(torch.randn(8, 4)), torch.randint(0, 2, (8,))).backward()
    optimizer.step()
    model.eval()
    with torch.no_grad():
        F.cross_entropy(model(torch.ones(4, 4)), torch.ones(4, dtype=torch.long))
    model.train()
"""


@pytest.mark.full
def test_a_script_is_the_same_network(tmp_path):
    plain, scripted = (
        Record((train(tmp_path / name, SCRIPTED.replace("MODEL", model))[1],), True)
        for name, model in (("plain", "nn.Linear(4, 2)"), ("scripted", "torch.jit.script(nn.Linear(4, 2))"))
    )
    assert [line["n"] for line in scripted.streams[0].evaluations] == [1, 2, 3, 4, 5, 6]
    assert compare(plain, scripted).verdict == "same"


WHOLE_GRAPH = """
from torch.nn import functional as F
nodes, labels = torch.randn(30, 4), torch.randint(0, 2, (30,))
model = nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for step in range(6):
    optimizer.zero_grad()
    F.cross_entropy(model(nodes)[:20], labels[:20]).backward()
    optimizer.step()
    with torch.no_grad():
        print((model(nodes)[20:].argmax(1) == labels[20:]).float().mean().item())
"""


def test_an_evaluation_of_samples_that_every_update_trains_on_is_no_part_of_a_step(tmp_path):
    lines = train(tmp_path / "whole", WHOLE_GRAPH)[1].evaluations
    assert [line["n"] for line in lines] == [1, 2, 3, 4, 5, 6]
    assert not any(line.get("step") for line in lines[:-1]), "the same nodes are those of the update before and of the one after"


@pytest.mark.full
@pytest.mark.parametrize("name", HONEST)
def test_honest_evaluations_are_the_same(baseline, tmp_path, name):
    found = compare(baseline, recorded(tmp_path / "candidate", *HONEST[name]))
    assert (found.verdict, found.changed) == ("same", ()), found.reasons


@pytest.mark.full
@pytest.mark.parametrize("name", BROKEN)
def test_broken_evaluations_are_named(baseline, tmp_path, name):
    change, *edits = BROKEN[name]
    found = compare(baseline, recorded(tmp_path / "candidate", *edits))
    assert change in found.changed, found.reasons
