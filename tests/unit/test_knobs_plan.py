"""Plans: the order of candidates, refusals and briefs, and the example programs as their runs would show them."""

from __future__ import annotations

import dataclasses
import shutil
from pathlib import Path

import pytest
from knob_scenes import Program, activity, added, finding, git, loader, program, repeated, setting, summary

from trainflash.errors import UsageError
from trainflash.knobs import knob_files, splices
from trainflash.schema import Command, Location, Plan, from_plain, to_plain

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def example(tmp_path, name, command="python train.py") -> Program:
    shutil.copytree(EXAMPLES / name, tmp_path / name)
    git(tmp_path / name, "init", "-q")
    git(tmp_path / name, "add", "-A")
    return Program(tmp_path / name, Command(tuple(command.split())))


def test_digits_gets_a_cache_and_workers(tmp_path):
    made = example(tmp_path, "digits_cnn")
    item = made.line("train.py", "def __getitem__")
    train = loader("train", made.line("train.py", "train_loader = DataLoader"), dataset_location=item, dataset_len=1437, sample_bytes=3200)
    test = loader("eval", made.line("train.py", "test_loader = DataLoader"), batch_size=128, dataset_location=item)
    run = summary(
        loaders=(train, test),
        repeated=(
            repeated(item, "DigitDataset.__getitem__", share=0.8, result_bytes=3200),
            repeated(made.line("train.py", "def smooth("), "smooth", share=0.3, hashable=False),
        ),
    )
    found = finding("input_cpu", made.line("train.py", "rows[:, low]"), ["memoize_function", "dataloader_workers"])
    candidates, refused, _ = made.plan(run, found, finding("repeated_work", item, ["memoize_function"]))
    assert [(each.knob, each.value) for each in candidates] == [
        ("memoize_function", "functools.lru_cache(maxsize=2048) on DigitDataset.__getitem__"),
        ("dataloader_workers", "3"),
        ("dataloader_workers", "4"),
        ("dataloader_workers", "1"),
    ]
    assert {each.risk for each in candidates} == {"same"}
    assert {"prefetch_factor"} <= {each.knob for each in refused}
    for candidate in candidates:
        git(made.root, "apply", "--check", "-", text=candidate.diff)
    assert added(candidates[1]) == ["    train_loader = DataLoader(train_set, batch_size=args.batch_size, shuffle=True, num_workers=3)"]
    made.apply(candidates[0])


def test_wine_switches_anomaly_mode_off_in_its_configuration(tmp_path):
    made = example(tmp_path, "wine_mlp", "python train.py --config config.yaml")
    at = made.line("trainer.py", "set_detect_anomaly")
    run = summary(settings=(setting("anomaly_mode", at),))
    candidates, _, _ = made.plan(run, finding("debug_api", at, ["anomaly_off"]))
    assert [(each.knob, each.value, each.risk) for each in candidates] == [("anomaly_off", "False", "same")]
    assert added(candidates[0]) == ["  detect_anomaly: false"]
    made.apply(candidates[0])
    assert made.read("config.yaml").count("\n") == (EXAMPLES / "wine_mlp" / "config.yaml").read_text().count("\n")
    again, refused, _ = made.plan(run, finding("debug_api", at, ["anomaly_off"]))
    assert again == () and any("already False" in each.reason for each in refused)


def test_charlm_keeps_its_corpus(tmp_path):
    made = example(tmp_path, "stdlib_charlm")
    at = made.line("train.py", "def load_corpus(")
    run = summary(repeated=(repeated(at, "load_corpus", result_bytes=4_000_000, distinct=2, share=0.7),))
    data = finding("input_cpu", made.line("train.py", "STOI[c] for c"), ["memoize_function"])
    candidates, _, _ = made.plan(run, data, finding("repeated_work", at, ["memoize_function"]))
    assert [(each.knob, each.finding) for each in candidates] == [("memoize_function", "input_cpu")]
    assert added(candidates[0]) == ["import functools", "@functools.lru_cache(maxsize=None, typed=True)"]
    made.apply(candidates[0])


def test_charlm_never_caches_the_function_that_draws_batches(tmp_path):
    made = example(tmp_path, "stdlib_charlm")
    at = made.line("train.py", "def get_batch(")
    with pytest.raises(UsageError, match="draws random numbers"):
        made.propose("memoize_function", summary(repeated=(repeated(at, "get_batch"),)))


