"""Tables of an SQLite file that nsys exported → columns of integers and texts.

Schema: "SQLite Schema Reference" of NVIDIA Nsight Systems. Tables and columns come and go with its versions and with what was traced, so
each is looked for, and a missing one is a column of `MISSING`. The file is only read, never locked and never changed.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from trainflash.errors import UsageError

MISSING = -(2**63 - 1)  # NULL, or a column that this version lacks; SQLite reads -2**63 as a real number
LONGEST_TEXT = 4000  # characters of a name
EXPORT = "export it again with `nsys export --type sqlite`"

_ROWS = 50_000  # rows at once
_VIRTUAL = re.compile(r"^\s*CREATE\s+VIRTUAL\b", re.IGNORECASE)


@dataclass(frozen=True)
class Block:
    """Some rows of a table: `columns` int64, `texts` beside them where one was asked for."""

    columns: Mapping[str, np.ndarray]
    texts: Sequence[str | None] = ()

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def __getitem__(self, column: str) -> np.ndarray:
        return self.columns[column]

    def of(self, rows: np.ndarray) -> Block:
        """These rows alone."""
        texts = [self.texts[row] for row in rows.tolist()] if self.texts else ()
        return Block({name: values[rows] for name, values in self.columns.items()}, texts)


class Tables:
    """An open export. Raises `UsageError` where the file is damaged, also later, while a table is read."""

    def __init__(self, database: sqlite3.Connection, name: str) -> None:
        self._database, self._name = database, name
        found = self._all("SELECT name, sql FROM sqlite_master WHERE type = 'table'")
        self.names = {str(table) for table, made_by in found if not _VIRTUAL.match(str(made_by))}

    def __contains__(self, table: str) -> bool:
        return table in self.names

    def columns(self, table: str) -> frozenset[str]:
        """Names of the table's columns; none where there is no such table."""
        return frozenset(str(row[1]) for row in self._all(f'PRAGMA table_info("{table}")')) if table in self else frozenset()

    def blocks(self, table: str, columns: Sequence[str], text: str | None = None) -> Iterator[Block]:
        """The table's rows, in its own order. Integers of `columns`, `text` as it stands there."""
        known = self.columns(table)
        if not known:
            return
        wanted = [f'COALESCE(CAST("{column}" AS INTEGER), {MISSING})' if column in known else str(MISSING) for column in columns]
        wanted += [f'SUBSTR(CAST("{text}" AS TEXT), 1, {LONGEST_TEXT})' if text in known else "NULL"] if text else []
        with self._said():
            cursor = self._database.execute(f'SELECT {", ".join(wanted)} FROM "{table}"')
            while rows := cursor.fetchmany(_ROWS):
                texts = [row[-1] for row in rows] if text else ()
                numbers = (row[:-1] for row in rows) if text else rows
                table_of = np.fromiter(chain.from_iterable(numbers), np.int64, len(rows) * len(columns)).reshape(len(rows), -1)
                yield Block({column: table_of[:, place] for place, column in enumerate(columns)}, texts)

    def pairs(self, table: str, key: str, value: str) -> list[tuple[Any, Any]]:
        """(key, value) of each row of a small table; none where one of them is missing."""
        if not {key, value} <= self.columns(table):
            return []
        return self._all(f'SELECT "{key}", "{value}" FROM "{table}"')

    def string(self, number: int) -> str | None:
        """What stands under this id in StringIds."""
        if not self._has_strings:
            return None
        found = self._all(f"SELECT SUBSTR(CAST(value AS TEXT), 1, {LONGEST_TEXT}) FROM StringIds WHERE id = ?", (number,))
        return found[0][0] if found else None

    @cached_property
    def _has_strings(self) -> bool:
        return {"id", "value"} <= self.columns("StringIds")

    def _all(self, query: str, values: Sequence[Any] = ()) -> list[tuple]:
        with self._said():
            return self._database.execute(query, values).fetchall()

    @contextmanager
    def _said(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OverflowError) as fault:
            raise UsageError(f"{self._name} is damaged: {fault}", EXPORT) from None
        except UnicodeDecodeError:  # SQLite's own message quotes the damaged bytes
            raise UsageError(f"{self._name} is damaged: its list of tables cannot be read", EXPORT) from None


@contextmanager
def opened(path: Path, name: str) -> Iterator[Tables]:
    """The export in this file."""
    try:
        database = sqlite3.connect(path.resolve().as_uri() + "?mode=ro&immutable=1", uri=True)
    except sqlite3.Error as fault:
        raise UsageError(f"{name} cannot be read: {fault}", EXPORT) from None
    try:
        database.text_factory = _text
        yield Tables(database, name)
    finally:
        database.close()


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")
