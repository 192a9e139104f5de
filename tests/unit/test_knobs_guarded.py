"""An interruption is made rarer only where nothing under its condition changes the training."""

from __future__ import annotations

import pytest
from knob_scenes import activity, added, finding, program, summary

from trainflash.errors import UsageError

LOOP = """import sys
import torch
from tools import Ema, evaluate, halve, sync

lr, best, tau, stop, history = 0.1, 9.0, 1.0, False, []
for step in range(1000):
{0}
    loss = train_step(lr)
    if step % 10 == 0:
        print(step)  # here
{1}
{2}
"""
TOOLS = """class Ema:
    def update(self, model):
        for own, other in zip(self.own, model.parameters()):
            own.copy_(other)


def evaluate(model):
    model.eval()
    total = 0.0
    for x in held_out:
        total += model(x)
    model.train()
    return total


def halve(optimizer):
    for group in optimizer.param_groups:
        group["lr"] *= 0.5


def sync(target, policy):
    target.load_state_dict(policy.state_dict())
"""


def rows(text, depth):
    return "\n".join(" " * depth + row for row in (text or "pass").split("\n"))


def rarer(tmp_path, inside, behind="", before="", knob="logging_cadence", phase="Log"):
    made = program(tmp_path, train_py=LOOP.format(rows(before, 4), rows(inside, 8), rows(behind, 4)), tools_py=TOOLS)
    run = summary(activities=(activity(phase, made.line("train.py", "# here")),))
    return made.propose(knob, run, findings=[finding("logging")])


@pytest.mark.parametrize(
    ("inside", "said"),
    [
        ("lr = lr * 0.9", "`lr` is read here"),
        ("lr *= 0.9", "`lr` is read here"),
        ("for group in opt.param_groups:\n    group['lr'] = 0.1 / step", "a change of `group"),
        ("opt.param_groups[0]['lr'] *= 0.5", "a change of `opt.param_groups"),
        ("halve(opt)", "a change of `group"),
        ("target.load_state_dict(policy.state_dict())", "guards `target.load_state_dict"),
        ("sync(target, policy)", "guards `target.load_state_dict"),
        ("Ema().update(model)", "guards `own.copy_"),
        ("for a, b in zip(slow.parameters(), model.parameters()):\n    a.data.copy_(b.data)", "guards `a.data.copy_"),
        ("for a, b in zip(slow.parameters(), model.parameters()):\n    a.data = b.data", "a change of `a.data`"),
        ("scheduler.step(evaluate(model))", "guards `scheduler.step"),
        ("final = opt.step(closure)", r"guards `opt.step\(closure\)"),
        ("value = evaluate(model)\nif value > best:\n    break", "guards `break`"),
        ("if evaluate(model) > best:\n    continue", "guards `continue`"),
        ("if loss.isnan():\n    raise ValueError(step)", "guards `raise ValueError"),
        ("if evaluate(model) > best:\n    sys.exit()", r"guards `sys.exit\(\)`"),
        ("for x in held_out:\n    if model(x) > 3:\n        raise StopIteration", "guards `raise StopIteration`"),
    ],
)
def test_what_trains_or_ends_the_training_is_not_made_rarer(tmp_path, inside, said):
    with pytest.raises(UsageError, match=said):
        rarer(tmp_path, inside)


@pytest.mark.parametrize(
    ("inside", "behind", "before"),
    [
        ("stop = evaluate(model) > best", "if stop:\n    break", ""),
        ("history.append(evaluate(model))", "if history[-1] > best:\n    break", ""),
        ("value = evaluate(model)", "scheduler.step(value)", ""),
        ("tau = max(0.1, tau * 0.9)", "", "train_with(tau)"),
        ("weights = evaluate(model)", "loss = loss * weights\nupdate(loss)", ""),
        ("model.scale = 0.5 * step", "update(model.scale * 3)", ""),
        ("model.mask.zero_()", "", "train(model)"),
        ("model.scale = 0.5 * step", "", "train(model)"),
        ("scales[0] = 1.0 / step", "train(scales)", ""),
        ("for scale in scales:\n    scale.mul_(0.5)", "train(scales)", ""),
        ("model.train_on(tau := tau * 2)", "", "train_with(tau)"),
        ("loss = loss.item()", "update(loss)", ""),
        ("warm = False", "doubled = warm * 2\ntrain_with(doubled)", ""),
    ],
)
def test_what_training_reads_is_not_set_less_often(tmp_path, inside, behind, before):
    with pytest.raises(UsageError, match="is read here, and set under the same condition"):
        rarer(tmp_path, inside, behind, before)


