"""All rules, in one literal tuple. A rule is a function of signals and thresholds; it makes no claim where its signal is missing."""

from __future__ import annotations

from collections.abc import Callable

from trainflash.diagnosis.claims import Claim
from trainflash.diagnosis.compute_rules import attention_kernel, frozen_network, padding, recompute, small_microbatch
from trainflash.diagnosis.device_rules import h2d, launch_overhead, python_in_network, sync_point
from trainflash.diagnosis.format_rules import memory_format, precision
from trainflash.diagnosis.input_rules import collate_beside, input_cost, repeated_work, tail_beside, worker_memory, worker_startup
from trainflash.diagnosis.lock_rules import lock_held_beside
from trainflash.diagnosis.optimizer_rules import optimizer, whole_tables
from trainflash.diagnosis.periodic_rules import checkpoint, evaluation, host_code, logging, startup, unheard
from trainflash.diagnosis.rank_rules import communication, rank_straggler
from trainflash.diagnosis.settings_rules import debug_api
from trainflash.diagnosis.shape_rules import recompilation, shape_instability
from trainflash.diagnosis.signals import Signals
from trainflash.diagnosis.site_rules import beside_network, callback, growth, slow_operator
from trainflash.diagnosis.system_rules import garbage_collection, memory_pressure, thread_oversubscription, throttling
from trainflash.diagnosis.thresholds import Thresholds
from trainflash.schema import KINDS

Rule = Callable[[Signals, Thresholds], tuple[Claim, ...]]

RULES: tuple[Rule, ...] = (
    input_cost,
    tail_beside,
    collate_beside,
    worker_startup,
    worker_memory,
    repeated_work,
    h2d,
    sync_point,
    launch_overhead,
    python_in_network,
    evaluation,
    checkpoint,
    logging,
    unheard,
    debug_api,
    precision,
    memory_format,
    thread_oversubscription,
    lock_held_beside,
    throttling,
    memory_pressure,
    garbage_collection,
    communication,
    rank_straggler,
    host_code,
    slow_operator,
    callback,
    beside_network,
    growth,
    optimizer,
    whole_tables,
    padding,
    attention_kernel,
    frozen_network,
    recompute,
    recompilation,
    shape_instability,
    small_microbatch,
    startup,
)
LIVE = ("hung",)  # told of a running process only, by `trainflash.live`
TRACED = ("stream_wait",)  # told of a profiler's trace only, by `trainflash.profile`
REPORTED = tuple(kind for kind in KINDS if kind not in (*LIVE, *TRACED))
