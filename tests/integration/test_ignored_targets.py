"""Predictions that the loss ignores: seen where there are some."""

from __future__ import annotations

from pathlib import Path

import pytest
from probed import diagnosed

LOOP = """
import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
torch.set_num_threads(1)
WORDS = 3000


class Masked(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Embedding(WORDS, 32), nn.Linear(32, 32), nn.Tanh())
        self.head = nn.Linear(32, WORDS)

    def forward(self, ids, labels):
        hidden = self.body(ids)
        BODY
        return loss


model = Masked()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for number in range(40):
    ids = torch.randint(WORDS, (8, 16))
    labels = torch.where(torch.rand(8, 16) < COUNTED, ids, -100)
    loss = model(ids, labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(loss.item().hex())
"""
PLAIN = "logits = self.head(hidden)\nloss = F.cross_entropy(logits.view(-1, WORDS), labels.view(-1))"
BY_HAND = "logits = F.log_softmax(self.head(hidden), -1)\nloss = F.nll_loss(logits.transpose(1, 2), labels)"
AN_OBJECT = "logits = self.head(hidden)\nloss = nn.CrossEntropyLoss()(logits.transpose(1, 2), labels)"
SELECTED = "counted = labels != -100\nlogits = self.head(hidden[counted])\nloss = F.cross_entropy(logits, labels[counted])"


def program(tmp_path: Path, body: str, counted: float = 0.15) -> Path:
    path = tmp_path / "train.py"
    path.write_text(LOOP.replace("BODY", body.replace("\n", "\n        ")).replace("COUNTED", str(counted)), encoding="utf-8")
    return path


@pytest.mark.parametrize("body", [PLAIN, *(pytest.param(body, marks=pytest.mark.full) for body in (BY_HAND, AN_OBJECT))])
def test_words_that_are_not_masked(tmp_path, body):
    path = program(tmp_path, body)
    found = diagnosed(tmp_path, path)
    (seen,) = found.ignored_targets
    line = next(number for number, row in enumerate(path.read_text().splitlines(), 1) if "loss = " in row)
    assert (seen.location.line, seen.per_step) == (line, 1.0)
    assert 0.7 < seen.ignored < 0.95
    assert 0.05 < seen.share <= 1.0  # nearly all of the network's work; a busy machine makes other things longer


@pytest.mark.parametrize(("body", "counted"), [(SELECTED, 0.15), pytest.param(PLAIN, 1.1, marks=pytest.mark.full)])
def test_all_targets_count(tmp_path, body, counted):
    assert diagnosed(tmp_path, program(tmp_path, body, counted)).ignored_targets == ()


@pytest.mark.full
def test_few_ignored_ones(tmp_path):
    found = diagnosed(tmp_path, program(tmp_path, PLAIN, 0.9))
    assert 0 < found.ignored_targets[0].ignored < 0.25


HEADS = """logits = self.head(hidden)
        other = self.other(hidden.detach())
        loss = F.cross_entropy(logits.view(-1, WORDS), labels.view(-1))
        loss = loss + F.cross_entropy(other.view(-1, WORDS), ids.view(-1))"""
VARIED = "hidden, labels = hidden[:, : 4 + number % 12], labels[:, : 4 + number % 12].contiguous()\n" + PLAIN


@pytest.mark.full
def test_each_of_two_heads_has_its_own_product(tmp_path):
    path = program(tmp_path, "HEADS")
    wide = "self.head = nn.Linear(32, WORDS)\n        self.other = nn.Sequential(nn.Linear(32, 512), nn.Linear(512, WORDS))"
    path.write_text(path.read_text().replace("HEADS", HEADS).replace("self.head = nn.Linear(32, WORDS)", wide), encoding="utf-8")
    (seen,) = diagnosed(tmp_path, path).ignored_targets
    assert seen.per_step == 1.0 and 0.7 < seen.ignored < 0.95


def test_batches_of_another_length_in_each_step(tmp_path):
    (seen,) = diagnosed(tmp_path, program(tmp_path, VARIED)).ignored_targets
    assert 0.05 < seen.share <= 1.0 and 0.7 < seen.ignored < 0.95


CLASSED = "logits = self.head(hidden).view(-1, WORDS)\nloss = F.cross_entropy(logits, labels.view(-1).as_subclass(Counted))"


def test_no_code_of_a_tensor_of_the_program_s_own_is_run(tmp_path):
    path = program(tmp_path, CLASSED)
    own = """class Counted(torch.Tensor):
    asked = 0

    @classmethod
    def __torch_function__(cls, *given, **more):
        cls.asked += 1
        return super().__torch_function__(*given, **more)


model = Masked()"""
    path.write_text(path.read_text().replace("model = Masked()", own) + "print(Counted.asked)\n", encoding="utf-8")
    assert diagnosed(tmp_path, path).ignored_targets == ()
