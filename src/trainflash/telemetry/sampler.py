"""A thread of trainflash's own process that writes a sample of machine, GPUs and the run's processes every half second."""

from __future__ import annotations

import contextlib
import json
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pynvml

from trainflash.telemetry import cgroups, processes
from trainflash.telemetry.gpu import Gpus
from trainflash.telemetry.machine import cpu_budget
from trainflash.telemetry.reading import HOST, text
from trainflash.telemetry.samples import FILE, HostSample, Sample, line
from trainflash.telemetry.tally import Tally

INTERVAL_S = 0.5
_LIMITS_EVERY = 20  # limits rarely change while a program runs: they are read in one sample of so many


class Watch:
    """Takes one sample after another of the processes below `roots()`, the machine and its GPUs. Raises nothing."""

    def __init__(self, roots: Callable[[], list[int]], *, root: Path = HOST, nvml: Any = pynvml) -> None:
        self._roots = roots
        self._root = root
        self._gpus = Gpus(nvml)
        self._cpu, self._read, self._device_read, self._device_written = Tally(), Tally(), Tally(), Tally()
        self._taken = 0
        self._cpus: float | None = None
        self.tree: dict[int, processes.Stat] = {}

    def sample(self) -> Sample:
        """The state now."""
        t_ns = time.monotonic_ns()
        self.tree = processes.tree(self._roots(), self._root)
        leader = next(iter(self.tree), None)
        if self._taken % _LIMITS_EVERY == 0 or self._cpus is None:
            self._cpus = cpu_budget(self._root, leader)
        self._taken += 1
        pids = frozenset(self.tree)
        return Sample(t_ns, self._host(leader if leader is not None else "self"), self._gpus.sample(pids))

    def close(self) -> None:
        self._gpus.close()

    def _host(self, pid: int | str) -> HostSample:
        root, watched = self._root, self.tree
        parents = {each: seen.parent for each, seen in watched.items()}
        moved = {each: processes.io(each, root) for each in watched}
        throttling = cgroups.throttling(root, pid)
        memory = cgroups.memory(root, pid)
        shm_used, shm_total = _file_system(root / f"proc/{pid}/root/dev/shm", root / "dev/shm")
        cpu = {each: seen.cpu_s + seen.children_cpu_s for each, seen in watched.items()}
        return HostSample(
            processes=sum(seen.state not in "ZX" for seen in watched.values()) if watched else None,
            cpu_s=self._cpu.add(parents, cpu),
            read_bytes=_whole(self._read.add(parents, _column(moved, "read"))),
            device_read_bytes=_whole(self._device_read.add(parents, _column(moved, "device_read"))),
            device_written_bytes=_whole(self._device_written.add(parents, _column(moved, "device_written"))),
            network_bytes=processes.network_bytes(pid, root),
            cpus=self._cpus,
            machine_busy_s=_machine_busy_s(root),
            throttled_s=throttling.seconds if throttling else None,
            throttled_periods=throttling.periods if throttling else None,
            pressure_cpu_s=cgroups.pressure_s(cgroups.CPU, root, pid),
            pressure_memory_s=cgroups.pressure_s(cgroups.MEMORY, root, pid),
            pressure_io_s=cgroups.pressure_s(cgroups.IO, root, pid),
            memory_used_bytes=memory.used_bytes,
            memory_limit_bytes=memory.limit_bytes,
            memory_events=memory.events,
            swap_used_bytes=memory.swap_bytes,
            shm_used_bytes=shm_used,
            shm_total_bytes=shm_total,
        )


class Recorder:
    """Writes samples of the run in `run_dir` to its `telemetry.jsonl`, until `stop`; a full disk only ends the recording."""

    def __init__(self, run_dir: Path, *, interval_s: float = INTERVAL_S, root: Path = HOST, nvml: Any = pynvml) -> None:
        self._run_dir = run_dir
        self._interval_s = interval_s
        self._root, self._nvml = root, nvml
        self._roots: dict[str, int] = {}
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._record, name="telemetry", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """End the recording after the sample that is being taken, and wait for it."""
        self._stopped.set()
        self._thread.join()

    def _record(self) -> None:
        watch = Watch(self._announced, root=self._root, nvml=self._nvml)
        with contextlib.suppress(OSError), contextlib.closing(watch), (self._run_dir / FILE).open("a", encoding="utf-8") as file:
            while not self._stopped.is_set():
                began = time.monotonic()
                file.write(line(watch.sample()))
                file.flush()
                self._stopped.wait(max(0.05, self._interval_s - (time.monotonic() - began)))

    def _announced(self) -> list[int]:
        """Processes that the probe has announced in the run's directory."""
        for path in self._run_dir.glob("process-*.json"):
            if path.name not in self._roots:
                with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
                    self._roots[path.name] = int(json.loads(path.read_text(encoding="utf-8"))["pid"])
        return list(self._roots.values())


@contextmanager
def recording(run_dir: Path, *, interval_s: float = INTERVAL_S) -> Iterator[None]:
    """Record telemetry of the run in `run_dir` while the body runs."""
    recorder = Recorder(run_dir, interval_s=interval_s)
    recorder.start()
    try:
        yield
    finally:
        recorder.stop()


def _column(moved: Mapping[int, processes.Io | None], name: str) -> dict[int, float | None]:
    return {pid: None if each is None else getattr(each, name) for pid, each in moved.items()}


def _whole(value: float | None) -> int | None:
    return None if value is None else int(value)


def _machine_busy_s(root: Path) -> float | None:
    """CPU seconds that all cores spent on anything but idling and waiting for a device."""
    with contextlib.suppress(ValueError, IndexError, AttributeError):
        fields = [int(word) for word in text(root / "proc/stat").splitlines()[0].split()[1:9]]
        return (sum(fields) - fields[3] - fields[4]) / processes.TICKS_PER_S
    return None


def _file_system(*places: Path) -> tuple[int | None, int | None]:
    """Used and total bytes of the first place that can be asked: a process may have another /dev/shm than we."""
    for place in places:
        with contextlib.suppress(OSError):
            found = os.statvfs(place)
            return (found.f_blocks - found.f_bfree) * found.f_frsize, found.f_blocks * found.f_frsize
    return None, None
