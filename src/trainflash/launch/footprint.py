"""How much host memory a process tree has taken at most. Pages that processes share, as forked workers do, count once."""

from __future__ import annotations

from pathlib import Path

from trainflash.launch import supervise


def peak_bytes(root: int) -> int | None:
    """Proportional memory of all processes below `root` now, and what each has had beyond its present size; None where nobody tells."""
    total = 0
    pids = supervise.living(root)
    for pid in pids:
        try:
            status = _fields(Path(f"/proc/{pid}/status"))
            resident, most = status["VmRSS"], status["VmHWM"]
        except (OSError, KeyError, ValueError):
            continue  # it ended meanwhile, or has no memory of its own
        try:
            shared_out = _fields(Path(f"/proc/{pid}/smaps_rollup"))["Pss"]
        except (OSError, KeyError, ValueError):
            shared_out = resident
        total += shared_out + max(0, most - resident)
    return total or None


def _fields(path: Path) -> dict[str, int]:
    """Bytes of the lines that end in kB."""
    found = {}
    for line in path.read_text(encoding="ascii", errors="replace").splitlines():
        name, _, rest = line.partition(":")
        words = rest.split()
        if len(words) == 2 and words[1] == "kB":
            found[name] = int(words[0]) * 1024
    return found
