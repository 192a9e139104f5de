"""When the device reached each phase boundary, by CUDA events, without waiting for it.

Nothing is installed where torch has no CUDA or the machine no device, and nothing is recorded until a model or a loss on the device is
seen. From then on every boundary on the training thread records an event on the current stream. Events wait in a queue that is emptied as
far as the device has come, once a step and after each blocking call; the times go to `device-*.bin` at once: a killed process keeps them.

The file holds records of two 64-bit words, each (number << 12 | code):
- a boundary: (host time, event code), (device time + BIAS, stream): device time counts from the first event, streams are numbered;
- a blocking call: (begin, WAITED), (end, 0); its begin is a boundary with code WAIT as well, if an event could be recorded;
- (host time, SEEN), (0, 0): the boundaries above, back to the last SEEN, were complete by then;
- (number, DROPPED), (0, 0): boundaries so far that have no event, because the queue was full or a stream was captured.
"""

from __future__ import annotations

import array
import functools
import os
import sys
import time
from collections import deque
from threading import get_ident

from .. import environment, writer
from ..files import Kept
from ..guard import swallow
from ..parts import parameters_in
from .loop import loop
from .observer import Observer

WAIT = 8
WAITED = 9
SEEN = 10
DROPPED = 11
BIAS = 1 << 40  # a side stream can reach a boundary before the first event: the sum stays positive

MOST_PENDING = 4096  # events in the queue, some hundred steps ahead of the device
LOOK_UNTIL = 64  # steps without a tensor on the device: the program does not use it

_timeline = None
_parents = None  # in a forked child
_plain_emit = writer.emit
_capturing = 0  # graphs that are being captured in this process: their streams may not be asked anything


class CudaBackend:
    """What a timeline needs of torch: events with timing, the current stream of one device, and whether it is captured."""

    def __init__(self, torch, index: int) -> None:
        self._event_class = torch.cuda.Event
        self._current_stream = torch.cuda.current_stream
        self._raw_stream = torch._C._cuda_getCurrentRawStream
        self.is_capturing = torch.cuda.is_current_stream_capturing
        self._index = index
        self._streams: dict = {}

    def event(self):
        """A new event that can be timed."""
        return self._event_class(enable_timing=True)

    def stream(self) -> tuple:
        """(stream, its number in order of appearance)."""
        raw = self._raw_stream(self._index)
        known = self._streams.get(raw)
        if known is None:
            known = self._streams[raw] = (self._current_stream(self._index), min(len(self._streams), 4095))
        return known


class Timeline:
    """Records events at boundaries and reads them when the device has passed them; never waits."""

    def __init__(self, backend, write, clock=time.monotonic_ns, emit_at=writer.emit_at, most: int = MOST_PENDING) -> None:
        self._backend = backend
        self._write = write  # takes the bytes of complete records
        self._clock = clock
        self._emit_at = emit_at
        self._most = most
        self._pool: list = []
        self._queue: deque = deque()
        self._last = None  # newest event whose time was read: the next one is measured from it
        self._device_ns = 0
        self._words = array.array("Q")
        self._dropped = self._told = 0
        self._waits = 0
        self._wait_began = 0

    def mark(self, code: int) -> None:
        """A phase boundary: the host's word and the device's event."""
        now = self._clock()
        self._emit_at(code, now)
        self._record(code, now)

    def wait_begins(self) -> None:
        """The host is about to wait for the device."""
        self._waits += 1
        if self._waits == 1:
            self._wait_began = self._clock()
            self._record(WAIT, self._wait_began)

    def wait_ended(self) -> None:
        """It came back: all work from before the wait is done, and can be read."""
        self._waits = max(0, self._waits - 1)
        if self._waits == 0 and self._wait_began:
            self._words.extend((self._wait_began << 12 | WAITED, self._clock() << 12))
            self._wait_began = 0
            self.drain()

    def _record(self, code: int, now: int) -> None:
        if _capturing or len(self._queue) >= self._most or self._backend.is_capturing():
            self._dropped += 1
            return
        stream, number = self._backend.stream()
        event = self._pool.pop() if self._pool else self._backend.event()
        event.record(stream)
        self._queue.append((event, now << 12 | code, number))

    def drain(self) -> None:
        """Read the events that the device has passed, and write them down."""
        if _capturing or self._backend.is_capturing():
            return
        queue, words = self._queue, self._words
        found = False
        while queue and queue[0][0].query():
            event, host, number = queue.popleft()
            if self._last is not None:
                self._device_ns += round(self._last.elapsed_time(event) * 1e6)
                self._pool.append(self._last)
            self._last = event
            words.extend((host, (self._device_ns + BIAS) << 12 | number))
            found = True
        if found:
            words.extend((self._clock() << 12 | SEEN, 0))
        if self._dropped != self._told:
            self._told = self._dropped
            words.extend((self._dropped << 12 | DROPPED, 0))
        if words:
            self._write(words.tobytes())
            del words[:]


