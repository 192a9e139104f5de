"""GPU samples from an object that answers, and refuses, as nvidia-ml-py does."""

from __future__ import annotations

from dataclasses import fields

from fake_nvml import FakeNvml

from trainflash.telemetry import Gpus
from trainflash.telemetry.gpu import REASONS

CALLS = tuple(
    name for name in dir(FakeNvml) if name.startswith("nvmlDeviceGet") and name not in {"nvmlDeviceGetCount", "nvmlDeviceGetHandleByIndex"}
)


def test_units_and_directions():
    first, second = Gpus(FakeNvml()).sample()
    assert (first.name, second.name, second.index) == ("NVIDIA H200", "NVIDIA H200", 1)
    assert (first.busy, first.memory_busy) == (0.4, 0.12)
    assert first.pcie_rx_mb_s == 8000, "received by the GPU is host to device"
    assert first.pcie_tx_mb_s == 250
    assert (first.power_w, first.power_limit_w) == (350, 700)
    assert (first.sm_clock_mhz, first.sm_clock_max_mhz, first.temperature_c) == (1500, 1980, 71)
    assert (first.memory_used_bytes, first.memory_total_bytes) == (41 << 30, 141 << 30)
    assert first.reasons == ("idle", "hardware_thermal")


def test_each_call_may_be_unsupported_alone():
    whole = Gpus(FakeNvml(count=1)).sample()[0]
    renamed = {"nvmlDeviceGetEnforcedPowerLimit", "nvmlDeviceGetCurrentClocksEventReasons"}
    spare = {"nvmlDeviceGetPowerManagementLimit", "nvmlDeviceGetCurrentClocksThrottleReasons", "nvmlDeviceGetComputeRunningProcesses"}
    for call in set(CALLS) - renamed - spare:
        sample = Gpus(FakeNvml(count=1, unsupported=(call,))).sample()[0]
        changed = {field.name for field in fields(sample) if getattr(sample, field.name) != getattr(whole, field.name)}
        assert changed, call
        assert all(getattr(sample, name) is None or name == "name" for name in changed), (call, changed)


def test_nothing_supported_is_nothing_measured():
    sample = Gpus(FakeNvml(count=1, unsupported=CALLS)).sample({1})[0]
    assert sample.name == "GPU 0"
    assert {getattr(sample, field.name) for field in fields(sample)} - {0, "GPU 0", ()} == {None}


def test_an_older_driver_answers_under_the_older_names():
    newer = ("nvmlDeviceGetEnforcedPowerLimit", "nvmlDeviceGetCurrentClocksEventReasons")
    sample = Gpus(FakeNvml(count=1, unsupported=newer)).sample()[0]
    assert (sample.power_limit_w, sample.reasons) == (650, ("software_power_cap",))


def test_whose_processes_run_there():
    assert [gpu.ours for gpu in Gpus(FakeNvml(pids=(7,))).sample({7})] == [True, None]
    assert [gpu.ours for gpu in Gpus(FakeNvml(pids=(7,))).sample({8})] == [False, None]


def test_without_a_driver_there_are_none():
    gpus = Gpus(FakeNvml(count=0))
    assert gpus.sample() == ()
    gpus.close()


def test_the_driver_is_let_go_once():
    nvml = FakeNvml()
    gpus = Gpus(nvml)
    gpus.close(), gpus.close()
    assert (nvml.opened, nvml.shut) == (1, 1)


def test_the_reasons_are_those_of_the_driver():
    import pynvml

    named = {
        "idle": pynvml.nvmlClocksEventReasonGpuIdle,
        "software_power_cap": pynvml.nvmlClocksEventReasonSwPowerCap,
        "hardware_slowdown": pynvml.nvmlClocksThrottleReasonHwSlowdown,
        "software_thermal": pynvml.nvmlClocksEventReasonSwThermalSlowdown,
        "hardware_thermal": pynvml.nvmlClocksThrottleReasonHwThermalSlowdown,
        "hardware_power_brake": pynvml.nvmlClocksThrottleReasonHwPowerBrakeSlowdown,
    }
    assert {bit: name for name, bit in named.items()}.items() <= REASONS.items()
    assert all(hasattr(pynvml, call) for call in CALLS)
