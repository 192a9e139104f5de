"""Measures a step function: forward, backward, update and what the ranks tell each other, with the device synchronised around each step.

Imports torch: only for a process that trains. Peak memory is reset before the warm-up. What looks closer (torch's operation counter, its
profiler) runs after the measured steps, so that it slows none of them.
"""

from __future__ import annotations

import contextlib
import math
import os
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from torch.autograd.profiler import record_function

from trainflash.errors import ProgramFailed, UsageError
from trainflash.gate.config import BenchConfig
from trainflash.gate.measure import counting, group
from trainflash.gate.measure.flops import Work
from trainflash.gate.measure.memory import HostPeak
from trainflash.gate.measure.workload import Factory, Workload, built, samples_in, tokens_in

REGIONS = ("data", "forward", "loss", "backward", "optimizer_step", "grad_sync")
REPLAYED = 8  # batches kept for the synthetic mode: enough that no processor cache holds one step's data by chance
STALL_BLOCK, STALL_BLOCKS = 5, 8  # live and replayed steps in turn: live, replayed, replayed, live; four pairs give an interval
PROFILED = {"wait": 1, "warmup": 1, "active": 3}


@dataclass
class Measured:
    """One repeat on one rank; `work` is of one step of this rank."""

    step_ms: list[float]
    losses: list[float]
    memory_peak_bytes: int | None
    memory_of: str | None
    samples: float | None
    work: Work
    dtype: str | None
    device: str
    live_ms: list[list[float]] = field(default_factory=list)  # by block
    replayed_ms: list[list[float]] = field(default_factory=list)
    profile_dir: str | None = None
    notes: list[str] = field(default_factory=list)


def measure(
    factory: Factory, config: BenchConfig, *, profile_dir: Path | None = None, on_step: Callable[[int], None] = lambda done: None
) -> Measured:
    """One repeat. Raises `ProgramFailed` for a loss that is no number, or batches that end at once; `UsageError` for a wrong workload."""
    with group.joined() as ranks:
        workload = built(factory)
        size = counting.size(workload.model)
        workload = ranks.wrapped(workload)
        steps = _Steps(workload, config.mode == "synthetic", ranks.size)
        peak = _Peak(steps.device)
        for done in range(config.warmup_steps):
            steps.run()
            on_step(done + 1)
        found = Measured([], [], None, None, None, size, None, steps.device_name)
        for done in range(config.measure_steps):
            took_ms, loss = steps.timed()
            found.step_ms.append(took_ms)
            if loss is not None:
                found.losses.append(loss)
            on_step(config.warmup_steps + done + 1)
        found.memory_peak_bytes, found.memory_of = peak.read()
        steps.stalls(found, min(config.measure_steps, STALL_BLOCK))
        if profile_dir is not None:
            found.profile_dir = str(profile_dir)
            ranks.mark_reductions(workload.model)
            if ranks.size == 1:
                found.notes.append("the region grad_sync of the traces is empty: one process trains")
            _profile(steps, profile_dir, ranks.rank, config.profile)
        tokens, found.samples = steps.tokens, steps.samples
        found.work = replace(found.work, tokens=tokens)
        steps.count_operations(found)
        found.step_ms = ranks.slowest(found.step_ms)
        found.live_ms, found.replayed_ms = ([ranks.slowest(block) for block in blocks] for blocks in (found.live_ms, found.replayed_ms))
        found.memory_peak_bytes = ranks.most(found.memory_peak_bytes)
        return found


