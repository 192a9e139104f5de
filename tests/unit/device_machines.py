"""A host with a device whose queue is worked through in order: simulated on a clock of its own, or real where there is CUDA.

A machine is what the scenarios of `device_scenarios` run on.
"""

from __future__ import annotations

import time

import pytest
from probe_events import MS, part


class FakeEvent:
    """Reached when the device has done what was queued on its stream before it."""

    def __init__(self, machine: FakeMachine) -> None:
        self._machine = machine
        self._at = None

    def record(self, stream: int) -> None:
        self._machine.host(self._machine.record_ms)
        self._at = max(self._machine.free_at.get(stream, 0), self._machine.now_ns)

    def query(self) -> bool:
        return self._machine.now_ns >= self._at

    def elapsed_time(self, later: FakeEvent) -> float:
        assert self.query() and later.query(), "an event was read before the device had reached it"
        return (later._at - self._at) / 1e6 * (1 + self._machine.drift)


class FakeMachine:
    """`host` is work of the host, `launch` queues work on the current stream, `wait` blocks until it is done. All in milliseconds."""

    tolerance = 1  # times what is allowed to a perfect machine

    def __init__(self, drift: float = 0.0, launch_ms: float = 0.01, record_ms: float = 0.002, return_ms: float = 0.01) -> None:
        self.now_ns = 5_000 * MS
        self.free_at: dict[int, int] = {}
        self.current = 0
        self.capturing = False
        self.drift, self.launch_ms, self.record_ms, self.return_ms = drift, launch_ms, record_ms, return_ms

    def host(self, ms: float) -> None:
        self.now_ns += int(ms * MS)

    def launch(self, ms: float) -> None:
        self.host(self.launch_ms)
        self.free_at[self.current] = max(self.free_at.get(self.current, 0), self.now_ns) + int(ms * MS)

    def wait(self) -> None:
        self.now_ns = max(self.now_ns, self.free_at.get(self.current, 0)) + int(self.return_ms * MS)

    def clock(self) -> int:
        return self.now_ns

    # --- what a timeline of the probe asks of torch

    def event(self) -> FakeEvent:
        return FakeEvent(self)

    def stream(self) -> tuple[int, int]:
        return self.current, self.current

    def is_capturing(self) -> bool:
        assert not self.capturing or self.current == 0
        return self.capturing


class CudaMachine:
    """The same on a real device: kernels that spin for a known time."""

    tolerance = 6

    def __init__(self) -> None:
        torch = pytest.importorskip("torch")
        if not torch.cuda.is_available():
            pytest.skip("no CUDA device")
        self._torch = torch
        self._backend = part("phases.device").CudaBackend(torch, torch.cuda.current_device())
        self._streams = {0: torch.cuda.current_stream(), 1: torch.cuda.Stream()}
        self.event, self.stream, self.is_capturing = self._backend.event, self._backend.stream, self._backend.is_capturing
        self.clock = time.monotonic_ns
        self._cycles_per_ms = self._calibrate()
        self._current = 0

    def _calibrate(self) -> float:
        """Clock cycles of a spinning kernel in a millisecond, at the speed that the device has once it is warm."""
        for cycles in (10_000_000, 100_000_000):
            begin, end = self.event(), self.event()
            begin.record()
            self._torch.cuda._sleep(cycles)
            end.record()
            end.synchronize()
        return cycles / begin.elapsed_time(end)

    @property
    def current(self) -> int:
        return self._current

    @current.setter
    def current(self, number: int) -> None:
        self._current = number
        self._torch.cuda.set_stream(self._streams[number])

    def host(self, ms: float) -> None:
        until = time.monotonic_ns() + ms * MS
        while time.monotonic_ns() < until:
            pass

    def launch(self, ms: float) -> None:
        self._torch.cuda._sleep(int(ms * self._cycles_per_ms))

    def wait(self) -> None:
        self._torch.cuda.current_stream().synchronize()
