"""What all disks of the machine have read and written since boot, from `/proc/diskstats`."""

from __future__ import annotations

import os
from pathlib import Path

from trainflash.telemetry.reading import HOST, text

SECTOR_BYTES = 512  # the unit of diskstats, whatever the disk's own sectors are
STACKED = ("loop", "ram", "zram", "dm-", "md")  # what they move, a disk below them moves too


def disk_bytes(root: Path = HOST) -> tuple[int, int] | None:
    """Bytes read and written by whole disks, partitions and stacked devices not counted twice; None where no disk is shown."""
    try:
        whole = {name for name in os.listdir(root / "sys/block") if not name.startswith(STACKED)}
    except OSError:
        return None
    moved = []
    for line in (text(root / "proc/diskstats") or "").splitlines():
        fields = line.split()
        if len(fields) >= 10 and fields[2] in whole and fields[5].isdigit() and fields[9].isdigit():
            moved.append((int(fields[5]) * SECTOR_BYTES, int(fields[9]) * SECTOR_BYTES))
    return (sum(read for read, _ in moved), sum(written for _, written in moved)) if moved else None
