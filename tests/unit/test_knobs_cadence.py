"""How much rarer an interruption is proposed: until it costs little, in round numbers, and never so rarely that the run has none left."""

from __future__ import annotations

from dataclasses import replace

import pytest
from knob_scenes import activity, added, finding, loader, program, summary

from trainflash.knobs.cadence import LARGEST_SHARE, happens, times_too_often

LOOP = """import torch

for step in range(1000):
    if step % 4 == 0:
        torch.save({}, "last.pt")
"""


@pytest.mark.parametrize(
    ("share", "times", "factor"),
    [
        (0.5, 1000, 50),
        (0.5, 30, 20),  # 50 times rarer there would be none
        (0.5, None, 50),  # the run goes on
        (0.97, 5000, 1000),
        (0.04, 1000, 2),
        (0.03, 1000, None),  # it does not matter
        (0.5, 1, None),
    ],
)
def test_factor(share, times, factor):
    assert times_too_often(replace(finding("checkpoint"), share=share), times) == factor


def test_what_is_left_costs_no_more_than_it_may():
    for share in (0.05, 0.1, 0.33, 0.6, 0.9, 0.99):
        factor = times_too_often(replace(finding("logging"), share=share), None)
        rest = share / factor
        assert rest / (rest + 1 - share) <= LARGEST_SHARE


def test_without_a_finding_there_is_no_factor():
    assert times_too_often(None, 100) is None


def test_how_often_it_happens_is_counted_to_the_end_of_the_program():
    whole, cut = summary(steps=90, warmup_steps=10), summary(steps=90, warmup_steps=10, stopped=True)
    ran = activity("Ckpt", None, count=25)
    assert happens(ran, whole) == 25 and happens(None, whole) == 90
    assert happens(ran, cut) is None and happens(None, cut) is None
    assert happens(ran, cut, 320) == 80 and happens(None, cut, 320) == 288
    assert happens(ran, whole, 320) == 25, "what was seen to its end needs no other run"


def test_it_is_the_first_value_of_the_plan(tmp_path):
    made = program(tmp_path, train_py=LOOP)
    line = made.line("train.py", "torch.save")
    run = summary(activities=(activity("Ckpt", line, count=250),))
    candidates, _, _ = made.plan(run, finding("checkpoint", line, ["checkpoint_cadence"]))
    values = [each for each in candidates if each.knob == "checkpoint_cadence"]
    assert [each.value for each in values] == ["200", "20", "8"]
    assert added(values[0]) == ["    if step % 200 == 0:"]


@pytest.mark.parametrize(
    ("knob", "kind", "call", "after"),
    [
        ("eval_cadence", "evaluation", "TrainingArguments('out', eval_steps=0.25)", ["0.5"]),
        ("eval_cadence", "evaluation", "TrainingArguments('out', eval_steps=0.1)", ["0.5", "0.2"]),
        ("eval_cadence", "evaluation", "TrainingArguments('out', eval_steps=100)", ["500", "200"]),
        ("eval_cadence", "evaluation", "Trainer(val_check_interval=0.25)", ["0.5"]),
        ("eval_cadence", "evaluation", "Trainer(val_check_interval=0.5)", ["1.0"]),
        ("eval_cadence", "evaluation", "Trainer(val_check_interval=0.2)", ["1.0", "0.4"]),
        ("eval_cadence", "evaluation", "Trainer(val_check_interval=50)", ["250", "100"]),
        ("logging_cadence", "logging", "TrainingArguments('out', logging_steps=0.07)", ["0.7"]),
        ("checkpoint_cadence", "checkpoint", "TrainingArguments('out', save_steps=0.3)", ["0.6"]),
    ],
)
def test_a_share_of_the_whole_grows_only_while_it_is_one(tmp_path, knob, kind, call, after):
    source = f"from transformers import TrainingArguments\nfrom lightning import Trainer\nmade = {call}\n"
    made = program(tmp_path, train_py=source)
    candidates, _, _ = made.plan(summary(), replace(finding(kind, made.line("train.py", "made ="), [knob]), share=0.03))
    before = call.split("=")[-1].rstrip(")")
    assert [added(each) for each in candidates if each.knob == knob] == [[f"made = {call.replace(before, value)}"] for value in after]


