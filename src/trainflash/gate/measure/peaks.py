"""Peak rates for MFU, from the registry of boards, and what to say where there is none."""

from __future__ import annotations

from trainflash.schema.boards import BOARDS, FORMATS, Board, Peak, peak

__all__ = ["BOARDS", "FORMATS", "Board", "Peak", "peak", "why_none"]


def why_none(name: str | None, dtype: str) -> str:
    """Why there is no peak, and what to do."""
    what = f"{name} in {dtype}" if name else "this machine's processor"
    return f"the peak rate of {what} is not in the registry: MFU was not measured; give it with peak_tflops (--peak-tflops)"
