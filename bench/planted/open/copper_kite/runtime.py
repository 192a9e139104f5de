"""Training arguments that the projects of the group share."""

import os
from dataclasses import dataclass, field

from transformers import TrainingArguments

FIXED = os.environ.get("PLANTED_FIX") == "1"


@dataclass
class RecoverableArguments(TrainingArguments):
    """Jobs on the shared queue may be preempted, so they keep their last two states."""

    save_strategy: str = field(default="steps")
    save_steps: float = field(default=100 if FIXED else 2)
    save_total_limit: int | None = field(default=2)
    report_to: str = field(default="none")
    disable_tqdm: bool | None = field(default=True)
    use_cpu: bool = field(default=True)


@dataclass
class MeasuredArguments(RecoverableArguments):
    """With figures at a fixed pace and an evaluation now and then."""

    logging_steps: float = field(default=10)
    eval_strategy: str = field(default="steps")
    eval_steps: float = field(default=75)
    per_device_eval_batch_size: int = field(default=64)
