"""NVIDIA GPUs through NVML: their names, and one typed sample each. Every call may be unsupported on its own; then its field is None."""

from __future__ import annotations

from collections.abc import Callable, Set
from dataclasses import dataclass
from typing import Any

import pynvml

_MB_PER_KB = 1e-3
_W_PER_MW = 1e-3
# Bits of the mask that NVML calls clocks event reasons (throttle reasons before).
REASONS = {
    0x1: "idle",
    0x2: "applications_clocks",
    0x4: "software_power_cap",
    0x8: "hardware_slowdown",
    0x10: "sync_boost",
    0x20: "software_thermal",
    0x40: "hardware_thermal",
    0x80: "hardware_power_brake",
    0x100: "display_clocks",
}


@dataclass(frozen=True)
class GpuSample:
    """One GPU at one moment; shares from 0 to 1."""

    index: int
    name: str
    busy: float | None = None
    memory_busy: float | None = None
    memory_used_bytes: int | None = None
    memory_total_bytes: int | None = None
    pcie_rx_mb_s: float | None = None  # received by the GPU: host to device
    pcie_tx_mb_s: float | None = None
    power_w: float | None = None
    power_limit_w: float | None = None
    sm_clock_mhz: float | None = None
    sm_clock_max_mhz: float | None = None
    temperature_c: float | None = None
    reasons: tuple[str, ...] = ()  # why its clocks are lowered
    ours: bool | None = None  # a watched process uses it; None: the driver does not say


@dataclass(frozen=True)
class _Device:
    index: int
    name: str
    handle: Any
    memory_total_bytes: int | None
    sm_clock_max_mhz: float | None


class Gpus:
    """All GPUs that the driver shows, kept open until `close`. Without a driver there are none; nothing is raised."""

    def __init__(self, nvml: Any = pynvml) -> None:
        self._nvml = nvml
        self._open = False
        self._devices: list[_Device] = []
        try:
            nvml.nvmlInit()
            self._open = True
            count = nvml.nvmlDeviceGetCount()
        except nvml.NVMLError:
            return
        for index in range(count):
            handle = self._ask("nvmlDeviceGetHandleByIndex", index)
            if handle is not None:
                self._devices.append(self._device(index, handle))

    @property
    def names(self) -> tuple[str, ...]:
        """In the driver's order."""
        return tuple(device.name for device in self._devices)

    def sample(self, pids: Set[int] = frozenset()) -> tuple[GpuSample, ...]:
        """One sample of each GPU; `pids` are the processes that are watched."""
        return tuple(self._sample(device, pids) for device in self._devices)

    def close(self) -> None:
        """Let the driver go; a second call does nothing."""
        if self._open:
            self._open = False
            self._devices = []
            self._ask("nvmlShutdown")

    def _device(self, index: int, handle: Any) -> _Device:
        name = self._ask("nvmlDeviceGetName", handle) or f"GPU {index}"
        memory = self._ask("nvmlDeviceGetMemoryInfo", handle)
        clock = self._ask("nvmlDeviceGetMaxClockInfo", handle, self._nvml.NVML_CLOCK_SM)
        return _Device(
            index, name.decode() if isinstance(name, bytes) else name, handle, int(memory.total) if memory else None, _float(clock)
        )

    def _sample(self, device: _Device, pids: Set[int]) -> GpuSample:
        nvml, handle = self._nvml, device.handle
        rates = self._ask("nvmlDeviceGetUtilizationRates", handle)
        memory = self._ask("nvmlDeviceGetMemoryInfo", handle)
        limit = self._first(("nvmlDeviceGetEnforcedPowerLimit", "nvmlDeviceGetPowerManagementLimit"), handle)
        mask = self._first(("nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons"), handle)
        running = self._ask("nvmlDeviceGetComputeRunningProcesses", handle) if pids else None
        return GpuSample(
            index=device.index,
            name=device.name,
            busy=_scaled(rates and rates.gpu, 0.01),
            memory_busy=_scaled(rates and rates.memory, 0.01),
            memory_used_bytes=int(memory.used) if memory else None,
            memory_total_bytes=device.memory_total_bytes,
            pcie_rx_mb_s=_scaled(self._ask("nvmlDeviceGetPcieThroughput", handle, nvml.NVML_PCIE_UTIL_RX_BYTES), _MB_PER_KB),
            pcie_tx_mb_s=_scaled(self._ask("nvmlDeviceGetPcieThroughput", handle, nvml.NVML_PCIE_UTIL_TX_BYTES), _MB_PER_KB),
            power_w=_scaled(self._ask("nvmlDeviceGetPowerUsage", handle), _W_PER_MW),
            power_limit_w=_scaled(limit, _W_PER_MW),
            sm_clock_mhz=_float(self._ask("nvmlDeviceGetClockInfo", handle, nvml.NVML_CLOCK_SM)),
            sm_clock_max_mhz=device.sm_clock_max_mhz,
            temperature_c=_float(self._ask("nvmlDeviceGetTemperature", handle, nvml.NVML_TEMPERATURE_GPU)),
            reasons=tuple(name for bit, name in REASONS.items() if int(mask or 0) & bit),
            ours=any(process.pid in pids for process in running) if running else None,
        )

    def _first(self, calls: tuple[str, ...], *arguments: Any) -> Any:
        """The answer of the first call that has one: newer drivers rename calls, older ones lack them."""
        return next((answer for call in calls if (answer := self._ask(call, *arguments)) is not None), None)

    def _ask(self, call: str, *arguments: Any) -> Any:
        function: Callable[..., Any] | None = getattr(self._nvml, call, None)
        try:
            return function(*arguments) if function is not None else None
        except self._nvml.NVMLError:
            return None


def gpus() -> tuple[str, ...]:
    """Names of the NVIDIA GPUs, in the driver's order; empty without a driver."""
    found = Gpus()
    try:
        return found.names
    finally:
        found.close()


def _float(value: Any) -> float | None:
    return None if value is None else float(value)


def _scaled(value: Any, factor: float) -> float | None:
    return None if value is None else float(value) * factor
