"""Events as 8-byte words in a shared memory map, facts as JSON lines.

The kernel keeps a shared map when the process dies, so nothing has to be flushed. Each chunk is allocated on disk before it is mapped:
a full disk ends the recording, never the program. `emit` is safe against signal handlers that emit too (each call takes its own slot),
and files are opened with the first event, because a program starts many Pythons that never train.
"""

from __future__ import annotations

import itertools
import json
import os
import sys
import time

from . import codes, process
from .environment import directory
from .files import Kept, shared_words
from .guard import swallow
from .shown import command_line

CHUNK = 512 * 1024
_SCRATCH_WORDS = 4096

_clock = time.monotonic_ns
_dumps = json.dumps  # as it was, before the program's calls of it are noted
_view = memoryview(bytearray(0)).cast("Q")
_counter = itertools.count()
_WRAPS_AT = 1 << 51  # nanoseconds since boot: past half of what a word holds, times count from the start of the process
_base = process.base_ns if process.base_ns > _WRAPS_AT else 0
_head = None  # view of the first chunk: magic, steps, dropped
_events = ""  # path of the events
_facts = None  # the file of facts
_chunks = 0
_state = "unopened"  # unopened, open, lost
_waiting: list = []  # facts from before the files were opened
_growing = False


def _emit_since_boot(code: int) -> None:
    try:
        _view[next(_counter)] = _clock() << 12 | code
    except IndexError:
        _make_room(_clock() << 12 | code)


def _emit_since_base(code: int) -> None:
    try:
        _view[next(_counter)] = (_clock() - _base) << 12 | code
    except IndexError:
        _make_room((_clock() - _base) << 12 | code)


emit = _emit_since_base if _base else _emit_since_boot  # write one event, now


def emit_two(code: int, other: int) -> None:
    """Write two events that happen at the same time: a step ends and a phase begins."""
    now = (_clock() - _base if _base else _clock()) << 12
    try:
        _view[next(_counter)] = now | code
    except IndexError:
        _make_room(now | code)
    try:
        _view[next(_counter)] = now | other
    except IndexError:
        _make_room(now | other)


def emit_value(value: int) -> None:
    """Write a number that belongs to the event before it."""
    word = value << 12 | codes.VALUE
    try:
        _view[next(_counter)] = word
    except IndexError:
        _make_room(word)


def emit_at(code: int, since_base_ns: int) -> None:
    """Write one event with a time of its own, not before that of the newest event."""
    word = since_base_ns << 12 | code
    try:
        _view[next(_counter)] = word
    except IndexError:
        _make_room(word)


def since_base() -> int:
    """Now, as `emit_at` takes it."""
    return _clock() - _base


def newest_event() -> int:
    """Time of the newest event that is no sample, since the base; None where it is not at hand (a new chunk)."""
    index = int(repr(_counter)[6:-1]) - 1
    for back in range(index, max(-1, index - 40), -1):
        word = _view[back] if back < len(_view) else 0
        if word and back >= codes.HEADER_WORDS and word & 0xFFF < codes.SAMPLE_OF and word & 0xFFF != codes.VALUE:
            return word >> 12
    return None


def set_steps(steps: int) -> None:
    """Publish the number of completed steps where a reader finds it at once."""
    if _head is not None:
        _head[1] = steps


def is_open() -> bool:
    """True once this process has training events."""
    return _state != "unopened"


def _make_room(word: int) -> None:
    global _growing
    if _growing:  # a signal handler came in between: this sample is dropped
        return
    _growing = True
    try:
        if not directory:
            _lose()  # nobody has asked for a run: never write into the folder that the program happens to be in
        elif _state == "unopened":
            _open()
        elif _state == "open":
            _map_next_chunk()
        else:
            _drop()
    except Exception as error:
        swallow("writer", error)
        notice(f"the probe could not write events: {error}")
        _lose()
    finally:
        _growing = False
    _view[next(_counter)] = word


