"""What the rules look at, derived once from a `Summary`. `None` means that it was not measured, so that a rule can abstain."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from trainflash.diagnosis.calm import COMPUTE, calm_share
from trainflash.diagnosis.input_signals import Input, WorkerStart, joined_at, phase_of, read_input, worker_start
from trainflash.diagnosis.lines import Sync, hottest, lines_in, same_line, syncs, unnamed
from trainflash.diagnosis.thresholds import Thresholds
from trainflash.schema import Activity, LineCost, LoaderFacts, Location, RepeatedWork, Summary, Threads


@dataclass(frozen=True)
class Signals:
    """One run, ready for the rules. A share is None when its phase was not recorded."""

    summary: Summary
    loader: LoaderFacts | None  # that training iterates
    data: Input | None
    worker_start: WorkerStart | None
    fwd_bwd: float | None
    compute: float | None  # Fwd + Bwd + Opt
    other: float
    other_calm: float  # without the stalls of a busy machine
    other_in_lines: float | None  # part of the wall that Other spends in the owner's lines; None: not sampled
    own_lines: tuple[LineCost, ...]  # of these, what no more specific cause explains
    syncs: tuple[Sync, ...]
    repeated: tuple[RepeatedWork, ...]
    repeated_phase: Mapping[Location, str]
    threads: Threads | None
    startup: float | None  # of the whole wall time; None: unknown, or the run was cut short
    on_gpu: bool
    device_idle: float | None  # part of the wall without device work; None: no device, or its times were not recorded
    host_bound: bool | None  # the device waits for the host; None: not measured

    def share(self, phase: str) -> float | None:
        """Share of `phase`, or None when the run has no record of it."""
        stat = self.summary.phases.get(phase)
        return None if stat is None else stat.share

    def activity(self, phase: str) -> Activity | None:
        """The costliest activity of `phase`."""
        found = [activity for activity in self.summary.activities if activity.phase == phase]
        return max(found, key=lambda activity: activity.count * activity.mean_ms, default=None)

    @property
    def computed_on(self) -> str:
        """What bounds the computing: the `device` that it runs on, or the `host` itself."""
        return "device" if self.on_gpu else "host"

    @property
    def batches_made_at(self) -> Location | None:
        """Where samples are joined: the hottest line of that, else what the loader says of it, else the data function.

        A function that the traced joining passed in goes before the one that was handed to the loader: samples may miss what is short.
        """
        joined = [line for line in self.summary.lines if line.phase == "Data" and line.part == "collate"]
        return joined_at(self.loader, joined) or self.summary.data_function

    @property
    def samples_padded_at(self) -> Location | None:
        """The same, and without a loader the hottest line that makes batches: a generator may leave the joining to another function."""
        making = lines_in(self.summary, "Data", "main", "") if self.loader is None else []
        return hottest(making) or self.batches_made_at

    def hottest(self, phase: str) -> Location | None:
        """The hottest of the owner's lines in `phase`, in the training process."""
        return hottest(lines_in(self.summary, phase))

    def exposed(self, share: float) -> float:
        """What of the host's `share` the device does not hide by its own work: no more than the device idles, where that was measured."""
        return share if self.device_idle is None else min(share, self.device_idle)


def read(summary: Summary, limits: Thresholds) -> Signals:
    """All signals of `summary`."""
    start = worker_start(summary, limits)
    fwd, bwd = (summary.phases.get(name) for name in ("Fwd", "Bwd"))
    compute = [summary.phases[name].share for name in COMPUTE if name in summary.phases]
    other = summary.phases["Other"].share if "Other" in summary.phases else max(0.0, 1.0 - summary.coverage)
    waits = syncs(summary, limits)
    on_gpu = summary.device.startswith("cuda")
    device = summary.device_time if on_gpu and summary.timeline == "device" else None
    begun = start.location if start is not None and start.beside > 0 else None
    startup = None
    if summary.startup_s is not None and summary.wall_s > 0 and not summary.stopped:
        startup = min(1.0, summary.startup_s / summary.wall_s)
    return Signals(
        summary=summary,
        loader=summary.busiest_loader("train"),
        data=read_input(summary, start, limits),
        worker_start=start,
        fwd_bwd=None if fwd is None and bwd is None else sum(stat.share for stat in (fwd, bwd) if stat is not None),
        compute=sum(compute) if compute else None,
        other=other,
        other_calm=calm_share(summary, "Other", limits) if "Other" in summary.phases else other,
        other_in_lines=min(other, sum(line.share for line in lines_in(summary, "Other"))) if summary.sampled_s else None,
        own_lines=tuple(line for line in unnamed(summary, "Other", waits, limits) if not begun or not same_line(line.location, begun)),
        syncs=waits,
        repeated=tuple(sorted(summary.repeated, key=lambda work: -work.share)),
        repeated_phase={work.location: phase_of(work, summary) for work in summary.repeated},
        threads=summary.threads,
        startup=startup,
        on_gpu=on_gpu,
        device_idle=None if device is None else min(1.0, max(0.0, 1.0 - device.busy_share)),
        host_bound=None if device is None or device.lag_share is None else device.lag_share <= limits.host_bound_lag,
    )