def test_docstrings_evaluate_in_larger_batches_and_less_often_only_after_that(tmp_path):
    made = example(tmp_path, "docstring_classifier")
    outside = Location("/lib/transformers/trainer.py", 1)
    run = summary(
        loaders=(loader("train", outside, batch_size=16), loader("eval", outside, batch_size=1, dataset_len=600)),
        activities=(activity("Eval", made.line("train.py", "trainer.train()"), grad_enabled=False),),
    )
    candidates, refused, _ = made.plan(run, finding("evaluation", None, ["eval_cadence", "eval_batch_size"]))
    assert [(each.knob, each.value, each.risk) for each in candidates] == [
        ("eval_batch_size", "8", "same"),
        ("eval_batch_size", "32", "same"),
        ("eval_cadence", "200", "cadence"),
        ("eval_cadence", "100", "cadence"),
        ("eval_cadence", "40", "cadence"),
    ]
    assert {each.knob for each in refused} == {"asked_first", "every_nth"}
    for candidate in candidates:
        git(made.root, "apply", "--check", "-", text=candidate.diff)


def test_brief_where_no_knob_fits(tmp_path):
    made = program(tmp_path, train_py="".join(f"line_{number} = {number}\n" for number in range(1, 61)))
    candidates, refused, briefs = made.plan(summary(), finding("host_code", Location("train.py", 30)), finding("compute"))
    asked = [knob.name for knob in knob_files.catalogue() if "host_code" in knob.answers]
    assert candidates == () and sorted(each.knob for each in refused) == sorted(asked)
    (brief,) = briefs
    rows = brief.code.splitlines()
    assert len(rows) == 31 and rows[15] == ">   30  line_30 = 30"
    assert brief.keep_the_same and brief.judged_by


def test_a_brief_is_whole_in_itself(tmp_path):
    body = "".join(f"    step_{number}()\n" for number in range(1, 41))
    made = program(tmp_path, train_py=f"import os\n\n\n@hook\ndef train():\n{body}\n\ndef other():\n    pass\n")
    found = finding("host_code", Location("train.py", 20))
    (brief,) = made.plan(summary(), found)[2]
    rows = brief.code.splitlines()
    assert (rows[0].split()[1], rows[-1].split()[1]) == ("@hook", "step_40()"), "the whole function, and nothing else"
    assert [row for row in rows if row.startswith(">")] == [">   20  " + "    step_15()"]
    assert (brief.finding, brief.share, brief.phase) == ("host_code", found.share, found.phase)
    assert "--patch" in brief.try_with and "same order" in brief.keep_the_same and "paired runs" in brief.judged_by
    outside = finding("host_code", Location("/lib/x.py", 3))
    assert made.plan(summary(), outside)[2][0].code == ""


@pytest.mark.parametrize(("draws", "risk"), [(True, "order"), (False, "same"), (None, "same")])
@pytest.mark.parametrize(("knob", "workers"), [("dataloader_workers", 0), ("persistent_workers", 2)])
def test_random_numbers_in_the_data_need_agreement_before_workers_change(tmp_path, knob, workers, draws, risk):
    made = program(tmp_path, train_py=f"from torch.utils.data import DataLoader\nloader = DataLoader(data, num_workers={workers})\n")
    at = made.line("train.py", "DataLoader(")
    run = summary(loaders=(loader("train", at, num_workers=workers, shuffles=False, draws=draws),))
    candidate = made.propose(knob, run, findings=(finding("worker_startup", at, [knob]),))
    assert (candidate.risk, "random numbers" in candidate.why) == (risk, draws is True)


def test_risk_depends_on_the_run(tmp_path):
    made = program(tmp_path, train_py="from torch.utils.data import DataLoader\ntrain = DataLoader(ds, shuffle=True, num_workers=2)\n")
    at = Location("train.py", 2)
    train = loader("train", at, num_workers=2)
    found = finding("worker_startup", at, ["persistent_workers"])
    candidates, _, _ = made.plan(summary(loaders=(train,)), found)
    persistent = [each for each in candidates if each.knob == "persistent_workers"]
    assert [each.risk for each in persistent] == ["order"] and "seeds new workers" in persistent[0].why
    assert candidates[-1] is persistent[0], "harmless ones come first"
    own = dataclasses.replace(train, own_generator=True)
    candidates, _, _ = made.plan(summary(loaders=(own,)), found)
    assert (candidates[0].knob, candidates[0].risk) == ("persistent_workers", "same")


def test_preconditions_refuse_with_their_reason(tmp_path):
    made = program(tmp_path, train_py="from torch.utils.data import DataLoader\ntrain = DataLoader(ds)\n")
    at = Location("train.py", 2)
    _, refused, briefs = made.plan(summary(loaders=(loader("train", at, iterable=True),)), finding("input_io", at))
    assert any("each worker would yield all of it" in each.reason for each in refused)
    assert {each.finding for each in briefs} == {"input_io"}
    with pytest.raises(UsageError, match="CUDA"):
        made.propose("pin_memory", summary(loaders=(loader("train", at),)))
    on_gpu = summary(loaders=(loader("train", at),), device="cuda:NVIDIA H200")
    assert added(made.propose("pin_memory", on_gpu)) == ["train = DataLoader(ds, pin_memory=True)"]


