"""Real loaders and real training threads: what making a batch costs, sample by sample and line by line."""

from __future__ import annotations

from pathlib import Path

import pytest
from probed import PROGRAMS, plain, probed

from trainflash.schema import LineCost, PaddedField, Summary
from trainflash.summary import summarize


def summary(folder: Path, *options: str, **extra: str) -> Summary:
    run = probed(folder, "input_kinds.py", *options, capture="diagnose", **extra)
    assert run.returncode == 0, run.output
    found = summarize(run.trace, run="r", project="p")
    assert found.swallowed == {}
    return found


def line_of(text: str, which: int = 1) -> int:
    lines = (PROGRAMS / "input_kinds.py").read_text().splitlines()
    return [number for number, line in enumerate(lines, 1) if text in line][which - 1]


def of_part(found: Summary, role: str, part: str) -> list[LineCost]:
    return [line for line in found.lines if (line.role, line.part) == (role, part)]


@pytest.mark.parametrize("subset", [pytest.param(0, marks=pytest.mark.full), 1])
def test_slow_samples_are_named_by_index_and_file(tmp_path, subset):
    found = summary(tmp_path, "kind=files", "workers=2", "epochs=2", "steps=20", f"subset={subset}")
    (loader,) = found.loaders
    place = 159 - 37 if subset else 37  # in a Subset the other way round
    expected = {(place, "images/0037.png"), (159 - 71 if subset else 71, "images/0071.png")}
    assert {(sample.index, sample.file) for sample in loader.slow_samples} >= expected
    assert (loader.dataset, loader.dataset_location.function) == ("Rows", "Rows.__getitem__")
    slow = next(sample for sample in loader.slow_samples if sample.index == place)
    assert slow.ms > 40 and slow.times in (1, 2) and 0.2 < slow.usual_ms < 10  # less the time that the worker had no core
    assert not loader.batched and loader.runqueue_share is not None
    assert loader.draws is False
    inside = of_part(found, "worker", "getitem")
    assert inside[0].location.function == "Rows.__getitem__"
    assert all(line.location.function != "main" for line in found.lines if line.role == "worker")


@pytest.mark.full
@pytest.mark.parametrize("workers", [0, 1])
def test_slow_samples_of_a_loader_that_makes_no_batches(tmp_path, workers):
    (loader,) = summary(tmp_path, "kind=files", "single=1", f"workers={workers}", "steps=20", "epochs=2").loaders
    assert {(sample.index, sample.file) for sample in loader.slow_samples} >= {(37, "images/0037.png"), (71, "images/0071.png")}
    assert loader.batch_size is None and not loader.batched


@pytest.mark.full
@pytest.mark.parametrize("workers", [0, 2])
def test_lines_in_getitem_and_in_collate_are_told_apart(tmp_path, workers):
    found = summary(tmp_path, "kind=parts", f"workers={workers}", "ms=8")
    role = "worker" if workers else "main"
    inside, joining = of_part(found, role, "getitem"), of_part(found, role, "collate")
    assert sum(line.share for line in inside) > sum(line.share for line in joining) > 0.1
    (loader,) = found.loaders
    assert 0 <= loader.runqueue_share <= 1 and loader.fetch_cpu_share + loader.runqueue_share > 0.8  # it only computes


@pytest.mark.full
def test_waiting_is_neither_computing_nor_queueing(tmp_path):
    (loader,) = summary(tmp_path, "kind=waits", "workers=1", "ms=40").loaders
    assert loader.made_of_waited is not None and loader.made_of_waited > 0
    assert loader.fetch_cpu_share + loader.runqueue_share < 0.6


@pytest.mark.full
def test_a_dataset_that_makes_whole_batches_times_no_samples(tmp_path):
    (loader,) = summary(tmp_path, "kind=whole").loaders
    assert loader.batched and loader.slow_samples == ()


def test_random_work_never_repeats_and_pure_work_does(tmp_path):
    found = summary(tmp_path, "kind=repeats", "epochs=3", "steps=20")
    repeated = {work.qualname: work for work in found.repeated}
    assert {"table", "decode"} <= repeated.keys() and not {"shifted", "flipped", "Repeating.__getitem__"} & repeated.keys()
    assert repeated["table"].distinct == 1 and repeated["decode"].distinct == 160
    assert repeated["table"].repeats == repeated["table"].calls and repeated["decode"].repeats == repeated["decode"].calls
    assert min(repeated["table"].share, repeated["decode"].share) > 0.02
    assert found.loaders[0].draws


@pytest.mark.full
def test_work_in_an_iterable_dataset_repeats(tmp_path):
    found = summary(tmp_path, "kind=stream")
    work = next(work for work in found.repeated if work.qualname == "table")
    assert work.share > 0.3 and work.during == "fetch"


def test_work_in_the_owner_s_forward_repeats_without_arguments_of_its_own(tmp_path):
    found = summary(tmp_path, "kind=mask")
    work = next(work for work in found.repeated if work.qualname == "Net.mask")
    assert (work.during, work.is_method, work.repeats) == ("forward", True, 3)
    assert 0.25 < work.share < 1.0


@pytest.mark.full
def test_a_batch_made_from_the_loader_s_indices_is_data(tmp_path):
    found = summary(tmp_path, "kind=indices")
    assert found.phases["Data"].share > 0.4
    hottest = max((line for line in found.lines if line.phase == "Data"), key=lambda line: line.share)
    assert hottest.location.line == line_of("# the line in the data function")


