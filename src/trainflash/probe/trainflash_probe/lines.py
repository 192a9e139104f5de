"""Samples the training (or worker) thread's line of the owner's code, by a real-time signal to that thread.

A sampling thread would be biased by the interpreter lock. The signal's handler runs on the main thread, so where another thread trains it
looks at that thread's frame. Off where timer_create is missing, the signal is taken, or the main thread is elsewhere.
"""

from __future__ import annotations

import atexit
import ctypes
import signal
import sys
import threading

from . import codes, own
from .environment import number
from .guard import swallow
from .writer import emit, fact, is_open

_SIGEV_THREAD_ID = 4
_CLOCK_MONOTONIC = 1
_SIGNAL_OFFSET = 9  # SIGRTMIN + 9: the first ones are taken by thread libraries and profilers

_timer = None
_libc = None
_places: dict = {}  # (code, line) -> place id
_thread = 0


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


def start(ident: int) -> None:
    """Begin to sample thread `ident` of this process; does nothing when it runs already or cannot run."""
    global _thread
    hertz = number("TRAINFLASH_SAMPLE_HZ", 50.0)
    if _timer is not None or hertz <= 0 or threading.current_thread() is not threading.main_thread():
        return
    _thread = ident
    try:
        _arm(min(hertz, 1000.0))
    except Exception as error:
        swallow("line sampler", error)


def _arm(hertz: float) -> None:
    global _timer, _libc
    number_of_signal = signal.SIGRTMIN + _SIGNAL_OFFSET
    if signal.getsignal(number_of_signal) not in (signal.SIG_DFL, _sample):
        return
    _libc = ctypes.CDLL(None, use_errno=True)
    if not hasattr(_libc, "timer_create"):
        _libc = ctypes.CDLL("librt.so.1", use_errno=True)
    atexit.register(stop)
    signal.signal(number_of_signal, _sample)
    signal.siginterrupt(number_of_signal, False)
    event = _SigEvent(None, number_of_signal, _SIGEV_THREAD_ID, threading.get_native_id())
    timer = ctypes.c_void_p()
    if _libc.timer_create(_CLOCK_MONOTONIC, ctypes.byref(event), ctypes.byref(timer)) != 0:
        raise OSError(ctypes.get_errno(), "timer_create")
    _timer = timer
    interval = int(1e9 / hertz)
    spec = _TimerSpec(interval // 10**9, interval % 10**9, interval // 10**9, interval % 10**9)
    if _libc.timer_settime(timer, 0, ctypes.byref(spec), None) != 0:
        raise OSError(ctypes.get_errno(), "timer_settime")


def _sample(signo, frame) -> None:
    try:
        if not is_open():
            return
        if _thread != threading.get_ident():
            frame = sys._current_frames().get(_thread)
        frame = own.own_frame(frame)
        emit(codes.SAMPLE_OF + (0 if frame is None else _place(frame)))
    except Exception as error:
        swallow("sample", error)


def _place(frame) -> int:
    key = (frame.f_code, frame.f_lineno)
    place = _places.get(key)
    if place is None:
        if len(_places) >= codes.MAX_PLACE:
            return 0
        place = _places[key] = len(_places) + 1
        fact("place", id=place, at=own.place_of_frame(frame))
    return place


def stop() -> None:
    """Disarm: after the interpreter has put signal handlers back, one more signal would end the process."""
    global _timer
    if _timer is not None:
        _libc.timer_delete(_timer)
        _timer = None


def watch(ident: int) -> None:
    """Sample another thread from now on: the one that turned out to train."""
    global _thread
    _thread = ident


def after_fork() -> None:
    """Timers are not inherited; places are written again into the child's own facts."""
    global _timer
    _timer = None
    _places.clear()