def test_what_the_else_does_is_not_made_more_frequent(tmp_path):
    made = program(tmp_path, train_py="for step in range(99):\n    if step % 10 == 0:\n        print(1)\n    else:\n        opt.step()\n")
    with pytest.raises(UsageError, match=r"guards `opt\.step\(\)`"):
        made.propose("logging_cadence", summary(activities=(activity("Log", made.line("train.py", "print(1)")),)))


def test_early_stopping_inside_an_evaluation_is_not_made_rarer(tmp_path):
    with pytest.raises(UsageError, match="so decides how long or what is trained"):
        rarer(tmp_path, "if evaluate(model) > best:\n    break", knob="eval_cadence", phase="Eval")


@pytest.mark.parametrize(
    ("inside", "behind", "before"),
    [
        ("value = evaluate(model)\nif value < best:\n    best = value\n    torch.save(model.state_dict(), 'best.pt')", "", ""),
        ("print(total)\ntotal = 0.0", "", "total += train_step()"),
        ("print(total)\ntotal.zero_()", "", "total += train_step()"),
        ("print(sum(window))\nwindow = []", "", "window.append(train_step())"),
        ("loss = evaluate(model)\nprint(loss)", "", ""),
        ("for x, y in held_out:\n    history.append(model(x))", "", "x, y = draw()\ntrain(x, y)"),
        ("value = evaluate(model)", "bar.set_postfix(loss=value)\nprint(f'{value:.3f}')", ""),
        ("value = evaluate(model)", "row = {'value': value}\nlogger.log(row)", ""),
        ("bar.set_postfix(loss=loss)", "bar.update(1)", ""),
        ("for x in held_out:\n    if x is None:\n        continue\n    if len(x) > 3:\n        break", "", ""),
        ("score = env.step(policy(3))[1]\nhistory.append(score)", "", ""),
        ("_, score, done = pole.step(policy(3))\nhistory.append(score)", "", ""),
        ("model.eval()\nevaluate(model)\nmodel.train()", "", ""),
        ("started = clock()", "print(clock() - started)", ""),
    ],
)
def test_what_is_only_shown_saved_or_counted_is_made_rarer(tmp_path, inside, behind, before):
    assert added(rarer(tmp_path, inside, behind, before))[0].startswith("    if step % 1")


TRAINER = """import torch


class Trainer:
    def __init__(self):
        self.best, self.scale, self.running, self.rows = 9.0, 1.0, 0.0, []

    def run(self):
        for step in range(1000):
            self.train_step(step)
            if step % 10 == 0:
                self.report(step)

    def train_step(self, step):
        loss = self.model(step) * {1}
        self.running += float(loss)
        loss.backward()

    def report(self, step):
        print(self.running)  # here
        {0}


Trainer().run()
"""


@pytest.mark.parametrize(
    ("inside", "read", "refused"),
    [
        ("self.scale = self.scale * 0.9", "self.scale", True),
        ("self.rows.append(step)", "len(self.rows)", True),
        ("self.running = 0.0", "2", False),
        ("self.best = min(self.best, step)", "2", False),
    ],
)
def test_attributes_of_the_trainer(tmp_path, inside, read, refused):
    made = program(tmp_path, train_py=TRAINER.format(inside, read))
    run = summary(activities=(activity("Log", made.line("train.py", "# here")),))
    if refused:
        with pytest.raises(UsageError, match="is read here, and set under the same condition"):
            made.propose("logging_cadence", run)
    else:
        assert "if step % 1" in added(made.propose("logging_cadence", run))[0]


BEST = """import torch


class Best:
    def __init__(self):
        self.value, self.spacing, self.bad = float("inf"), 1, 0

    def on_step_end(self, run):
        now = run.loss
        if now < self.value and run.step % self.spacing == 0:
            self.value = now
            torch.save(run.model.state_dict(), "best.pt")  # here
{0}

for step in range(1000):
    loss = train_step()
    callback.on_step_end(run)
"""


def best(tmp_path, behind=""):
    made = program(tmp_path, train_py=BEST.format(behind))
    run = summary(activities=(activity("Ckpt", made.line("train.py", "# here")),))
    return made.propose("checkpoint_cadence", run, findings=[finding("checkpoint")])


def test_the_best_value_so_far_is_a_part_of_its_condition(tmp_path):
    made = added(best(tmp_path))
    assert (
        len(made) == 1
        and made[0].startswith('        self.value, self.spacing, self.bad = float("inf"), ')
        and not made[0].endswith("1, 0")
    )


@pytest.mark.parametrize(
    "behind",
    [
        "        else:\n            self.bad += 1\n            run.stop = self.bad > 3 and now > self.value\n",
        "        run.stop = now > 2 * self.value\n",
    ],
    ids=["otherwise", "behind it"],
)
def test_the_best_value_that_decides_something_else_is_read(tmp_path, behind):
    with pytest.raises(UsageError, match="`value` is read here"):
        best(tmp_path, behind)
