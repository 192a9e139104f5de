"""Samples the training (or worker) thread's line of the owner's code, by a real-time signal to that thread.

A sampling thread would be biased by the interpreter lock. The signal's handler runs on the main thread, so where another thread trains it
looks at that thread's frame. A signal that arrives inside a long C call is handled right after it, at the line that made the call, and a
sample counts for all the time since the one before: so the call's line gets its time (for operators see `closer`). When the timer went
off, and so the phase that was going on, a reader tells from the times at which it does. Off where
timer_create is missing, the signal is taken, torch is first imported outside the main thread (only there can a handler be set), or the
program waits for any signal, by `signal.pause` or a file descriptor that each signal writes to.
"""

from __future__ import annotations

import atexit
import ctypes
import signal
import sys
import threading
import time

from .. import codes, frames, own
from ..environment import number
from ..guard import swallow
from ..patches import like
from ..phases import feeding
from ..writer import emit, fact, is_open
from . import ahead, beside, closer, stacks

_SIGEV_THREAD_ID = 4
_CLOCK_MONOTONIC = 1
_TIMER_ABSTIME = 1
_SIGNAL_OFFSET = 9  # SIGRTMIN + 9: the first ones are taken by thread libraries and profilers

_timer = None
_libc = None
MOST_OF_STACKS = codes.MAX_PLACE - 512  # places that differ by their stacks; later ones are lines alone

_places: dict = {}  # (code, line, late, a generator that makes batches led there, a library that it called, stack) -> place id
_interval_ns = 0
_armed_ns = _newest_ns = 0
_thread = 0
_taking = False  # a sample is being taken
_prepared = False
_unwanted = False  # the program waits for any signal
_within = ""  # name of the function that the sampled work runs in: frames outside it are not its cause


class _SigEvent(ctypes.Structure):
    _fields_ = (
        ("value", ctypes.c_void_p),
        ("signo", ctypes.c_int),
        ("notify", ctypes.c_int),
        ("tid", ctypes.c_int),
        ("pad", ctypes.c_byte * 44),
    )


class _TimerSpec(ctypes.Structure):
    _fields_ = tuple((name, ctypes.c_long) for name in ("interval_s", "interval_ns", "value_s", "value_ns"))


def prepare() -> None:
    """Set the handler; only the main thread may. Without a timer nothing happens."""
    global _prepared
    try:
        number_of_signal = signal.SIGRTMIN + _SIGNAL_OFFSET
        if threading.current_thread() is threading.main_thread() and signal.getsignal(number_of_signal) in (signal.SIG_DFL, _sample):
            signal.signal(number_of_signal, _sample)
            signal.siginterrupt(number_of_signal, False)
            for name in () if _prepared else ("set_wakeup_fd", "pause"):
                setattr(signal, name, _waits_for_any(getattr(signal, name)))
            _prepared = True
    except Exception as error:
        swallow("line sampler", error)


def _waits_for_any(original):
    """What waits for a signal, whichever it is, must not get ours: it ends the sampling. asyncio lets unknown ones pass."""

    @like(original)
    def waits(*args, **kwargs):
        global _unwanted
        try:
            if args[:1] != (-1,) and not sys._getframe(1).f_globals.get("__name__", "").startswith("asyncio."):
                _unwanted = True
                stop()
        except Exception as error:
            swallow("line sampler", error)
        return original(*args, **kwargs)

    return waits


def start(ident: int, within: str = "") -> None:
    """Begin to sample thread `ident` of this process, or sample that thread from now on; does nothing where it cannot run.

    With `within`, lines outside the function of that name do not count: a forked worker's stack goes on in the program that forked it.
    """
    global _within
    hertz = number("TRAINFLASH_SAMPLE_HZ", 50.0)
    if hertz <= 0 or _unwanted:
        return
    _within = within
    if _timer is not None:
        watch(ident)
        return
    try:
        if not _prepared:
            prepare()
        if _prepared and signal.getsignal(signal.SIGRTMIN + _SIGNAL_OFFSET) is _sample:
            watch(ident)
            _arm(min(hertz, 1000.0))
    except Exception as error:
        swallow("line sampler", error)


