"""Every number that a rule compares with, in one place, each with its source.

Sources: T1 to T23 are the sections of the throughput guide that this tool grew from; "rule of the bench" is the decision rule of
`trainflash.stats`; "measured" was measured on a 2-core CPU machine with torch 2.13; "own" is a choice, with its reason.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Thresholds:
    """All shares are of the steady wall time, from 0 to 1."""

    # What counts as a cost, and as the bottleneck.
    listed: float = 0.05  # own: the least detectable gain of the bench is 1.04 to 1.09, which a 5 % cost can just reach
    dominant: float = 0.10  # rule of the bench: four starts can show 1.09 at best, so a smaller cost alone proves nothing
    dominant_together: float = 0.25  # own: many small costs that add up to a quarter are no healthy program
    high: float = 0.30  # own: a third of the wall time, a gain of up to 1.4
    tie: float = 0.03  # measured: attribution of a whole run is right within 1 point, lines within 1.8; twice that is a tie
    clear_lead: float = 0.15  # own: an unsteady run still names its bottleneck when it leads by five times the tie

    # When to abstain.
    min_steps: int = 10  # rule of the bench: its warm-up finder reads windows of ten steps
    unexplained: float = 0.25  # own: time in no phase and in no line that could turn the order of the findings over
    explained: float = 0.5  # own: host_code must find at least half of Other in the owner's lines

    # Input.
    io_cpu_share: float = 0.5  # T8: workers sit in read (near 0) or are CPU-pegged (near 1); the middle divides them
    io_cpu_share_of_workers: float = 0.3  # measured: workers that only compute fall to 0.45 on a busy machine, sleepers stay below 0.05
    collate_majority: float = 0.5  # own: collate is the name when it is the larger part of a batch's making
    collate_beside: float = 0.3  # own: and stands beside input_cpu when it is nearly as large
    tail_usual: float = 0.05  # T7: a bursty queue is usually full, so the usual (median) batch costs almost nothing
    tail_part: float = 0.7  # T7: and most of the wait comes from the few late batches
    tail_beyond_compute: float = 2.0  # measured: on a busy machine slow steps cost each phase the same milliseconds, within a factor of two
    repeated_calls: float = 0.2  # own: first calls of the few passes that a run shows count against it; later ones all repeat
    repeated_times: int = 3  # own: fewer may be chance; work done once a step is traced in a few early steps only

    # Compute and settings.
    anomaly_factor: float = 1.5  # measured: 1.2 (Linear 512) to 4.9 (Linear 64) on forward and backward; low on purpose
    anomaly_factor_most: float = 10.0  # T12: about ten times slower
    optimizer: float = 0.30  # measured: Adam without foreach or fused is 0.3 to 0.5 of the step of a small network
    optimizer_saving: float = 0.7  # measured: fused Adam takes 0.3 of the plain loop's time (foreach 0.85)
    threads_over: float = 1.25  # own: a quarter more runnable threads than cores is more than rounding of a quota
    runqueue_wait: float = 0.25  # measured: at a quarter of the time without a core, pools of threads spin for each other
    threads_spread: float = 2.0  # own: p95 ÷ median of forward and backward; one thread on a busy machine stays below
    padding: float = 0.3  # own: packing or bucketing rarely wins back more than half of what is padded
    startup: float = 0.5  # own: half of a run's life is worth a word, though importing torch alone may take seconds
    startup_first: float = 0.8  # own: a healthy program that trains for a fifth of its run is a start-up problem


DEFAULT = Thresholds()