def test_values_by_hand_are_checked(tmp_path):
    made = program(tmp_path, train_py="from torch.utils.data import DataLoader\ntrain = DataLoader(ds)\nother = DataLoader(dt)\n")
    run = summary(loaders=(loader("train", Location("train.py", 2)),))
    assert added(made.propose("dataloader_workers", run, value="7", at=Location("train.py", 3))) == [
        "other = DataLoader(dt, num_workers=7)"
    ]
    for value in ("many", "true", "-1", "1.5", "[1"):
        with pytest.raises(UsageError, match=r"is no value|less than nothing"):
            made.propose("dataloader_workers", run, value=value)
    with pytest.raises(UsageError, match=r"elsewhere\.py: is not a file"):
        made.propose("dataloader_workers", run, at=Location("elsewhere.py", 3))
    with pytest.raises(UsageError, match="no call of DataLoader at this line"):
        made.propose("dataloader_workers", run, at=Location("train.py", 1))


def test_a_file_that_cannot_be_parsed_is_left_alone(tmp_path):
    (tmp_path / "p").mkdir()
    made = Program(tmp_path / "p", Command(("python", "train.py")))
    (made.root / "train.py").write_bytes(b"train = DataLoader(ds\n")
    (made.root / "latin.py").write_bytes(b"# -*- coding: latin-1 -*-\n# \xe9\ntrain = DataLoader(ds)\n")
    for name, reason in (("train.py", "cannot be parsed"), ("latin.py", "only UTF-8")):
        _, refused, _ = made.plan(summary(loaders=(loader("train", Location(name, 1)),)), finding("input_io", None, ["dataloader_workers"]))
        assert any(reason in each.reason for each in refused)


def test_a_file_that_changes_while_the_edit_is_made_is_refused(tmp_path, monkeypatch):
    made = program(tmp_path, train_py="from torch.utils.data import DataLoader\ntrain = DataLoader(ds)\n")
    original = splices.contents

    def late(root, found):
        (root / "train.py").write_text("from torch.utils.data import DataLoader\n# x\ntrain = DataLoader(ds)  # and more\n")
        return original(root, found)

    monkeypatch.setattr(splices, "contents", late)
    with pytest.raises(UsageError, match=r"train\.py: changed while"):
        made.propose("dataloader_workers", summary(loaders=(loader("train", Location("train.py", 2)),)), value="2")


def test_code_outside_the_project_is_never_edited(tmp_path):
    made = program(tmp_path, train_py="import lib\n")
    outside = tmp_path.parent / "outside.py"
    outside.write_text("train = DataLoader(ds)\n")
    for place in (Location(str(outside), 1), Location("../outside.py", 1)):
        _, refused, _ = made.plan(summary(loaders=(loader("train", place),)), finding("input_io", None, ["dataloader_workers"]))
        assert refused


def test_only_files_that_the_program_reaches_are_asked(tmp_path):
    other = "from transformers import TrainingArguments\nargs = TrainingArguments('a', logging_steps=2)\n"
    made = program(tmp_path, "python -m pack.train", pack__train_py="from .conf import args\n", pack__conf_py=other, pack__old_py=other)
    candidate = made.propose("logging_cadence", summary())
    assert list(made.apply(candidate)) == ["pack/conf.py"]


def test_the_plan_is_a_document(tmp_path):
    made = example(tmp_path, "wine_mlp")
    at = made.line("trainer.py", "set_detect_anomaly")
    found = finding("debug_api", at, ["anomaly_off"])
    candidates, refused, briefs = made.plan(summary(settings=(setting("anomaly_mode", at),)), found, finding("host_code", at))
    made_plan = Plan("r", "2026-01-01T00:00:00Z", candidates, refused, briefs)
    assert from_plain(Plan, to_plain(made_plan)) == made_plan


def test_a_loader_that_each_step_iterates_anew_gets_no_workers(tmp_path):
    head = "from torch.utils.data import DataLoader\nbatches = DataLoader(data, batch_size=8)\n"
    made = program(tmp_path, train_py=f"{head}for step in range(100):\n    use(next(iter(batches)))\n")
    anew = summary(steps=95, warmup_steps=5, loaders=(loader("train", made.line("train.py", "batches ="), epochs=100),))
    with pytest.raises(UsageError, match="about one batch is taken of each pass"):
        made.propose("dataloader_workers", anew)
    once = dataclasses.replace(anew, loaders=(dataclasses.replace(anew.loaders[0], epochs=4),))
    assert added(made.propose("dataloader_workers", once, value="2")) == ["batches = DataLoader(data, batch_size=8, num_workers=2)"]
