"""From the command line: a real slow program that no knob mends, an author that is a script, and a verdict on what it wrote."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path

import pytest

SLOW_LOSS = '''
"""Pulls points together whose labels are equal; the distances are computed row by row."""
import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)
points, labels = torch.randn(1024, 16), torch.randint(0, 8, (1024,))
net = nn.Linear(16, 8)
optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)


def spread(rows, kinds):
    found = []
    for i in range(rows.shape[0]):
        found.append(((rows[i] - rows) ** 2).sum(1) * (kinds[i] == kinds))
    return torch.stack(found).mean()


for step in range(240):
    at = (step * 128) % 1024
    loss = spread(net(points[at : at + 128]), labels[at : at + 128])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 40 == 0:
        print("step", step, "loss", loss.item())
torch.save(net.state_dict(), "model.pt")
'''
AUTHOR = """
import pathlib, sys

brief = sys.stdin.read()
assert "found.append" in brief and "What must stay the same" in brief, brief
source = pathlib.Path("train.py").read_text()
first, last = source.index("    found = []"), source.index("    return torch.stack(found).mean()")
wrong = "    return ((rows[:, None] - rows[None]) ** 2).sum(2).mean()"
right = "    return (((rows[:, None] - rows[None]) ** 2).sum(2) * (kinds[:, None] == kinds[None])).mean()"
body = right if "last answer was refused" in brief else wrong
pathlib.Path("train.py").write_text(source[:first] + body + source[last + len("    return torch.stack(found).mean()") :])
print('{"total_cost_usd": 0.02, "result": "one operation for all rows", "modelUsage": {"script-1": {}}}')
"""


@pytest.fixture
def slow(user):
    (user.project / "train.py").write_text(SLOW_LOSS)
    user.git("commit", "--quiet", "--all", "--message", "slow")
    return user


@pytest.mark.full
def test_a_patch_that_trains_something_else_is_refused_and_the_second_one_is_kept(slow, tmp_path):
    script = tmp_path / "assistant.py"
    script.write_text(AUTHOR)
    writer = shlex.join([sys.executable, str(script)])
    before = (slow.project / "train.py").read_text()
    words = ("tune", ".", "--budget", "420s", "--author", writer, "--author-attempts", "2", "--json", "--", sys.executable, "train.py")
    ran = slow.trainflash(*words, timeout=1500)
    told = json.loads(ran.out)
    assert "error" not in told, (told, ran.err)
    mine = [each for each in told["experiments"] if each["knob"] == "author"]
    assert [each["decision"] for each in mine] == ["rejected", "accepted"], (told["experiments"], ran.err)
    assert "changed" in mine[0]["verdict"]["fidelity"]["verdict"] and mine[1]["verdict"]["speedup"]["mean"] > 2
    assert [each["outcome"] for each in told["attempts"]] == ["patch", "patch"]
    line = next(each for each in told["ledger"] if each["source"] == "author")
    assert (line["attempts"], line["accepted"], line["cost_usd"]) == (2, 1, 0.04) and line["paid_back_hours"] > 0
    assert told["status"] == "needs_approval" and (slow.project / "train.py").read_text() == before
    assert "at most 2 attempts of 20 min each and $5.00 in all" in ran.err
    shown = slow.trainflash("log")
    assert "asked about" in shown.out


@pytest.mark.full
def test_the_brief_on_the_command_line_is_what_an_author_is_given(slow):
    ran = slow.trainflash("optimize", "brief", "--json", "--", sys.executable, "train.py")
    told = json.loads(ran.out)
    assert told["schema"] == "optimize_brief.v1" and told["location"]["file"] == "train.py"
    assert "found.append" in told["code"] and told["sites"][0]["share"] > 0.3 and told["answer"]
    assert any(each["name"] == "rows_at_once" for each in told["patterns"])
    page = slow.trainflash("optimize", "brief", "--", sys.executable, "train.py").out
    assert page.startswith("# Make this training faster: ") and "## How it is judged" in page


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--author", "no-such-assistant"], "there is no program no-such-assistant"),
        (["--author", ""], "there is no command"),
        (["--author", "acp:"], "needs the agent's name"),
        (["--author-dollars", "2"], "limits of an author without --author"),
        (["--author", "manual", "--author-attempts", "0"], "author-attempts"),
    ],
)
def test_an_author_that_cannot_be_is_refused_before_anything_runs(user, words, message):
    ran = user.trainflash("tune", ".", *words, "--", sys.executable, "train.py")
    assert ran.code == 2 and message in ran.err and not (Path(user.environment["XDG_STATE_HOME"]) / "trainflash").exists()