class Watch(Observer):
    """Waits for the first model or loss on a CUDA device; then a timeline is kept until the program ends."""

    def __init__(self, torch) -> None:
        self._torch = torch

    def on_forward(self, module: object, args: tuple, kwargs: dict) -> None:
        """A root whose parameters live on a device."""
        parameter = next(parameters_in(module), None)
        if parameter is not None and parameter.is_cuda:
            self._start(parameter.device)

    def on_backward(self, tensors: tuple, grad_tensors: object) -> None:
        """A loss on a device, where no module is called."""
        if tensors and getattr(tensors[0], "is_cuda", False):
            self._start(tensors[0].device)

    def _start(self, device) -> None:
        loop.remove(self.on_forward, self.on_backward)
        guard_captures(self._torch)
        start(CudaBackend(self._torch, self._torch.cuda.current_device() if device.index is None else device.index))

    def on_boundary(self, step: int) -> None:
        """Read what the device has done; give up where it does nothing."""
        if _timeline is not None:
            _read()
        elif step >= LOOK_UNTIL:
            loop.remove(self.on_forward, self.on_backward, self.on_boundary)

    def on_exit(self) -> None:
        """What is done by now; the rest is not waited for."""
        if _timeline is not None:
            _read()


def watch(torch):
    """The observer that starts a timeline when it is due; None where there is no NVIDIA device."""
    if torch.version.cuda is None or not any(os.path.exists(path) for path in ("/dev/nvidiactl", "/dev/nvidia0", "/dev/dxg")):
        return None
    return Watch(torch)


def start(backend) -> None:
    """Record an event at every boundary from now on."""
    global _timeline
    if _timeline is None:
        _timeline = Timeline(backend, _DeviceFile().write, clock=_since_base)
        _route(_emit_with_event)


def stop() -> None:
    """Record host times only, as before."""
    global _timeline
    _timeline = None
    _route(_plain_emit)


def wait_begins() -> None:
    """For hooks on calls that block until the device is done: call it right before, `wait_ended` right after, whatever it raised."""
    if _timeline is not None and loop.tid == get_ident():
        try:
            _timeline.wait_begins()
        except Exception as error:
            _give_up(error)


def wait_ended() -> None:
    """See `wait_begins`."""
    if _timeline is not None and loop.tid == get_ident():
        try:
            _timeline.wait_ended()
        except Exception as error:
            _give_up(error)


def after_fork() -> None:
    """A forked child can't use the device, not even to give events back: they are kept."""
    global _parents
    _parents = _timeline or _parents
    stop()


def _since_base() -> int:
    return time.monotonic_ns() - writer._base


def _emit_with_event(code: int) -> None:
    """Takes the place of `writer.emit` in all hooks; codes of worker-side marks and step ends have no event."""
    if 15 < code < 1024 and _timeline is not None:
        try:
            _timeline.mark(code)
        except Exception as error:
            _give_up(error)
    else:
        _plain_emit(code)


def _read() -> None:
    try:
        _timeline.drain()
    except Exception as error:
        _give_up(error)


def _give_up(error: BaseException) -> None:
    swallow("device timeline", error)
    stop()


def _route(emit) -> None:
    """Let every hook call `emit`; the line sampler keeps its own, since it runs inside a signal handler."""
    loop.plain_until = 0
    ours = (_plain_emit, _emit_with_event)
    for name, module in list(sys.modules.items()):
        if name.startswith("trainflash_probe.") and not name.endswith(".lines") and vars(module).get("emit") in ours:
            module.emit = emit


class _DeviceFile:
    """Opened with the first record, when the process has its other files."""

    def __init__(self) -> None:
        self._file = None

    def write(self, records: bytes) -> None:
        if self._file is None:
            name = f"device-{os.getpid()}-{time.monotonic_ns()}.bin"
            self._file = Kept(os.path.join(environment.directory, name), os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND)
            writer.fact("device_marks", file=name, bias=BIAS)
        if self._file.write(records) != len(records):
            raise OSError("the disk is full")


def guard_captures(torch) -> None:
    """While a graph is captured, even asking an event whether it is done would spoil the capture."""
    graph = getattr(torch.cuda, "CUDAGraph", None)
    if graph is None or hasattr(graph.capture_begin, "_trainflash"):
        return
    graph.capture_begin = _begin(graph.capture_begin)
    graph.capture_end = _end(graph.capture_end)


def _begin(original):
    @functools.wraps(original)
    def capture_begin(*args, **kwargs):
        global _capturing
        _capturing += 1
        try:
            return original(*args, **kwargs)
        except BaseException:
            _capturing -= 1
            raise

    capture_begin._trainflash = True
    return capture_begin


def _end(original):
    @functools.wraps(original)
    def capture_end(*args, **kwargs):
        global _capturing
        try:
            return original(*args, **kwargs)
        finally:
            _capturing = max(0, _capturing - 1)

    return capture_end
