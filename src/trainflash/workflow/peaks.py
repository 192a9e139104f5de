"""This machine's peaks, kept beside the sandboxes: measured at the end of a diagnosis, once for each number of threads."""

from __future__ import annotations

import contextlib
from pathlib import Path

from trainflash import telemetry
from trainflash.errors import UsageError
from trainflash.schema import MachinePeaks, Peaks, read_document, write_document
from trainflash.trace import RankTrace

FILE = "peaks.json"


def named(directory: Path) -> str:
    """The numbers of threads with which they are known, for the probe. `directory`: where the sandboxes of all projects lie."""
    return ",".join(str(each.threads) for each in _known(directory).measured)


def of(directory: Path, rank: RankTrace) -> Peaks | None:
    """Those for the threads that `rank` uses; what it measured itself is kept from now on. None where nobody has measured."""
    kept = _known(directory)
    if rank.peaks is not None:
        others = tuple(each for each in kept.measured if each.threads != rank.peaks.threads)
        with contextlib.suppress(OSError):  # a full disk: it is measured again next time
            write_document(directory / FILE, MachinePeaks(kept.machine, (*others, rank.peaks)))
        return rank.peaks
    threads = rank.threads.torch_threads if rank.threads is not None else None
    return next((each for each in kept.measured if each.threads == threads), None)


def _known(directory: Path) -> MachinePeaks:
    machine = str(telemetry.machine().get("cpu", ""))
    try:
        kept = read_document(MachinePeaks, directory / FILE)
    except (OSError, UsageError):
        return MachinePeaks(machine)
    return kept if kept.machine == machine else MachinePeaks(machine)
