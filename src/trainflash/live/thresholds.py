"""Every number that the live triage compares with, each with its source.

Sources: T1 to T23 are the sections of the throughput guide that this tool grew from; "measured" was measured on a 2-core CPU machine with
torch 2.13.0; "own" is a choice, with its reason.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Thresholds:
    """Shares are of the samples of a training process's main thread, CPU is in cores."""

    listed: float = 0.10  # own: 200 samples tell a share of 10 % to within 4 points
    high: float = 0.30  # own: as in a diagnosis with the probe
    tie: float = 0.05  # own: about one standard error of a share at 100 samples
    least_samples: int = 40  # own: fewer stacks leave a share uncertain by more than 15 points

    # Hung.
    least_still_s: float = 4.0  # own: ordinary steps, checkpoints aside, are shorter
    still_cpu: float = 0.005  # measured: a thread that waits forever takes 0.0000 to 0.0005 cores, a loop of one 5 ms step a second 0.005
    still_switches: float = 2.0  # measured: a waiting DataLoader loop looks up every 5 s; a step needs several a second
    still_samples: float = 0.98  # own: a stack read without stopping the process may be torn once in a hundred times
    device_still_samples: int = 150  # own: a host that spins for the device computes too, so it must stand still for very long

    # Input.
    pegged: float = 0.6  # T3: a worker at about 100 % CPU; time in which it is ready and has no core counts, as on a busy machine
    idle: float = 0.3  # T1: both idle is input/output; a process that mostly waits stays below
    # Threads.
    busy_thread: float = 0.05  # own: a pool thread that spins or computes at all
    threads_over: float = 1.25  # own: as in a diagnosis with the probe
    thread_wait: float = 0.2  # measured: pools of threads without cores wait a quarter of the time and more
    # Devices and machine.
    gpu_idle: float = 0.3  # T1: low utilisation
    gpu_busy: float = 0.9  # T1: above 90 % means bound by the GPU
    gpu_low_power: float = 0.5  # T2: full utilisation at half the power is a trickle of tiny kernels
    throttled: float = 0.25  # T2: slowed for a quarter of the time
    memory_pressure: float = 0.10  # own: stalled for memory a tenth of the time
    holds_gil: float = 0.5  # own: Python, not a library's native code, in most looks


DEFAULT = Thresholds()
