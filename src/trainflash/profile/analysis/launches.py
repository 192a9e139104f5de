"""How work gets to the device: latency of launches, queues, synchronising calls, CUDA graphs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from trainflash.profile.analysis import words
from trainflash.profile.analysis.figures import ratio, stats, us
from trainflash.profile.analysis.intervals import distinct
from trainflash.profile.analysis.thresholds import DEFAULT, Thresholds
from trainflash.profile.analysis.timeline import Timeline
from trainflash.profile.analysis.view import CALLS
from trainflash.profile.events import Kind
from trainflash.schema.profile_ops import CudaGraphs, Launches


def launches(timelines: Sequence[Timeline], steps: int, limits: Thresholds = DEFAULT) -> Launches | None:
    """Kernels that begin within the windows, and the calls that launched them; None without kernels. `steps`: over all ranks, 0 unknown."""
    latency, delay, calls, durations = [], [], [], []
    synchronizing, waited, with_launch = 0, 0, 0
    for timeline in timelines:
        rank, device = timeline.rank, timeline.device
        inside = (device.start >= timeline.window[0]) & (device.start < timeline.window[1])
        kernel = inside & (rank.trace.events.kind[device.row] == Kind.KERNEL)
        durations.append((device.end - device.start)[kernel])
        known = np.flatnonzero(kernel & device.by_call)
        with_launch += len(known)
        took = device.start[known] - device.launch_ns[known]
        was_idle = _free_at(timeline)[known] <= device.launch_ns[known]
        latency.append(took[was_idle & (took >= 0)])
        delay.append(took[~was_idle & (took >= 0)])
        calls.append(rank.trace.events.duration_ns[distinct(device.launch[known])])
        rows = rank.rows(*CALLS)
        rows = rows[rank.named(rows, words.is_synchronising) & timeline.meets(rank.start[rows], rank.end[rows])]
        synchronizing += len(rows)
        waited += int((timeline.clip(rank.end[rows]) - timeline.clip(rank.start[rows])).sum())
    kernels = np.concatenate(durations) if durations else np.empty(0, np.int64)
    if not len(kernels):
        return None
    made = np.concatenate(calls)
    return Launches(
        kernels=len(kernels),
        kernels_with_launch=with_launch,
        kernels_per_step=ratio(len(kernels), steps),
        short_kernels_share=ratio(int((kernels < limits.short_kernel_ns).sum()), len(kernels)),
        mean_kernel_us=us(int(kernels.sum()) / len(kernels)),
        mean_call_us=us(int(made.sum()) / len(made)) if len(made) else None,
        launch_latency=stats(np.concatenate(latency)),
        queue_delay=stats(np.concatenate(delay)),
        synchronizing_calls=synchronizing,
        synchronizing_us=us(waited),
    )


def _free_at(timeline: Timeline) -> np.ndarray:
    """For each device event when the work before it on its stream ended."""
    device = timeline.device
    free = np.full(len(device), np.iinfo(np.int64).min)
    for track in np.unique(device.track):
        mine = np.flatnonzero(device.track == track)
        free[mine[1:]] = np.maximum.accumulate(device.end[mine])[:-1]
    return free


def cuda_graphs(timelines: Sequence[Timeline]) -> CudaGraphs | None:
    """Graph launches within the windows; None where there are none."""
    launched, kernels, time, whole = 0, 0, 0, 0
    for timeline in timelines:
        rank, device = timeline.rank, timeline.device
        inside = (device.start >= timeline.window[0]) & (device.start < timeline.window[1])
        rows = rank.rows(*CALLS)
        graphs = rows[rank.named(rows, words.is_graph_launch)]
        launched += int(((rank.start[graphs] >= timeline.window[0]) & (rank.start[graphs] < timeline.window[1])).sum())
        kernel = inside & (rank.trace.events.kind[device.row] == Kind.KERNEL)
        by_graph = kernel & (np.isin(device.launch, graphs) | (rank.trace.column("graph_node_id").take(device.row, 0) > 0))
        kernels += int(by_graph.sum())
        time += int((device.end - device.start)[by_graph].sum())
        whole += int((device.end - device.start)[kernel].sum())
    if not launched and not kernels:
        return None
    return CudaGraphs(launched, kernels, ratio(kernels, launched), ratio(time, whole))
