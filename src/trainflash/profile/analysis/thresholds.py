"""Every number that the analysis compares with, in one place, each with its source.

"own" is a choice, with its reason; "measured" was measured on the public traces that the tests read.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Thresholds:
    """Durations in nanoseconds where the name says so; shares from 0 to 1."""

    # Steps.
    warmup_over: float = 1.25  # measured: a first profiled step of 1.43 and 1.3 times the others' median; steady ones stay below 1.2
    warmup_most: float = 1 / 3  # own: a trace that warms up for more than a third of its steps has no steady part to compare with
    class_steps: int = 6  # own: two kinds of steps can't be told from noise in fewer
    class_ratio: float = 1.2  # own: a heavier kind that costs a fifth more can pay for a look
    calls_least: int = 3  # own: fewer calls of a compiled function show no loop
    stop_share: float = 0.1  # measured: the mark that a profiler opens as it stops took 0.5 % of a step
    ahead: float = 0.5  # own: a host that is half a step ahead of its device marks no step's time; measured: 0.09 where it reads losses
    class_explained: float = 0.8  # own: the split must explain this much of the variance, noise around one mean gives 0.64 at best

    # Devices.
    device_least: float = 0.01  # own: a barrier or a copy that strays onto a neighbour's device makes it no device of this process

    # Idle time.
    untraced_ns: int = 1_000_000  # own: Python between two operators takes 5 to 50 µs; a millisecond without any event is other work
    payload_ns: int = 10_000  # own: work of less than 10 µs is set-up beside the op that follows it
    payload_ahead: int = 8  # own: set-up work comes in handfuls
    one_off_ns: int = 1_000_000  # own: what a step lacks is looked for from a millisecond on
    one_off_share: float = 0.05  # own: shorter than what is listed, a stall changes no advice
    one_off_like: float = 0.25  # own: two stretches of which one is four times the other are not the same thing
    context_ns: int = 100_000_000  # measured: making a device's context takes 0.12 to 19 s; no other call that prepares takes 0.1
    first_use_over: float = 10  # measured: first uses of cuDNN's and cuBLAS' kernels wait 20 to 10,000 times as long as later ones
    usual_from: int = 16  # own: what is usual cannot be told from fewer device events
    dispatch_ns: int = 50_000  # the same figures: operators that follow each other in less are dispatched one by one
    launch_ns: int = 30_000  # measured: an idle stream begins 4 to 30 µs after the call
    latency_ns: int = 100_000  # own: from 0.1 ms on something holds the work
    staging_bytes_per_ns: float = 1.0  # own: pageable memory is staged at 2 to 6 GB/s, at 1 on slow hosts
    staging_ns: int = 200_000  # own: of a copy whose bytes are not recorded
    gap_ns: int = 1_000  # own: up to a microsecond passes between two queued kernels of a busy stream
    short_kernel_ns: int = 10_000  # own: launching takes 5 to 10 µs, so that shorter kernels cannot hide it
    shifted_ns: int = 50_000  # measured: collectives end within 1 to 7 µs of each other on aligned clocks

    # What is worth a candidate. Shares of the window.
    listed: float = 0.05  # the same share from which `trainflash diagnose` lists a cost
    waiting: float = 0.5  # own: communication that waits more than it transfers has a late rank, not a slow network
    parameters: int = 16  # own: copies one by one; a batch has fewer tensors
    recurring: float = 0.25  # own: copies of two steps or more begin over at least a third of their window, those of a model at its begin
    startup_most: float = 0.7  # own: what little is left of a window beside start-up is no steady part of a run
    unpinned: float = 0.01  # own: copies are short, but pinning is one word
    optimizer: float = 0.15  # own: fused and foreach optimizers of healthy models stay below a tenth
    layout: float = 0.05  # own: a twentieth of the device's time in layout changes is no by-product
    function: float = 0.3  # own: of the host's window in one function of the program; below that no single one stands out
    # Part of a cost that its cure usually saves, for the order alone: the figures that `trainflash diagnose` ranks by. No bounds.
    half_saving: float = 0.2
    attention_saving: float = 0.4
    optimizer_saving: float = 0.7
    fusing_saving: float = 0.3  # own: of two kernels in a row one of four passes over memory is left out, of longer chains up to half
    moving: float = 0.2  # own: below a fifth of the window they are what stands between products in any model
    busy: float = 0.8  # own: a device that computes for four fifths of the time has no larger cost than its kernels
    within: float = 0.5  # own: what takes half of the computing is what a busy device computes at
    mostly: float = 0.5  # own: where nothing is listed and most of the time is computing, computing is what there is
    attention_softmax: float = 0.5  # own: written-out attention multiplies about as long as it normalizes
    between_kernels_us: float = 10.0  # measured: a busy stream takes 1 to 8 µs between two queued kernels
    many_collectives: float = 50  # own: a bucket of 25 MB makes 4 to 40 of them a step for models of 0.1 to 1 GB
    small_collective_us: float = 1000.0  # own: one that takes a millisecond is no longer mostly latency


DEFAULT = Thresholds()
