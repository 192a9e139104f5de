"""`fidelity.check` on a program whose targets a teacher computes: its rounding is numerics, another target is not."""

from __future__ import annotations

import pytest
from edited_program import judged, sandbox_of

from trainflash.schema import Sandbox

PROGRAM = """
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.set_num_threads(1)
HEAT, SMOOTHING = 2.0, 0.1


class Teacher(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(16, 128), nn.Linear(128, 5)

    def forward(self, x):
        hidden = self.first(x).relu()
        return self.second(hidden)


torch.manual_seed(0)
teacher = Teacher().eval()
student = nn.Sequential(nn.Linear(16, 24), nn.ReLU(), nn.Linear(24, 5))
x = torch.randn(120, 16)
labels = (x[:, 0] * 2).round().long() % 5
train = DataLoader(TensorDataset(x, labels), batch_size=12, shuffle=True)
optimizer = torch.optim.Adam(student.parameters(), lr=1e-2)
for epoch in range(4):
    for points, classes in train:
        with torch.no_grad():
            answers = teacher(points)
        logits = student(points)
        soft = F.kl_div((logits / HEAT).log_softmax(1), (answers / HEAT).softmax(1), reduction="batchmean")
        hard = F.cross_entropy(logits, F.one_hot(classes, 5) * (1 - SMOOTHING) + SMOOTHING / 5)
        loss = soft + 0.1 * hard
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, loss.item(), flush=True)
    torch.save({"student": student.state_dict(), "optimizer": optimizer.state_dict()}, "last.pt")
"""
ANSWER = "return self.second(hidden)"
HALVES = (
    "return F.linear(hidden[:, 64:], self.second.weight[:, 64:]) + F.linear(hidden[:, :64], self.second.weight[:, :64], self.second.bias)"
)
ROUNDED = ((ANSWER, HALVES),)

OTHERS = {
    "targets of other samples": ("answers = teacher(points)", "answers = teacher(points).flip(0)"),
    "one sample's of another": ("answers = teacher(points)", "answers = teacher(points[[1, *range(1, len(points))]])"),
    "labels of other samples": ("F.one_hot(classes, 5)", "F.one_hot(classes.flip(0), 5)"),
    "another heat": ("(answers / HEAT).softmax", "(answers / (HEAT * 1.001)).softmax"),
    "another smoothing": ("SMOOTHING = 2.0, 0.1", "SMOOTHING = 2.0, 0.101"),
    "another teacher": ("teacher = Teacher().eval()", "teacher = Teacher().eval()\nteacher.second.weight.data.mul_(1.001)"),
    "half a teacher": ("answers = teacher(points)", "answers = teacher.half()(points.half()).float()"),
    "an offset": ("(answers / HEAT).softmax(1)", "(answers / HEAT).softmax(1) + 1e-4"),
    "noise": ("answers = teacher(points)", "answers = teacher(points) + 1e-3 * points[:, :5]"),
}

pytestmark = [pytest.mark.full, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Sandbox:
    return sandbox_of(tmp_path_factory.mktemp("distillation"), PROGRAM)


def test_a_teacher_that_adds_up_in_another_order_is_numerics(made, tmp_path):
    found = judged(made, PROGRAM, tmp_path / "runs", *ROUNDED)
    assert (found.verdict, found.changed) == ("close", ("numerics",)), found.reasons
    by_name = {each.name: each for each in found.checks}
    assert by_name["targets"].ok and by_name["target values"].ok is False
    assert 0 < found.mean_abs_loss_delta < 1e-5


@pytest.mark.parametrize("name", OTHERS)
def test_other_targets_are_refused_beside_rounded_ones(made, tmp_path, name):
    found = judged(made, PROGRAM, tmp_path / "runs", *ROUNDED, OTHERS[name])
    assert found.verdict == "changed" and "targets" in found.changed, found.reasons
    assert any("the same inputs meet other targets" in reason for reason in found.reasons)


RECORDING = PROGRAM.replace("        with torch.no_grad():\n            answers", "        answers")
TAUGHT = RECORDING.replace(
    "student = nn",
    """first = torch.optim.Adam(teacher.parameters(), lr=1e-2)
for _ in range(6):
    loss = teacher(torch.randn(12, 16)).square().mean()
    first.zero_grad()
    loss.backward()
    first.step()
student = nn""",
)
FROZEN = ("        answers = teacher(points)", "        with torch.no_grad():\n            answers = teacher(points)")


@pytest.mark.parametrize(
    "program", [RECORDING, RECORDING.replace("Teacher().eval()", "Teacher()"), TAUGHT], ids=["eval", "train", "taught"]
)
def test_a_teacher_that_nobody_trains_is_the_same_without_gradients(tmp_path, program):
    made = sandbox_of(tmp_path, program)
    found = judged(made, program, tmp_path / "runs", FROZEN)
    assert (found.verdict, found.changed) == ("same", ()), found.reasons


def test_a_network_that_is_trained_is_not_the_same_without_gradients(tmp_path):
    program = RECORDING.replace("student.parameters()", "[*student.parameters(), *teacher.parameters()]")
    found = judged(sandbox_of(tmp_path, program), program, tmp_path / "runs", FROZEN)
    assert found.verdict == "changed", found.reasons


def test_a_network_that_an_optimizer_forgets_is_not_the_same(tmp_path):
    program = RECORDING.replace("student.parameters()", "[*student.parameters(), *teacher.parameters()]")
    edit = ("[*student.parameters(), *teacher.parameters()]", "student.parameters()")
    found = judged(sandbox_of(tmp_path, program), program, tmp_path / "runs", edit)
    assert found.verdict == "changed", found.reasons
