"""Evaluations that are made in another way are known by the figures that the program itself prints of them."""

from __future__ import annotations

import os
import sys

import pytest

from trainflash import fidelity, sandbox
from trainflash.schema import Command, Fidelity

PROGRAM = """
import torch
from torch import nn

torch.set_num_threads(1)
torch.manual_seed(0)


class Speller(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.layer, self.head = nn.Embedding(20, 24), nn.Linear(24, 24), nn.Linear(24, 20)

    def forward(self, letters):
        each = torch.tanh(self.layer(self.embed(letters)))
        return self.head(each.cumsum(1) / torch.arange(1, letters.size(1) + 1)[:, None])

    @torch.no_grad()
    def spell(self, letters, length):
        SPELL


def errors(model, words):
    guesses = model.spell(words[:, :1], 12)
    return float((guesses != words).double().mean()), float(guesses.double().mean())


model = Speller()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
words = torch.arange(20).repeat(13)[torch.randint(0, 20, (64, 1)) + torch.arange(12)]
for step in range(1, 61):
    rows = words[torch.randint(0, 64, (16,))]
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(rows[:, :-1]).flatten(0, 1), rows[:, 1:].flatten())
    loss.backward()
    optimizer.step()
    if step % 15 == 0:
        model.eval()
        print("step", step, "errors %.4f mean letter %.4f" % errors(model, words))
        model.train()
"""
WHOLE = """while letters.size(1) < length:
            letters = torch.cat([letters, self(letters)[:, -1:].argmax(-1)], 1)
        return letters"""
KEPT = """total = 0
        for n in range(1, length):
            total = total + torch.tanh(self.layer(self.embed(letters[:, -1:])))
            letters = torch.cat([letters, self.head(total / n).argmax(-1)], 1)
        return letters"""
FORGETFUL = KEPT.replace("total = total + ", "total = n * ")
STALE = "(last := errors(model, words) if step % 30 else last)"
COMMAND = Command((sys.executable, "train.py"))


def judged(tmp_path, new: str) -> Fidelity:
    project = tmp_path / "project"
    project.mkdir()
    (project / "train.py").write_text(PROGRAM.replace("SPELL", WHOLE))
    os.environ["OMP_NUM_THREADS"] = "1"
    box = sandbox.create(project, tmp_path / "sandbox")
    (sandbox.project_in(box, "candidate") / "train.py").write_text(new)
    return fidelity.check(box, COMMAND, COMMAND, tmp_path / "runs")


def test_words_that_are_spelled_with_a_cache_are_the_same_evaluation(tmp_path):
    found = judged(tmp_path, PROGRAM.replace("SPELL", KEPT))
    assert (found.verdict, found.changed) == ("same", ()), found.reasons
    assert "evaluations are made in another way, and come to the same" in found.reasons[1]


@pytest.mark.parametrize(
    "new",
    [
        pytest.param(PROGRAM.replace("SPELL", FORGETFUL), id="other letters"),
        pytest.param(PROGRAM.replace("SPELL", KEPT).replace("errors(model, words)", "errors(model, words[:32])"), id="half of the words"),
        pytest.param(PROGRAM.replace("SPELL", KEPT).replace("% 15", "% 30"), id="every other evaluation"),
        pytest.param(PROGRAM.replace("SPELL", KEPT).replace("errors(model, words)", STALE), id="an old evaluation told again"),
        pytest.param(
            PROGRAM.replace("SPELL", KEPT).replace('errors %.4f mean letter %.4f" % errors(model, words)', '"'), id="nothing is told"
        ),
    ],
)
def test_another_evaluation_is_not_explained_by_its_figures(tmp_path, new):
    assert judged(tmp_path, new).verdict == "changed"