def _arm(hertz: float) -> None:
    global _timer, _libc, _interval_ns, _armed_ns, _newest_ns
    _libc = ctypes.CDLL(None, use_errno=True)
    if not hasattr(_libc, "timer_create"):
        _libc = ctypes.CDLL("librt.so.1", use_errno=True)
    atexit.register(stop)
    main = threading.main_thread()
    target = threading.get_native_id() if threading.current_thread() is main else main.native_id
    event = _SigEvent(None, signal.SIGRTMIN + _SIGNAL_OFFSET, _SIGEV_THREAD_ID, target)
    timer = ctypes.c_void_p()
    if _libc.timer_create(_CLOCK_MONOTONIC, ctypes.byref(event), ctypes.byref(timer)) != 0:
        raise OSError(ctypes.get_errno(), "timer_create")
    _timer = timer
    interval = _interval_ns = int(1e9 / hertz)
    _armed_ns = _newest_ns = time.monotonic_ns()
    first = _armed_ns + interval
    spec = _TimerSpec(interval // 10**9, interval % 10**9, first // 10**9, first % 10**9)
    if _libc.timer_settime(timer, _TIMER_ABSTIME, ctypes.byref(spec), None) != 0:
        raise OSError(ctypes.get_errno(), "timer_settime")
    fact("sampling", armed_ns=_armed_ns, interval_ns=interval)


def _sample(signo, frame) -> None:
    global _newest_ns, _taking
    if _timer is None or _taking:  # a look at a deep stack may take longer than the timer's interval
        return
    _taking = True
    try:
        waited = _thread != threading.get_ident()
        if waited:
            frame = frames.of_threads().get(_thread)
        now = time.monotonic_ns()
        before, _newest_ns = _newest_ns, now
        if not is_open():
            return
        beside.look()
        leaf, frame = own.ran(frame), own.was_running(own.own_frame(frame, _forked_here), _forked_here)
        tick = _armed_ns + ((before - _armed_ns) // _interval_ns + 1) * _interval_ns
        if feeding.waiting is not None:
            emit(codes.SAMPLE_OF + _place_of_maker(feeding.waiting, frame))
            return
        late = closer.is_late(now - tick, waited)
        library = "" if frame is None or late else own.library_below(leaf, frame)
        emit(codes.SAMPLE_OF + _place(frame, late, waited, library, stacks.number(leaf, _forked_here)))
    except Exception as error:
        swallow("sample", error)
    finally:
        _taking = False


def _forked_here(code) -> bool:
    return code.co_name == _within


def _place(frame, late: bool, waited: bool = False, library: str = "", stack: int = 0) -> int:
    if frame is None:
        return _number((None, 0, False, False, "", stack), lambda: None, stack=stack) if stack else 0
    makes = feeding.makes(frame)
    line = own.line_of(frame)
    if late:
        closer.late((frame.f_code, line), waited, _belongs)
    key = (frame.f_code, line, late, makes, library, stack if len(_places) < MOST_OF_STACKS else 0)
    return _number(key, lambda: own.place_of_frame(frame), makes=makes, library=library, stack=key[-1])


def _number(key: tuple, at, **more) -> int:
    place = _places.get(key)
    if place is None:
        if len(_places) >= codes.MAX_PLACE:
            return 0
        place = _places[key] = len(_places) + 1
        fact("place", id=place, at=at(), **{name: value for name, value in more.items() if value or name == "makes"})
    return place


def _place_of_maker(made, frame) -> int:
    """Where what the training thread waits for at `frame` is made: in another process, in another thread, or nobody knows."""
    if made:
        return _number(tuple(made), lambda: made, makes=False)
    mine = feeding.frame_of_maker(_thread)
    return _place(frame if mine is None else mine, late=False) if mine is not None or frame is not None else 0


def _belongs(place: tuple, truth: tuple) -> None:
    """The late samples at `place` are those of the line `truth`: a reader takes the newest fact about a place."""
    code, line = truth
    for key, number_of_place in list(_places.items()):
        if key[:3] == (*place, True) and len(key) > 3:
            makes = key[3] or code in feeding.running
            fact("place", id=number_of_place, at=[own.path_of(code), line, own.name_of(code)], makes=makes, stack=key[-1])


def _interrupt(may: bool) -> None:
    if _timer is not None:
        signal.siginterrupt(signal.SIGRTMIN + _SIGNAL_OFFSET, may)


def stop() -> None:
    """Disarm: after the interpreter has put signal handlers back, one more signal would end the process."""
    global _timer
    if _timer is not None:
        _libc.timer_delete(_timer)
        _timer = None


def watch(ident: int) -> None:
    """Sample this thread from now on: the one that turned out to train."""
    global _thread
    if ident != _thread and _prepared:
        # System calls of other libraries start again after the signal, unless it is the main thread's waiting that has to be interrupted.
        others = ident != threading.main_thread().ident
        signal.siginterrupt(signal.SIGRTMIN + _SIGNAL_OFFSET, others)
        feeding.interrupt = None if others else _interrupt
    _thread = ident


def after_fork() -> None:
    """Timers are not inherited; places are written again into the child's own facts."""
    global _timer
    _timer = None
    _places.clear()
    ahead.after_fork()
    closer.after_fork()
    stacks.after_fork()
    beside.after_fork()