class _Steps:
    """Runs steps of a workload, from its own batches or from replayed ones."""

    def __init__(self, workload: Workload, synthetic: bool, ranks: int) -> None:
        self._workload, self._ranks = workload, ranks
        self._source = self._endless()
        self._kept: list[Any] = []
        self._next = 0
        self._tokens: list[int | None] = []
        self._samples: list[int | None] = []
        self._region: Callable[[str], AbstractContextManager[Any]] = lambda name: contextlib.nullcontext()
        self._loss: Any = None
        self.replayed = synthetic
        self.count = True  # batches tell their tokens and samples
        parameter = next(workload.model.parameters(), None)
        self.device = parameter.device if parameter is not None else torch.device("cpu")
        workload.model.train()
        if synthetic:
            self._keep()

    @property
    def device_name(self) -> str:
        return torch.cuda.get_device_name(self.device) if self.device.type == "cuda" else self.device.type

    @property
    def tokens(self) -> float | None:
        """A step's, in the mean over the steps that were counted."""
        return self._mean(self._tokens)

    @property
    def samples(self) -> float | None:
        """A step's, in the mean."""
        return self._mean(self._samples)

    def _mean(self, counted: list[int | None]) -> float | None:
        if not counted or any(each is None for each in counted):
            return None
        return self._workload.accumulate * sum(counted) / len(counted)  # type: ignore[arg-type]

    def synchronize(self) -> None:
        """Wait until the device has done everything that was asked of it."""
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)
        elif self.device.type == "mps":
            torch.mps.synchronize()

    def timed(self) -> tuple[float, float | None]:
        """(milliseconds of one step, its loss)."""
        self.synchronize()
        began = time.perf_counter()
        self.run()
        self.synchronize()
        took_ms = 1e3 * (time.perf_counter() - began)
        loss = None if self._loss is None else float(self._loss)
        if loss is not None and not math.isfinite(loss):
            raise ProgramFailed(f"the loss is {loss}: a step that does not train has no speed", "make the training run by hand first")
        return took_ms, loss

    def run(self) -> None:
        """One step."""
        if self._workload.step is not None:
            with self._region("data"):
                batch = self._batch()
            found = self._workload.step(batch)
            self._loss = found.detach() if hasattr(found, "detach") else found
            return
        total = None
        for part in range(self._workload.accumulate):
            last = part + 1 == self._workload.accumulate
            with self._region("data"):
                batch = self._batch()
            with contextlib.nullcontext() if last else self._unsynchronised():
                with self._region("forward"):
                    outputs = self._forward(batch)
                with self._region("loss"):
                    loss = self._loss_of(outputs, batch) / self._workload.accumulate
                with self._region("backward"):
                    loss.backward()
            total = loss.detach() if total is None else total + loss.detach()
        if self._ranks == 1:
            with self._region("grad_sync"):
                pass  # one process has nothing to tell others; of several, backward tells it (see `group`)
        with self._region("optimizer_step"):
            self._workload.optimizer.step()
            self._workload.optimizer.zero_grad(set_to_none=True)
        self._loss = total

    def stalls(self, found: Measured, block: int) -> None:
        """Blocks of live and of replayed steps in turn, so that neither has the quieter moment."""
        self._keep()
        before, self.count = self.replayed, False
        for number in range(STALL_BLOCKS):
            self.replayed = number % 4 in (1, 2)
            self.run()  # after a switch a loader's queue is full or empty
            times = found.replayed_ms if self.replayed else found.live_ms
            times.append([self.timed()[0] for _ in range(block)])
        self.replayed = before

    def count_operations(self, found: Measured) -> None:
        """One more forward and backward under torch's counter; what cannot be counted stays None and is said."""
        if self._workload.step is not None:
            found.notes.append("operations were not counted: the workload does its whole step by itself")
            return
        model = getattr(self._workload.model, "module", self._workload.model) if self._ranks > 1 else self._workload.model
        batch = self._batch()
        try:
            counted, attention, found.dtype = counting.count(
                lambda: self._loss_of(self._forward(batch, model), batch), lambda loss: loss.backward()
            )
            parts = self._workload.accumulate
            found.work = replace(found.work, counted=parts * counted, attention=parts * attention)
        except (RuntimeError, NotImplementedError, TypeError, AssertionError) as failed:  # compiled models refuse to be looked into
            found.notes.append(
                f"operations were not counted: {type(failed).__name__}: {str(failed).splitlines()[0] if str(failed) else ''}"
            )
        finally:
            self._workload.optimizer.zero_grad(set_to_none=True)

    @contextlib.contextmanager
    def regions(self) -> Iterator[None]:
        """Inside, the regions of a step are marked for the profiler."""
        self._region = record_function
        try:
            yield
        finally:
            self._region = lambda name: contextlib.nullcontext()

    def _forward(self, batch: Any, model: Any = None) -> Any:
        model = self._workload.model if model is None else model
        if self._workload.forward is not None:
            return self._workload.forward(model, batch)
        if hasattr(batch, "keys"):
            return model(**batch)
        return model(batch[0]) if isinstance(batch, (tuple, list)) else model(batch)

    def _loss_of(self, outputs: Any, batch: Any) -> Any:
        if self._workload.loss is not None:
            return self._workload.loss(outputs, batch)
        found = outputs.get("loss") if hasattr(outputs, "get") else getattr(outputs, "loss", outputs)
        if not hasattr(found, "backward") or found.numel() != 1:
            raise UsageError("the model's outputs hold no loss", "give the workload loss=lambda outputs, batch: …")
        return found

    def _unsynchronised(self) -> AbstractContextManager[Any]:
        return self._workload.model.no_sync() if hasattr(self._workload.model, "no_sync") else contextlib.nullcontext()

    def _batch(self) -> Any:
        if self.replayed:
            self._next += 1
            batch = self._kept[self._next % len(self._kept)]
        else:
            batch = next(self._source)
        if self.count:
            workload = self._workload
            self._tokens.append(workload.tokens(batch) if workload.tokens else tokens_in(batch))
            self._samples.append(workload.samples(batch) if workload.samples else samples_in(batch))
        return batch

    def _keep(self) -> None:
        while len(self._kept) < REPLAYED:
            self._kept.append(next(self._source))

    def _endless(self) -> Iterator[Any]:
        while True:
            source = self._workload.batches() if callable(self._workload.batches) else self._workload.batches
            empty = True
            for batch in source:
                empty = False
                yield batch
            if empty:
                raise ProgramFailed("the workload's batches end at once", "give a list, a DataLoader, or a function of none")


class _Peak:
    """Most memory from here on: the device's allocator where there is one, else the process's resident memory."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._host = HostPeak()
        if device.type == "cuda":
            torch.cuda.reset_peak_memory_stats(device)

    def read(self) -> tuple[int | None, str | None]:
        if self._device.type == "cuda":
            return int(torch.cuda.max_memory_allocated(self._device)), "device"
        found = self._host.read()
        return found, None if found is None else "host"


def _profile(steps: _Steps, folder: Path, rank: int, kind: str) -> None:
    """A few more steps under torch's profiler, with the regions marked; "tb" adds shapes, memory and stacks for TensorBoard's views."""
    folder.mkdir(parents=True, exist_ok=True)
    activities = [torch.profiler.ProfilerActivity.CPU]
    if steps.device.type == "cuda":
        activities.append(torch.profiler.ProfilerActivity.CUDA)
    closer = kind == "tb"
    with (
        torch.profiler.profile(
            activities=activities,
            schedule=torch.profiler.schedule(**PROFILED, repeat=1),
            on_trace_ready=torch.profiler.tensorboard_trace_handler(str(folder), worker_name=f"rank{rank}_{os.getpid()}"),
            record_shapes=True,
            profile_memory=closer,
            with_stack=closer,
        ) as profiler,
        steps.regions(),
    ):
        for _ in range(sum(PROFILED.values())):
            steps.run()
            steps.synchronize()
            profiler.step()