@pytest.mark.full
@pytest.mark.parametrize("thread", [0, 1])
@pytest.mark.parametrize(("kind", "which"), [("long_torch", 1), ("long_sleep", 2), ("long_python", 3)])
def test_one_long_call_into_c_gets_its_time(tmp_path, kind, which, thread):
    found = summary(tmp_path, f"kind={kind}", "steps=15", f"thread={thread}", TRAINFLASH_SAMPLE_HZ="50")
    line = max((line for line in found.lines if line.phase == "Other"), key=lambda line: line.share)
    assert line.location.line == line_of("# the long call", which) and line.share > 0.5


@pytest.mark.full
def test_a_spawned_worker_is_sampled(tmp_path):
    found = summary(tmp_path, "kind=busy", "workers=1", "start=spawn", "ms=8")
    assert sum(line.share for line in of_part(found, "worker", "getitem")) > 0.3


@pytest.mark.full
def test_sampling_switched_off_gives_no_lines_and_the_same_losses(tmp_path):
    options = ("kind=repeats", "steps=12", "workers=2", "epochs=2")
    alone = plain("input_kinds.py", *options)
    off = probed(tmp_path / "off", "input_kinds.py", *options, capture="diagnose", TRAINFLASH_SAMPLE_HZ="0")
    on = probed(tmp_path / "on", "input_kinds.py", *options, capture="diagnose", TRAINFLASH_SAMPLE_HZ="200")
    assert off.output == on.output == alone != ""
    lines = [summarize(run.trace, run="r", project="p").lines for run in (off, on)]
    assert lines[0] == () and lines[1] != ()


@pytest.mark.full
def test_work_ahead_of_the_training_and_what_a_library_does_for_a_line_are_named(tmp_path):
    library = tmp_path / "site-packages"
    library.mkdir()
    (library / "cleaner.py").write_text("import gc\n\n\ndef clean():\n    gc.collect()\n")
    run = probed(tmp_path / "run", "ahead.py", str(library), capture="diagnose")
    assert run.returncode == 0, run.output
    found = summarize(run.trace, run="r", project="p")
    source = (PROGRAMS / "ahead.py").read_text().splitlines()

    def line_with(text: str) -> int:
        return next(number for number, line in enumerate(source, 1) if text in line)

    costliest, seconds = found.startup.lines[0]
    assert (costliest.line, costliest.function) == (line_with("the line that takes"), "prepare")
    assert 0.3 < seconds <= found.startup.own_s < found.startup_s
    assert found.loaders[0].collate_location.function == "Join.__call__"
    assert found.collections.location.line == line_with("clean()  # collects")


@pytest.mark.full
def test_where_a_library_joins_samples_the_line_that_made_its_object_is_told(tmp_path):
    run = probed(tmp_path / "run", "hf_trainer.py", str(tmp_path / "out"), capture="diagnose")
    program = (PROGRAMS / "hf_trainer.py").read_text().splitlines()
    made = next(number for number, line in enumerate(program, 1) if "DefaultDataCollator()" in line)
    loaders = summarize(run.trace, run="r", project=str(PROGRAMS)).loaders
    assert {(loader.collator_made_at.line, loader.collate_location) for loader in loaders} == {(made, None)}


def test_fields_that_end_in_padding_of_all_rows_are_named(tmp_path):
    run = probed(tmp_path, "padded_samples.py", capture="diagnose")
    assert run.returncode == 0, run.output
    found = summarize(run.trace, run="r", project="p")
    assert found.padded == (PaddedField("input_ids", 1, 64), PaddedField("attention_mask", False, 64), PaddedField("labels", -100, 64))
    assert found.common_padding_share > 0.5


TOKENIZED = """
import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from torch import nn
from transformers import PreTrainedTokenizerFast

torch.manual_seed(0)
words = Tokenizer(models.WordLevel({"[PAD]": 0, "[UNK]": 1, "a": 2, "b": 3}, unk_token="[UNK]"))
words.pre_tokenizer = pre_tokenizers.Whitespace()
tokenizer = PreTrainedTokenizerFast(tokenizer_object=words, pad_token="[PAD]", unk_token="[UNK]")
texts = ["a b " * (1 + number % 7) for number in range(64)]
rows = tokenizer(texts, padding=PADDING, max_length=64, truncation=True)
ids = torch.tensor([row + [0] * (64 - len(row)) for row in rows["input_ids"]])
loader = torch.utils.data.DataLoader(ids, batch_size=8, shuffle=True)
model = nn.Sequential(nn.Embedding(4, 8), nn.Flatten(), nn.Linear(512, 2))
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for epoch in range(4):
    for batch in loader:
        loss = model(batch).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(loss.item().hex())
"""


@pytest.mark.parametrize(("padding", "seen"), [('"max_length"', True), ("False", False)])
def test_the_line_whose_tokenizer_pads_to_a_fixed_length(tmp_path, padding, seen):
    pytest.importorskip("transformers")
    path = tmp_path / "train.py"
    path.write_text(TOKENIZED.replace("PADDING", padding), encoding="utf-8")
    run = probed(tmp_path / "run", path, capture="diagnose", TRAINFLASH_OWN=str(tmp_path))
    assert run.returncode == 0 and run.output == plain(path) and run.rank.swallowed == {}
    found = run.rank.batch.fixed_width_at
    assert (found is not None) == seen
    if found is not None:
        assert "tokenizer(texts" in path.read_text().splitlines()[found.line - 1]