def _map_next_chunk() -> None:
    global _view, _counter, _chunks, _head
    offset = _chunks * CHUNK
    fd = os.open(_events, os.O_RDWR | os.O_CLOEXEC | (os.O_CREAT | os.O_EXCL if _chunks == 0 else 0), 0o644)
    try:
        os.posix_fallocate(fd, offset, CHUNK)
        chunk = shared_words(fd, offset, CHUNK)
    finally:
        os.close(fd)
    first = 0
    if _chunks == 0:
        chunk[0] = codes.MAGIC
        _head = chunk
        first = codes.HEADER_WORDS
    _chunks += 1
    _view, _counter = chunk, itertools.count(first)


def _lose() -> None:
    """Stop recording: from now on events go to a scratch ring and are counted."""
    global _state, _view, _counter
    _state = "lost"
    _view, _counter = memoryview(bytearray(8 * _SCRATCH_WORDS)).cast("Q"), itertools.count()
    if _head is not None:
        _head[2] = max(1, _head[2])


def _drop() -> None:
    global _counter
    if _head is not None:
        _head[2] += _SCRATCH_WORDS
    _counter = itertools.count()


def _create(name: str) -> Kept:
    return Kept(os.path.join(directory, name), os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND)


def _open() -> None:
    global _state, _events, _facts
    stem, attempt = str(os.getpid()), 1
    while os.path.exists(os.path.join(directory, f"process-{stem}.json")):  # the process replaced itself by exec
        attempt += 1
        stem = f"{os.getpid()}-{attempt}"
    torch = sys.modules.get("torch")
    header = {
        "schema": codes.VERSION,
        "pid": os.getpid(),
        "ppid": os.getppid(),
        "role": process.role,
        "host": process.host(),
        "rank": process.rank(),
        "world_size": process.world_size(),
        "argv": command_line([str(word) for word in getattr(sys, "argv", [])]),
        "python": sys.version.split()[0],
        "torch": str(getattr(torch, "__version__", "")),
        "start_ns": process.start_ns(),
        "base_ns": _base,
        "own": os.environ.get("TRAINFLASH_OWN", "").split(os.pathsep),
        "codes": codes.NAMES,
        "phases": list(codes.PHASES),
        "events": f"events-{stem}.bin",
        "facts": f"facts-{stem}.jsonl",
    }
    _facts = _create(header["facts"])
    _events = os.path.abspath(os.path.join(directory, header["events"]))
    _map_next_chunk()
    header_file = _create(f"process-{stem}.json")
    try:
        header_file.write(_dumps(header).encode())
    finally:
        header_file.close()
    _state = "open"
    while _waiting:
        _facts.write(_waiting.pop(0))


def fact(kind: str, **values) -> None:
    """Write one fact. Before the first event it waits in memory; on a full disk it is dropped and counted."""
    try:
        values["k"] = kind
        line = _dumps(values, default=str).encode() + b"\n"
        if _state == "unopened":
            if len(_waiting) < 1000:
                _waiting.append(line)
        elif _state == "open":
            _facts.write(line)
    except Exception as error:
        swallow("facts", error)


def notice(text: str) -> None:
    """Tell the launcher something; readers show it when no training was seen."""
    if not directory:
        return
    try:
        fd = os.open(os.path.join(directory, "notice.jsonl"), os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        try:
            line = {"pid": os.getpid(), "notice": text, "rank": process.rank(), "world_size": process.world_size(), "host": process.host()}
            os.write(fd, _dumps(line).encode() + b"\n")
        finally:
            os.close(fd)
    except Exception as error:
        swallow("notice", error)


def after_fork() -> None:
    """In a forked child: forget the parent's files; the child opens its own with its first event."""
    global _state, _view, _counter, _head, _chunks, _facts, _growing
    if _facts is not None:
        _facts.close()
    _state, _head, _chunks, _facts, _growing = "unopened", None, 0, None, False
    _view, _counter = memoryview(bytearray(0)).cast("Q"), itertools.count()
    _waiting.clear()
