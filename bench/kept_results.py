"""Raw results of a bench, a JSON file that is whole after each one: an interrupted bench goes on where it stopped."""

import json
import os
import threading
from collections.abc import Callable
from pathlib import Path


class KeptResults:
    """Rows by key. `done(row)` says whether a row has its result; what has none, or is stale, is measured again.

    Rows that are measured again are kept until their new result is there. Safe to use from several threads.
    """

    def __init__(self, path: Path, done: Callable[[dict], bool], *, fresh: bool = False) -> None:
        self.path = path
        self.rows: dict[str, dict] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        self._done = done
        self._stale = set(self.rows) if fresh else set()
        self._lock = threading.Lock()

    def has(self, key: str) -> bool:
        return key not in self._stale and self._done(self.rows.get(key, {}))

    def put(self, key: str, row: dict) -> None:
        with self._lock:
            self._stale.discard(key)
            self.rows[key] = row
            self.path.parent.mkdir(parents=True, exist_ok=True)
            beside = self.path.with_name(f".{self.path.name}.tmp")
            beside.write_text(json.dumps(dict(sorted(self.rows.items())), indent=1) + "\n", encoding="utf-8")
            os.replace(beside, self.path)


def read_lines(path: Path) -> list[dict]:
    """All rows of a file of JSON lines; none where there is no file yet."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []


def append_lines(path: Path, rows: list[dict]) -> None:
    with path.open("a", encoding="utf-8") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)
