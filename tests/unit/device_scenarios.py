"""Training loops on a machine with a device, written down as the probe would, and read back: the same on a fake and on a real one."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path

from probe_events import MS, code, part, write_run

from trainflash.summary import summarize
from trainflash.trace import Trace, load


class Training:
    """A loop on `machine`, its phases marked as the probe's hooks mark them."""

    def __init__(self, machine, **options) -> None:
        self.machine = machine
        self.words: list[int] = []
        self.records: list[bytes] = []
        self.began_ns = machine.clock()
        self.timeline = part("phases.device").Timeline(
            machine, self.records.append, machine.clock, lambda code, now: self.words.append(now << 12 | code), **options
        )

    @contextmanager
    def phase(self, name: str):
        self.timeline.mark(code(name))
        yield self.machine
        self.timeline.mark(code(f"/{name}"))

    def launch(self, name: str, device_ms: float, host_ms: float = 0.2) -> None:
        """A phase that queues work and does not wait."""
        with self.phase(name):
            self.machine.host(host_ms)
            self.machine.launch(device_ms)

    def item(self) -> None:
        """A blocking call, seen by a hook."""
        self.timeline.wait_begins()
        self.machine.wait()
        self.timeline.wait_ended()

    def step(self) -> None:
        self.words.append(self.machine.clock() << 12 | code("step"))
        self.timeline.drain()

    def written(self, directory: Path, cut: int = 0) -> Path:
        """The run's directory; `cut` bytes are missing at the end of the device's file."""
        records = b"".join(self.records)
        (directory / "device-7.bin").write_bytes(records[: len(records) - cut])
        facts = [{"k": "device_marks", "file": "device-7.bin", "bias": part("phases.device").BIAS}]
        return write_run(directory, self.words, facts=facts, base_ns=0, start_ns=self.began_ns - 100 * MS)

    def trace(self, directory: Path) -> Trace:
        return load(self.written(directory))

    def summary(self, directory: Path):
        return summarize(self.trace(directory), run="r", project="p")


def run(machine, step: Callable[[Training], None], steps: int = 40, **options) -> Training:
    """`steps` steps, the last of them open as in a program that goes on."""
    training = Training(machine, **options)
    for _ in range(steps):
        step(training)
        training.step()
    training.machine.wait()
    with training.phase("Data"):
        pass
    training.machine.wait()
    training.timeline.drain()
    return training


def logs_each_step(training: Training) -> None:
    """The host queues 14 ms of work in a millisecond and then asks for the loss."""
    with training.phase("Data"):
        training.machine.host(1.0)
    training.launch("Fwd", 4.0)
    training.launch("Bwd", 8.0)
    training.launch("Opt", 2.0)
    with training.phase("Log"):
        training.item()
        training.machine.host(0.5)


def asks_outside_phases(training: Training) -> None:
    """The same, with `.item()` between the phases, where no hook knows of a wait: nothing can be said about it but by its end."""
    with training.phase("Data"):
        training.machine.host(1.0)
    training.launch("Fwd", 4.0)
    training.launch("Bwd", 8.0)
    training.launch("Opt", 2.0)
    training.machine.wait()


def copies_and_blocks(training: Training) -> None:
    """Pageable memory: the copy to the device waits for all that was queued in the step before."""
    with training.phase("Data"):
        training.machine.host(1.0)
    with training.phase("H2D"):
        training.machine.launch(1.0)
        training.machine.wait()
    training.launch("Fwd", 4.0)
    training.launch("Bwd", 8.0)
    training.launch("Opt", 2.0)


def host_bound(training: Training) -> None:
    """Kernels so small that the device is done before the host has queued the next."""
    with training.phase("Data"):
        training.machine.host(1.0)
    for name in ("Fwd", "Bwd", "Opt"):
        with training.phase(name):
            for _ in range(10):
                training.machine.host(0.3)
                training.machine.launch(0.02)


def runs_ahead(training: Training) -> None:
    """Nobody waits: the device falls ever further behind."""
    training.launch("Fwd", 4.0)
    training.launch("Bwd", 8.0)
    training.launch("Opt", 2.0)


def prefetches(training: Training) -> None:
    """The next batch is copied on a stream of its own while the last one is trained on."""
    with training.phase("Data"):
        training.machine.host(0.5)
        training.machine.current = 1
        training.launch("H2D", 3.0, host_ms=0.02)
        training.machine.current = 0
    training.launch("Fwd", 4.0)
    training.launch("Bwd", 8.0)
    with training.phase("Log"):
        training.item()
