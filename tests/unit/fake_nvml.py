"""Stands in for `pynvml`: the calls that telemetry makes, their units and their errors; no GPU can be had in every test."""

from __future__ import annotations

from types import SimpleNamespace


class NVMLError(Exception):
    pass


class NVMLError_NotSupported(NVMLError):
    pass


class NVMLError_LibraryNotFound(NVMLError):
    pass


class FakeNvml:
    """Two GPUs unless said otherwise. Calls named in `unsupported` raise as the driver does; `pids` run on GPU 0."""

    NVMLError = NVMLError
    NVML_CLOCK_SM = 1
    NVML_TEMPERATURE_GPU = 0
    NVML_PCIE_UTIL_TX_BYTES = 0
    NVML_PCIE_UTIL_RX_BYTES = 1

    def __init__(
        self, count: int = 2, unsupported: tuple[str, ...] = (), busy: tuple[int, ...] = (40,), pids: tuple[int, ...] = ()
    ) -> None:
        self.count, self.unsupported, self.busy, self.pids = count, unsupported, busy, pids
        self.opened = self.shut = 0
        self.asked = 0

    def __getattribute__(self, name):
        if name.startswith("nvml") and name in object.__getattribute__(self, "unsupported"):

            def refuse(*_):
                raise NVMLError_NotSupported("Not Supported")

            return refuse
        return object.__getattribute__(self, name)

    def nvmlInit(self):
        if self.count == 0:
            raise NVMLError_LibraryNotFound("NVML Shared Library Not Found")
        self.opened += 1

    def nvmlShutdown(self):
        self.shut += 1

    def nvmlDeviceGetCount(self):
        return self.count

    def nvmlDeviceGetHandleByIndex(self, index):
        return index

    def nvmlDeviceGetName(self, handle):
        return b"NVIDIA H200" if handle else "NVIDIA H200"

    def nvmlDeviceGetMemoryInfo(self, handle):
        return SimpleNamespace(total=141 << 30, free=100 << 30, used=41 << 30)

    def nvmlDeviceGetMaxClockInfo(self, handle, kind):
        return 1980

    def nvmlDeviceGetClockInfo(self, handle, kind):
        return 1500

    def nvmlDeviceGetUtilizationRates(self, handle):
        self.asked += 1
        return SimpleNamespace(gpu=self.busy[(self.asked // self.count) % len(self.busy)], memory=12)

    def nvmlDeviceGetPcieThroughput(self, handle, counter):
        return {self.NVML_PCIE_UTIL_RX_BYTES: 8_000_000, self.NVML_PCIE_UTIL_TX_BYTES: 250_000}[counter]

    def nvmlDeviceGetPowerUsage(self, handle):
        return 350_000

    def nvmlDeviceGetEnforcedPowerLimit(self, handle):
        return 700_000

    def nvmlDeviceGetPowerManagementLimit(self, handle):
        return 650_000

    def nvmlDeviceGetTemperature(self, handle, sensor):
        return 71

    def nvmlDeviceGetCurrentClocksEventReasons(self, handle):
        return 0x40 | 0x1

    def nvmlDeviceGetCurrentClocksThrottleReasons(self, handle):
        return 0x4

    def nvmlDeviceGetComputeRunningProcesses(self, handle):
        return [SimpleNamespace(pid=pid, usedGpuMemory=None) for pid in self.pids] if handle == 0 else []
