"""What traces are asked for."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from trainflash.profile.events import SIDE_COLUMNS


@dataclass(frozen=True)
class Request:
    """Exactly one of `trace_file`, `xplane_file`, `profile_dir`, `artifact`, `run_target` is given.

    `trace_file`: JSON traces (plain, gzip, one tar of them) or exports of nsys, one per rank. `xplane_file`: XPlane protobufs, one a host.
    `profile_dir`: see `directories`. `artifact`, `run_target`, `entity`, `project`, `alias`, `download_root`: see `wandb_runs`.
    `xplane_output_dir`: where xprof's tables are kept (needs the package xprof); `xplane_count_trace_events`: ask xprof how many events
    its trace viewer would show. `columns`: the side columns that are wanted; the fewer, the quicker.
    """

    trace_file: tuple[Path, ...] = ()
    xplane_file: tuple[Path, ...] = ()
    profile_dir: Path | None = None
    artifact: str | None = None
    run_target: str | None = None
    entity: str | None = None
    project: str | None = None
    alias: str = "latest"
    download_root: Path | None = None
    xplane_output_dir: Path | None = None
    xplane_count_trace_events: bool = False
    columns: frozenset[str] = frozenset(SIDE_COLUMNS)
