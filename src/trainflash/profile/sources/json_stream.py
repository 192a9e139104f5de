"""A stream of bytes → events of a JSON trace, in bounded memory, whatever is wrong with the text.

Events are decoded by msgspec, many at once: a window of the buffer from one event's begin to another one's end becomes a list by writing
its brackets over the bytes around it. Where a window does not decode, the events before the fault are taken in one go, the faulty one is
mended (`json_repair`) or counted and left out, and reading goes on behind it. What stands beside the events at the top level is given as
headers. A text that ends early keeps every event before the cut.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import msgspec

from trainflash.errors import UsageError
from trainflash.profile.sources.json_faults import end_of_value, fault_place, last_match
from trainflash.profile.sources.json_repair import repaired

WINDOW = 2 << 20  # text decoded at once: 2 MiB hold some 8,000 events, whose objects stay below 10 MB
SMALLEST_WINDOW = 4 << 10
LONGEST_EVENT = 32 << 20  # an event (or header) that is longer is left out, so that hostile text cannot fill the memory
LONGEST_HEADER = 4 << 20  # a longer value beside the events is skipped, not kept
SURELY_WHOLE = 1 << 20  # no real event is longer: text that seems cut although this much follows is faulty, not cut

EVENTS_KEY = "traceEvents"

_NEXT = re.compile(rb"\}\s*,\s*(?=\{)")
_NEXT_SURELY = re.compile(rb"\}\s*,?\s*(?=\{\s*\"(?:ph|name|cat|pid|tid|ts|args|id|dur)\"\s*:)")
_ARRAY_END = re.compile(rb"\}\s*\]")
_SPACE = re.compile(rb"[\s,]*")
_KEY = re.compile(rb'[\s,]*("(?:[^"\\]|\\.){0,400}")\s*:\s*')
_NEXT_KEY = re.compile(rb',\s*(?="[A-Za-z_ ]{1,60}"\s*:)')
_ROOT = re.compile(rb"(?:\xef\xbb\xbf)?\s*")


@dataclass
class Text:
    """What was found beside the events; complete once the stream is read to its end."""

    truncated: bool = False
    cut_at: int | None = None
    unparsed: int = 0
    repaired: int = 0
    total: int = 0
    has_events: bool = False
    skipped_headers: tuple[str, ...] = ()


class JsonStream:
    """Iterates over lists of decoded events; headers go to `on_header(key, value)` as they come.

    `event_type` is the msgspec struct that each event is decoded into; it may be changed between two lists, and applies from the next one.
    Each list is valid until the next one is asked for. Raises `UsageError` where the text is no JSON trace at all.
    """

    def __init__(
        self, chunks: Iterable[bytes], event_type: type, on_header: Callable[[str, Any], None], name: str, window: int = WINDOW
    ) -> None:
        self.text = Text()
        self._chunks = iter(chunks)
        self._on_header = on_header
        self._name = name
        self._largest_window = self._window = window
        self._buffer = bytearray(b"  ")
        self._at = 1  # place in the buffer
        self._before = -1  # offset in the stream of the buffer's first byte
        self._final = False
        self._last_at, self._last_count = 1, 0
        self.event_type = event_type

    @property
    def event_type(self) -> type:
        return self._event_type

    @event_type.setter
    def event_type(self, event_type: type) -> None:
        self._event_type = event_type
        self._many = msgspec.json.Decoder(list[event_type | str | int | float | bool | list | None])
        self._one = msgspec.json.Decoder(event_type)

    def again(self) -> None:
        """Give the events of the last list once more, after `event_type` was changed."""
        self._at = self._last_at
        self.text.total -= self._last_count

    def __iter__(self) -> Iterator[list]:
        root = self._root()
        if root == b"[":
            self._at += 1
            self.text.has_events = True
            yield from self._events()
            return
        self._at += 1
        while (key := self._key()) is not None:
            if key == EVENTS_KEY and self._peek() == b"[":
                self._at += 1
                self.text.has_events = True
                yield from self._events()
                if self._final and self._at >= self._end():
                    break
            else:
                self._header(key)

    def _end(self) -> int:
        return len(self._buffer) - 1  # one spare byte, for a closing bracket

    def _more(self) -> bool:
        """Take the next chunk into the buffer, forgetting what was read. False at the end of the stream."""
        if self._final:
            return False
        chunk = next(self._chunks, None)
        if chunk is None:
            self._final = True
            return False
        keep = self._at - 1
        self._before += keep
        self._buffer = bytearray().join((memoryview(self._buffer)[keep : self._end()], chunk, b" "))
        self._at = 1
        return True

    def _peek(self) -> bytes:
        """The next byte that is no space, b"" at the end; `_at` is moved to it."""
        while True:
            self._at = _ROOT.match(self._buffer, self._at).end()
            if self._at < self._end():
                return bytes(self._buffer[self._at : self._at + 1])
            self._at = self._end()
            if not self._more():
                return b""

    def _root(self) -> bytes:
        while self._end() - self._at < 4 and self._more():
            pass
        root = self._peek()
        if root in (b"{", b"["):
            return root
        if not root:
            raise UsageError(f"{self._name} is empty", "name a trace that the profiler finished writing")
        raise UsageError(f"{self._name} is no JSON trace: it begins with {_shown(root)}", "name a Kineto, Chrome or Perfetto JSON trace")

    def _cut(self) -> None:
        if not self.text.truncated:
            self.text.truncated = True
            self.text.cut_at = self._before + min(self._at, self._end())

    # What stands beside the events

    def _key(self) -> str | None:
        """The next key of the top-level object; None at its end."""
        while True:
            first = self._buffer[_SPACE.match(self._buffer, self._at).end() : self._end()][:1]
            if first == b"}":
                return None
            found = _KEY.match(self._buffer, self._at)
            if found and found.end() < self._end():
                self._at = found.end()
                try:
                    return msgspec.json.decode(found[1], type=str)
                except ValueError:
                    return found[1].decode("utf-8", "replace")
            if self._end() - self._at < 4096 and self._more():
                continue
            following = _NEXT_KEY.search(self._buffer, self._at)
            if following:
                self._at = following.end()
            elif not self._final:
                self._at = max(self._at, self._end() - 512)
                self._more()
            else:
                self._cut()
                return None

    def _header(self, key: str) -> None:
        """Give the value at `_at` to `on_header`; a value that is too large, or no JSON, is passed over."""
        wanted = 1 << 16
        while True:
            length, fault = self._value()
            if length is not None and (fault or not self._grow(wanted)):
                break
            if length is None and "truncated" not in fault:
                self._leave_out(key)
                return
            if length is None and (len(self._buffer) > LONGEST_EVENT or not self._grow(wanted)):
                self._leave_out(key)
                return
            wanted *= 2
        if length <= LONGEST_HEADER:
            try:
                self._on_header(key, msgspec.json.decode(bytes(self._buffer[self._at : self._at + length])))
            except ValueError:
                self.text.skipped_headers += (key,)
        else:
            self.text.skipped_headers += (key,)
        self._at += length

    def _value(self) -> tuple[int | None, str | None]:
        """(length of the JSON value at `_at`, None if it does not end in the buffer; what msgspec says)."""
        view = memoryview(self._buffer)[self._at : self._end()]
        try:
            msgspec.json.decode(view, type=msgspec.Raw)
            return len(view), None
        except (ValueError, RecursionError) as error:
            return end_of_value(error), str(error)
        finally:
            view.release()

    def _grow(self, wanted: int) -> bool:
        """Have `wanted` more bytes in the buffer, or all there are. False if there are none."""
        size = self._end() - self._at
        while self._end() - self._at < size + wanted and self._more():
            pass
        return self._end() - self._at > size

    def _leave_out(self, key: str) -> None:
        self.text.skipped_headers += (key,)
        following = _NEXT_KEY.search(self._buffer, self._at)
        if following is None and self._final:
            self._cut()
        self._at = following.end() if following else self._end()

    # Events

    def _events(self) -> Iterator[list]:
        """All events of the array whose first byte is at `_at`."""
        while True:
            self._skip_separators()
            if self._at >= self._end():
                if self._more():
                    continue
                self._cut()
                return
            if self._buffer[self._at] == 0x5D:  # ]
                self._at += 1
                if self._really_ends():
                    return
                continue
            found = self._some()
            if found:
                self._last_count = len(found)
                self.text.total += len(found)
                yield found

    def _skip_separators(self) -> None:
        self._at = min(_SPACE.match(self._buffer, self._at).end(), self._end())

    def _really_ends(self) -> bool:
        """Whether the array ends here: what follows is no further event."""
        while self._end() - self._at < 4096 and self._more():
            pass
        after = bytes(self._buffer[self._at : min(self._at + 4096, self._end())]).lstrip(b" \t\r\n,")
        if not after.startswith(b"{"):
            return True
        self.text.unparsed += 1
        return False

    def _some(self) -> list | None:
        """Events from `_at` on, which is moved behind them; None where nothing could be had yet."""
        last, after = self._window_end()
        if last is None:
            if self._end() - self._at < LONGEST_EVENT and self._more():
                return None
            last = after = self._end()
        found, fault = self._decoded(self._at, last)
        if found is not None:
            self._at = after
            self._window = min(self._window * 2, self._largest_window)
            return found
        ended = end_of_value(fault)
        if ended is not None:
            close = self._buffer.rfind(b"]", self._at, self._at - 1 + ended)  # the array ends inside the window
            found = self._decoded(self._at, close)[0] if close > 0 else None
            if found is not None:
                self._at = close
                return found
        found = self._before_fault(fault_place(fault, self._at - 1, last))
        return self._single() if found is None else found

    def _window_end(self) -> tuple[int | None, int | None]:
        """(end of the last event, begin of the next one) within the window; the whole rest at the end of the stream."""
        while self._end() - self._at < self._window and self._more():
            pass
        limit = self._at + self._window
        if self._final and self._end() <= limit:
            return self._end(), self._end()
        found = last_match(_NEXT, self._buffer, self._at, min(limit, self._end()))
        found = found or _NEXT.search(self._buffer, self._at, self._end())
        if found:
            return found.start() + 1, found.end()
        return (self._end(), self._end()) if self._final else (None, None)

    def _decoded(self, first: int, last: int) -> tuple[list | None, Exception | None]:
        """The events that stand in buffer[first:last]; or what msgspec says is wrong."""
        buffer, self._last_at = self._buffer, first
        before, behind = buffer[first - 1], buffer[last]
        buffer[first - 1], buffer[last] = 0x5B, 0x5D  # [ ]
        try:
            return self._many.decode(memoryview(buffer)[first - 1 : last + 1]), None
        except (ValueError, RecursionError) as error:
            return None, error
        finally:
            buffer[first - 1], buffer[last] = before, behind

    def _before_fault(self, place: int | None) -> list | None:
        """The events before the one that holds `place`; none where the window is to be smaller first; None where this one is faulty."""
        if place is not None:
            for pattern in (_NEXT, _NEXT_SURELY):
                found = last_match(pattern, self._buffer, self._at, place)
                if found:
                    events, _ = self._decoded(self._at, found.start() + 1)
                    if events is not None:
                        self._at = found.end()
                        return events
            if found is None:
                return None
        smaller = max(SMALLEST_WINDOW, min(self._window, self._end() - self._at) // 2)
        if smaller >= self._window:
            return None
        self._window = smaller
        return []

    def _single(self) -> list | None:
        """The event at `_at`, mended if need be; counted and passed over if it cannot be."""
        self._last_at = self._at
        try:
            event = self._one.decode(memoryview(self._buffer)[self._at : self._end()])
            self._at = self._end()
            return [event]
        except (ValueError, RecursionError) as error:
            fault = error
        length = end_of_value(fault)
        if length is not None:
            try:
                event = self._one.decode(bytes(self._buffer[self._at : self._at + length]))
                self._at += length
                return [event]
            except (ValueError, RecursionError):
                pass
        return self._mended("truncated" in str(fault))

    def _mended(self, seems_cut: bool) -> list | None:
        following = _NEXT_SURELY.search(self._buffer, self._at, self._end())
        rest = self._end() - self._at
        if not self._final and rest < (SURELY_WHOLE if following else LONGEST_EVENT) and (seems_cut or following is None):
            self._more()
            return None
        if following:
            stops = [(following.start() + 1, following.end())]
        else:
            stops = [(found.start() + 1, found.end() - 1) for found, _ in zip(self._array_ends(), range(8), strict=False)]
        for stop, after in stops:
            event = self._first_repaired(stop) if stop - self._at <= SURELY_WHOLE else None
            if event is not None or following:
                self._at = after
                self.text.repaired += event is not None
                self.text.unparsed += event is None
                return None if event is None else [event]
        if stops and not seems_cut:
            self.text.unparsed += 1
            self._at = stops[0][1]
            return None
        if self._final:
            self._cut()
        else:
            self.text.unparsed += 1
        self._at = self._end()
        return None

    def _array_ends(self) -> Iterator[re.Match]:
        return _ARRAY_END.finditer(self._buffer, self._at, self._end())

    def _first_repaired(self, stop: int) -> Any | None:
        for text in repaired(bytes(self._buffer[self._at : stop])):
            try:
                return self._one.decode(text)
            except (ValueError, RecursionError):
                continue
        return None


def _shown(text: bytes) -> str:
    return repr(text.decode("latin-1"))
