"""What the trainer is told."""

import os

from transformers import TrainingArguments

FIXED = os.environ.get("PLANTED_FIX") == "1"


def arguments(folder: str) -> TrainingArguments:
    return TrainingArguments(
        output_dir=folder,
        max_steps=int(os.environ.get("PLANTED_STEPS", 600)),
        per_device_train_batch_size=40,
        per_device_eval_batch_size=64 if FIXED else 1,
        eval_strategy="steps",
        eval_steps=20,
        learning_rate=1e-3,
        lr_scheduler_type="constant",
        optim="adamw_torch_fused",
        logging_steps=50,
        save_strategy="no",
        use_cpu=True,
        disable_tqdm=True,
        report_to=[],
        seed=9,
    )
