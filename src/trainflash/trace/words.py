"""Words of an events file → sorted times and codes, without what a dying process left half-written."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

MAGIC = int.from_bytes(b"TFEVENT1", "little")
MAX_BACK_NS = 60 * 1_000_000_000  # a word may be late: a process without a core for seconds writes the begin of a phase behind a sample
MAX_GAP_NS = 24 * 3600 * 1_000_000_000  # a longer silence in front of a word means that the word is garbage


@dataclass(frozen=True)
class Codes:
    """Event codes as the header of a process says them."""

    names: dict[str, int]
    phases: tuple[str, ...]

    def __getitem__(self, name: str) -> int:
        return self.names[name]

    @property
    def with_values(self) -> tuple[str, ...]:
        """Names of the events that numbers may follow, those that this version of the probe knew."""
        return tuple(name for name in ("fetched", "collective", "reduced") if name in self.names)

    @property
    def first_phase(self) -> int:
        """Code of the begin of the first phase; begin and end alternate from there."""
        return self.names[self.phases[0]]


@dataclass(frozen=True)
class Words:
    """Events in order of time; `value` and `second` are the numbers that followed the event, -1 where none did.

    `steps` (completed) and `dropped` (events that were not recorded) stand in the file's head.
    """

    t_ns: np.ndarray
    code: np.ndarray
    value: np.ndarray
    steps: int
    dropped: int
    second: np.ndarray


def read(path: Path, codes: Codes, base_ns: int) -> Words:
    """The events of one file; nothing of it where the file is absent, too short or not ours."""
    empty = np.zeros(0, dtype=np.int64)
    header = codes["header_words"]
    try:
        raw = np.fromfile(path, dtype="<u8", count=path.stat().st_size // 8)
    except OSError:
        raw = np.zeros(0, dtype="<u8")
    if len(raw) < header or int(raw[0]) != MAGIC:
        return Words(empty, empty, empty, 0, 0, empty)
    words = raw[header:]
    words = words[words != 0]
    code = (words & 0xFFF).astype(np.int64)
    number = (words >> 12).astype(np.int64)
    code, number = _cut_garbage(code, number, codes)
    timed = code != codes["value"]
    value, second = np.full(len(code), -1, dtype=np.int64), np.full(len(code), -1, dtype=np.int64)
    followers = np.flatnonzero(~timed)
    owners = _owner_of_value(followers, code, codes)
    followers, owners = followers[owners >= 0], owners[owners >= 0]
    again = np.concatenate(([False], owners[1:] == owners[:-1])) if len(owners) else np.zeros(0, dtype=bool)
    value[owners[~again]] = number[followers[~again]]
    second[owners[again]] = number[followers[again]]
    t, code, value, second = number[timed] + base_ns, code[timed], value[timed], second[timed]
    if len(t) and np.any(np.diff(t) < 0):
        order = np.argsort(t, kind="stable")
        t, code, value, second = t[order], code[order], value[order], second[order]
    return Words(t, code, value, int(raw[1]), int(raw[2]), second)


def _cut_garbage(code: np.ndarray, number: np.ndarray, codes: Codes) -> tuple[np.ndarray, np.ndarray]:
    known = np.zeros(4096, dtype=bool)
    for name in ("step", "value", "fetch", "collate", "fetched", "exit", *codes.with_values):
        known[codes[name]] = True
    known[codes.first_phase : codes.first_phase + 2 * len(codes.phases)] = True
    known[codes["data_of"] : codes["data_of"] + 256] = True
    known[codes["iter_of"] : codes["iter_of"] + 256] = True
    known[codes["sample_of"] :] = True
    timed = np.flatnonzero(code != codes["value"])
    if not len(timed):
        return code[:0], number[:0]
    t = number[timed]
    latest = np.maximum.accumulate(t)
    before = np.concatenate(([t[0]], latest[:-1]))
    bad = ~known[code[timed]] | (t < before - MAX_BACK_NS) | (t > before + MAX_GAP_NS)
    if bad.any():
        end = timed[np.argmax(bad)]
        return code[:end], number[:end]
    return code, number


def _owner_of_value(followers: np.ndarray, code: np.ndarray, codes: Codes) -> np.ndarray:
    """Index of the event that each value belongs to: the newest before it that takes values (a sample may lie between)."""
    takers = np.flatnonzero(np.isin(code, [codes[name] for name in codes.with_values]))
    at = np.searchsorted(takers, followers) - 1
    return np.where(at >= 0, takers[np.maximum(at, 0)] if len(takers) else -1, -1)
