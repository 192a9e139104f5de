"""All rules, in one literal tuple. A rule is a function of signals and thresholds; it makes no claim where its signal is missing."""

from __future__ import annotations

from collections.abc import Callable

from trainflash.diagnosis.claims import Claim
from trainflash.diagnosis.compute_rules import debug_api, optimizer, padding, thread_oversubscription
from trainflash.diagnosis.input_rules import collate_beside, h2d, input_cost, repeated_work, worker_startup
from trainflash.diagnosis.periodic_rules import checkpoint, evaluation, host_code, logging, startup
from trainflash.diagnosis.signals import Signals
from trainflash.diagnosis.thresholds import Thresholds

Rule = Callable[[Signals, Thresholds], tuple[Claim, ...]]

RULES: tuple[Rule, ...] = (
    input_cost,
    collate_beside,
    worker_startup,
    repeated_work,
    h2d,
    evaluation,
    checkpoint,
    logging,
    debug_api,
    thread_oversubscription,
    host_code,
    optimizer,
    padding,
    startup,
)
REPORTED = (
    "input_cpu", "input_io", "input_tail", "collate", "worker_startup", "repeated_work", "h2d", "evaluation", "checkpoint", "logging",
    "debug_api", "thread_oversubscription", "host_code", "optimizer", "padding", "startup", "compute",
)  # fmt: skip
