"""Evaluation in larger batches."""

from __future__ import annotations

import pytest
from knob_scenes import finding, loader, program, summary

from trainflash.errors import UsageError


def test_a_trainer_that_drops_its_last_batch_keeps_its_size(tmp_path):
    source = (
        "from transformers import TrainingArguments\na = TrainingArguments('o', dataloader_drop_last=True, per_device_eval_batch_size=2)\n"
    )
    made = program(tmp_path, train_py=source)
    with pytest.raises(UsageError, match="given dataloader_drop_last"):
        made.propose("eval_batch_size", summary(loaders=(loader("eval", None, batch_size=2),)))


def test_a_loader_of_the_program_s_own_is_a_patch(tmp_path):
    made = program(tmp_path, train_py="from torch.utils.data import DataLoader\nval = DataLoader(ds, batch_size=32)\n")
    run = summary(loaders=(loader("eval", made.line("train.py", "DataLoader(ds"), batch_size=32),))
    with pytest.raises(UsageError, match="no call of Seq2SeqTrainingArguments or TrainingArguments"):
        made.propose("eval_batch_size", run, findings=[finding("evaluation")])
