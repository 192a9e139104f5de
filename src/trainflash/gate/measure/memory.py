"""The most resident memory of this process since a moment."""

from __future__ import annotations

from pathlib import Path

_STATUS = Path("/proc/self/status")
_CLEAR = Path("/proc/self/clear_refs")
_RESET_PEAK = "5"  # proc(5): resets the peak resident set size


class HostPeak:
    """From its making on; None where the kernel does not let the peak be reset, for an older peak would be told as this one."""

    def __init__(self) -> None:
        try:
            _CLEAR.write_text(_RESET_PEAK)
            self._since = True
        except OSError:
            self._since = False

    def read(self) -> int | None:
        """Bytes; None where it is not known."""
        if not self._since:
            return None
        for line in _STATUS.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
        return None
