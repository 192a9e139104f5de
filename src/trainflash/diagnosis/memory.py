"""How full memory is, where it counts: on the device of a run that has one, else in the machine or the control group."""

from __future__ import annotations

from trainflash.diagnosis.signals import Signals


def memory_used(signals: Signals) -> float | None:
    """Peak ÷ limit; None where either was not measured."""
    memory = signals.summary.memory
    if memory is None:
        return None
    if signals.on_gpu:
        return _part(memory.device_peak_bytes, memory.device_total_bytes)
    return _part(memory.host_peak_bytes, memory.host_limit_bytes)


def _part(peak: int | None, limit: int | None) -> float | None:
    return peak / limit if peak is not None and limit else None