def test_a_trainers_interval_ends_with_the_epoch(tmp_path):
    source = "from lightning import Trainer\nmade = Trainer(max_epochs=9, val_check_interval=10)\n"
    made = program(tmp_path, train_py=source)
    cost = replace(finding("evaluation", made.line("train.py", "made ="), ["eval_cadence"]), share=0.03)
    run = summary(loaders=(loader("train", dataset_len=1000, batch_size=32),))
    values = [[each.value for each in made.plan(each, cost)[0]] for each in (run, replace(run, ranks=2), summary())]
    assert values == [["31", "20"], ["15"], ["50", "20"]]


def test_once_an_epoch_becomes_rarer_by_whole_epochs(tmp_path):
    net = "class Net:\n    def validation_step(self, batch, number):\n        return self.loss(batch)\n"
    made = program(tmp_path, train_py=f"from lightning import Trainer\n{net}made = Trainer(val_check_interval=1.0)\n")
    candidate = made.propose("eval_cadence", summary(), value="5", findings=(finding("evaluation"),))
    assert added(candidate) == ["made = Trainer(val_check_interval=1.0, check_val_every_n_epoch=5)"]


def test_a_run_that_was_cut_off_is_as_long_as_another_saw_it(tmp_path):
    made = program(tmp_path, train_py=LOOP)
    line = made.line("train.py", "torch.save")
    run = summary(steps=60, warmup_steps=20, stopped=True, activities=(activity("Ckpt", line, count=20),))
    cost = replace(finding("checkpoint", line, ["checkpoint_cadence"]), share=0.6)
    plans = [made.plan(run, cost, whole_steps=steps)[0] for steps in (None, 120)]
    assert [next(each.value for each in plan if each.knob == "checkpoint_cadence") for plan in plans] == ["200", "80"]


GALLERY = """import lightning


class Net(lightning.LightningModule):
    def forward(self, x):
        return self.layers(x)


class Gallery(lightning.Callback):
    def __init__(self, every_n_steps):
        self.every_n_steps = every_n_steps

    def on_train_batch_end(self, trainer, module, outputs, batch, number):
        if trainer.global_step % self.every_n_steps:
            return
        draw(module(self.held), trainer.global_step)


trainer = lightning.Trainer(callbacks=[Gallery(every_n_steps=10)])
trainer.fit(Net(), data)
"""


def test_what_calls_the_forward_of_an_evaluation_is_asked_for_its_interval_too(tmp_path):
    """The evaluation stands at the forward, which a callback calls through the trainer; the finding at the callback's costliest line."""
    made = program(tmp_path, train_py=GALLERY)
    run = summary(activities=(activity("Eval", made.line("train.py", "return self.layers"), count=250),))
    (first, *_), _, _ = made.plan(run, finding("evaluation", made.line("train.py", "draw("), ["eval_cadence"]))
    assert first.knob == "eval_cadence" and added(first)[0].startswith("trainer = lightning.Trainer(callbacks=[Gallery(every_n_steps=")
    _, refused, _ = made.plan(run, finding("evaluation", made.line("train.py", "return self.layers"), ["eval_cadence"]))
    assert any("guards it" in each.reason for each in refused if each.knob == "eval_cadence")


SHOWN = """import json
import sys

PASSES = 40


def keep(losses):
    with open("losses.json", "w") as file:
        json.dump(losses, file)


losses = []
for epoch in range({passes}):
    for batch in batches:
        loss = model(batch).mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    keep(losses)
"""


@pytest.mark.parametrize(
    ("passes", "values"),
    [
        ("PASSES", ["20", "10"]),
        ("1, PASSES + 1", ["20", "10"]),
        ("3, PASSES", ["19", "10"]),
        ("int(sys.argv[1])", ["50", "100", "10"]),
    ],
)
def test_what_is_done_once_a_pass_is_not_made_rarer_than_the_passes(tmp_path, passes, values):
    made = program(tmp_path, train_py=SHOWN.format(passes=passes))
    found = finding("logging", made.line("train.py", "    keep(losses)"), ["every_nth"])
    candidates, _, _ = made.plan(summary(), found)
    assert [each.value for each in candidates if each.knob == "every_nth"] == values


def test_what_answers_two_findings_is_tried_once(tmp_path):
    made = program(tmp_path, train_py=SHOWN.format(passes="PASSES"))
    here = made.line("train.py", "    keep(losses)")
    found = [finding(kind, here, ["every_nth"]) for kind in ("checkpoint", "logging")]
    candidates, _, _ = made.plan(summary(), *found)
    tried = [(each.value, each.finding) for each in candidates if each.knob == "every_nth"]
    assert len(tried) == len({value for value, _ in tried}) and {kind for _, kind in tried} == {"checkpoint"}
    assert "(epoch + 1) %" in candidates[0].diff  # the last one of a run is kept


