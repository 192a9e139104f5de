"""Runs the training in slices on the launcher's word, so that two versions of a program can be measured in turns.

The launcher makes a directory with two FIFOs. At a step boundary the pacer blocks on `cmd` until it reads a line:
`run K` (train K more steps, then report and block again), `quit` (end the program here), `free` (never block again).
Each report is one JSON line on `rep`. The first boundary reports `{"ready": true}`; the end of the program inside a slice reports
the steps done so far with `"ended": true` and the time since the last of them. Only the first process that trains is paced: whoever
loses the race for the `claim` file trains freely and leaves `pace-others` for the launcher. When the launcher is gone the program ends
at once, because a measurement nobody reads must not live on.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import sys
import threading
import time

from .files import Kept
from .phases.observer import Observer, TrainFlashStop

LOOK_AGAIN_MS = 1000  # a vanished launcher is noticed by reading; poll alone does not tell


class Pacer(Observer):
    """Blocks the training thread at step boundaries. `directory` holds the FIFOs `cmd` and `rep`."""

    def __init__(self, directory):
        self._directory = directory
        self._pid = None  # the process that claimed the FIFOs; a fork of it is not paced
        self._free = False
        self._pending = b""
        self._command = self._report = self._schedstat = None
        self._reset(0)

    def on_boundary(self, step):
        if self._free:
            return
        if self._pid is None:
            self._claim()
            if self._free:
                return
            told = {"ready": True, "step": step, "t_ns": time.monotonic_ns(), "runq_ns": self._waited_ns()}
            self._send(dict(told, cpu_ns=_cpu_ns(), device=_device()))
            self._obey(step)
            return
        if os.getpid() != self._pid:
            self._free = True
            return
        self._step_ends.append(time.monotonic_ns())
        self._step_waits.append(self._waited_ns())
        if len(self._step_ends) >= self._wanted:
            _drain()
            self._send(self._summary(step))
            self._obey(step)

    def on_exit(self):
        if self._pid == os.getpid() and not self._free:
            self._free = True
            with contextlib.suppress(TrainFlashStop):
                told = self._summary(self._first + len(self._step_ends))
                self._send(dict(told, ended=True, after_ns=self._since_last_step()))

    def _claim(self):
        """Take the FIFOs for this process, or become free."""
        path = os.path.join(self._directory, "claim")
        if self._on_another_machine():
            self._run_free()
            return
        try:
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o644))
        except FileExistsError:
            self._run_free()
            return
        self._pid = os.getpid()
        try:
            self._command = Kept(os.path.join(self._directory, "cmd"), os.O_RDONLY | os.O_NONBLOCK)
            self._report = Kept(os.path.join(self._directory, "rep"), os.O_WRONLY | os.O_NONBLOCK)
        except OSError:
            raise TrainFlashStop(0) from None
        try:
            path = "/proc/self/task/%d/schedstat" % threading.get_native_id()
            self._schedstat = Kept(path, os.O_RDONLY)
        except OSError:
            self._schedstat = None

    def _run_free(self):
        with open(os.path.join(self._directory, "pace-others"), "a", encoding="utf-8") as others:
            others.write("%d\n" % os.getpid())
        self._free = True

    def _on_another_machine(self):
        try:
            with open(os.path.join(self._directory, "host"), encoding="utf-8") as file:
                return file.read() not in ("", os.uname().nodename)
        except OSError:
            return False

    def _obey(self, step):
        """Block until a command arrives, then start the slice's clock or leave."""
        word, _, count = self._read_line().partition(" ")
        if word == "run" and count.isdigit():
            _drain()
            self._wanted = max(1, int(count))
            self._reset(step)
        elif word == "free":
            self._free = True
        else:
            self._free = True
            raise TrainFlashStop(0)

    def _read_line(self):
        while b"\n" not in self._pending:
            try:
                part = os.read(self._command.fileno(), 4096)
            except BlockingIOError:
                poll = select.poll()
                poll.register(self._command.fileno(), select.POLLIN)
                poll.poll(LOOK_AGAIN_MS)
                continue
            except OSError:
                part = b""
            if not part:
                return "quit"
            self._pending += part
        line, _, self._pending = self._pending.partition(b"\n")
        return line.decode("ascii", "replace").strip()

    def _send(self, report):
        data = (json.dumps(report, separators=(",", ":")) + "\n").encode("ascii")
        try:
            while data:
                if self._report is None:
                    raise OSError("no launcher")
                os.set_blocking(self._report.fileno(), True)
                data = data[self._report.write(data) :]
        except OSError:
            self._free = True
            raise TrainFlashStop(0) from None

    def _reset(self, step):
        """Start a slice after `step` complete steps; the two clocks are read last, next to each other."""
        self._first = step
        self._step_ends = []
        self._step_waits = []
        self._cpu = _cpu_ns()
        self._own_cpu = time.process_time_ns()
        self._thread_cpu = time.thread_time_ns()
        self._runq = self._waited_ns()
        self._began = time.monotonic_ns()

    def _summary(self, step):
        ends = [self._began, *self._step_ends]
        waits = [self._runq, *self._step_waits]
        return {
            "step": step,
            "steps": len(self._step_ends),
            "t_ns": ends[-1],
            "wall_ns": ends[-1] - self._began,
            "runq_ns": None if self._runq is None else waits[-1] - self._runq,
            "cpu_ns": _cpu_ns() - self._cpu,
            "own_cpu_ns": time.process_time_ns() - self._own_cpu,
            "thread_cpu_ns": time.thread_time_ns() - self._thread_cpu,
            "device": _device(),
            "device_peak_bytes": _device_peak(),
            "step_ns": _differences(ends),
            "step_runq_ns": None if self._runq is None else _differences(waits),
        }

    def _since_last_step(self):
        """Nanoseconds since the last step, without the time in which the training thread had no core."""
        ends, waits = [self._began, *self._step_ends], [self._runq, *self._step_waits]
        waited = self._waited_ns()
        return time.monotonic_ns() - ends[-1] - (waited - waits[-1] if waited is not None and waits[-1] is not None else 0)

    def _waited_ns(self):
        """How long the training thread was runnable without a core so far, nanoseconds; None where the kernel does not tell."""
        if self._schedstat is None:
            return None
        try:
            return int(os.pread(self._schedstat.fileno(), 80, 0).split()[1])
        except (OSError, ValueError, IndexError):
            return None


def _differences(values):
    return [values[i + 1] - values[i] for i in range(len(values) - 1)]


def _cpu_ns():
    """CPU time of all threads of this process and of its finished children."""
    times = os.times()
    return time.process_time_ns() + int((times.children_user + times.children_system) * 1e9)


def _cuda():
    torch = sys.modules.get("torch")
    cuda = getattr(torch, "cuda", None)
    try:
        return cuda if cuda is not None and cuda.is_initialized() else None
    except Exception:
        return None


def _device():
    """Whether this process computes on a GPU."""
    return _cuda() is not None


def _device_peak():
    """The most memory that the program's tensors held on the devices so far, bytes; None without a device."""
    cuda = _cuda()
    try:
        return None if cuda is None else sum(cuda.max_memory_allocated(number) for number in range(cuda.device_count()))
    except Exception:
        return None


def _drain():
    """Let queued kernels finish, or they would run on inside the other version's slice."""
    cuda = _cuda()
    if cuda is not None:
        try:
            cuda.synchronize()
        except Exception:
            return
