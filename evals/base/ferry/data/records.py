"""Tickets as they lie on disk: JSON lines, one file for each split, and an index of where each ticket begins."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Ticket:
    """One ticket. `urgency` is in [0, 1]; `queue` is the index of the team that solved it."""

    id: str
    subject: str
    body: str
    queue: int
    urgency: float
    channel: str
    thread: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        return " ".join([self.subject, self.body, *self.thread])


class RecordError(ValueError):
    """A ticket on disk is damaged."""


def parse_ticket(line: str, where: str) -> Ticket:
    try:
        found = json.loads(line)
        return Ticket(
            id=found["id"],
            subject=found["subject"],
            body=found["body"],
            queue=int(found["queue"]),
            urgency=float(found["urgency"]),
            channel=found.get("channel", "mail"),
            thread=tuple(found.get("thread", ())),
        )
    except (ValueError, KeyError, TypeError) as bad:
        raise RecordError(f"{where}: {bad!r}") from None


class TicketFile:
    """Random access to the tickets of one split."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.offsets = list(self._scan())
        self._file = None

    def _scan(self) -> Iterator[int]:
        at = 0
        with self.path.open("rb") as file:
            for line in file:
                if line.strip():
                    yield at
                at += len(line)

    def __len__(self) -> int:
        return len(self.offsets)

    def __getitem__(self, index: int) -> Ticket:
        if self._file is None:
            self._file = self.path.open("rb")
        self._file.seek(self.offsets[index])
        return parse_ticket(self._file.readline().decode("utf-8"), f"{self.path}:{index + 1}")

    def __getstate__(self) -> dict:
        return {**self.__dict__, "_file": None}

    def __iter__(self) -> Iterator[Ticket]:
        for index in range(len(self)):
            yield self[index]


def split_path(folder: Path, split: str) -> Path:
    path = folder / f"{split}.jsonl"
    if not path.is_file():
        raise RecordError(f"{path} is missing; make the data with tools/make_data.py")
    return path