def test_the_last_checkpoint_of_a_run_is_kept(tmp_path):
    made = program(tmp_path, train_py=SHOWN.format(passes="PASSES"))
    found = finding("checkpoint", made.line("train.py", "    keep(losses)"), ["every_nth"])
    tests = {each.value: added(each)[0].strip() for each in made.plan(summary(), found)[0] if each.knob == "every_nth"}
    assert tests == {"20": "if (epoch + 1) % 20 == 0:", "10": "if (epoch + 1) % 10 == 0:"}
    made = program(tmp_path / "more", train_py=SHOWN.format(passes="PASSES").replace("40", "99"))
    tests = {each.value: added(each)[0].strip() for each in made.plan(summary(), found)[0] if each.knob == "every_nth"}
    assert tests["50"] == "if (epoch + 1) % 50 == 0 or epoch + 1 == PASSES:"


def test_of_two_findings_the_checkpoints_decides_which_is_kept(tmp_path):
    made = program(tmp_path, train_py=SHOWN.format(passes="PASSES"))
    here = made.line("train.py", "    keep(losses)")
    candidates, _, _ = made.plan(summary(), *(finding(kind, here, ["every_nth"]) for kind in ("logging", "checkpoint")))
    tried = [each for each in candidates if each.knob == "every_nth"]
    assert [each.finding for each in tried] == ["checkpoint"] * len({each.value for each in tried})


def test_an_interval_of_nothing_is_the_program_s_own_failure(tmp_path):
    made = program(tmp_path, train_py=SHOWN.format(passes="PASSES"))
    found = finding("checkpoint", made.line("train.py", "    keep(losses)"), ["every_nth"])
    assert added(made.propose("every_nth", summary(), value="0", findings=(found,)))[0].strip() == "if (epoch + 1) % 0 == 0:"


@pytest.mark.parametrize("passes", ["1", "2"])
def test_what_happens_once_or_twice_is_not_made_rarer(tmp_path, passes):
    made = program(tmp_path, train_py=SHOWN.format(passes=passes))
    found = finding("checkpoint", made.line("train.py", "    keep(losses)"), ["every_nth"])
    candidates, refused, _ = made.plan(summary(), found)
    assert "every_nth" not in [each.knob for each in candidates]
    assert any("in the whole loop" in each.reason for each in refused if each.knob == "every_nth")


def test_a_value_with_which_it_would_not_come_again_is_no_candidate(tmp_path):
    """Six epochs of a number that the source does not tell, each with a checkpoint: every fiftieth would be none."""
    made = program(tmp_path, train_py=SHOWN.format(passes="int(sys.argv[1])"))
    at = made.line("train.py", "    keep(losses)")
    run = summary(activities=(activity("Ckpt", at, count=6),))
    candidates, _, _ = made.plan(run, finding("checkpoint", at, ["every_nth"]))
    assert [each.value for each in candidates if each.knob == "every_nth"] == ["5"]
    once = summary(activities=(activity("Ckpt", at, count=1),))
    candidates, refused, _ = made.plan(once, finding("checkpoint", at, ["every_nth"]))
    assert "every_nth" not in [each.knob for each in candidates]
    assert any("the whole run does it once" in each.reason for each in refused if each.knob == "every_nth")
    assert made.propose("every_nth", once, value="50", findings=(finding("checkpoint", at),)), "whoever asks for a value gets it"


AVERAGED = """
import numpy as np
import torch


def validate(model, loader):
    total = []
    model.eval()
    with torch.no_grad():
        for batch in loader:
            total.append(model(batch).item())
    mean = np.average(total)
    model.train()
    return mean


for epoch in range(90):
    for step, batch in enumerate(batches):
        loss = model(batch).mean()
        loss.backward()
        optimizer.step()
        print(validate(model, held_out))
"""


def test_a_mean_is_not_left_with_nothing(tmp_path):
    made = program(tmp_path, train_py=AVERAGED)
    at = made.line("train.py", "        for batch in loader")
    candidates, _, _ = made.plan(summary(), finding("evaluation", at, ["every_nth"]))
    assert all("total" not in "".join(added(each)) for each in candidates if each.knob == "every_nth"), "the whole call, or nothing"
