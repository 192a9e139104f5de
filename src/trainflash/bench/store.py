"""What a comparison keeps on disk while it runs: one line per start, and how the next start is to be measured."""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from pathlib import Path

from trainflash.bench.measure import Plan
from trainflash.errors import UsageError
from trainflash.schema import Start, from_plain, to_plain, write_atomically


class Store:
    """`starts.jsonl` (appended and synced as each start is measured) and `bench.json` (what is compared, and the plan)."""

    def __init__(self, directory: Path) -> None:
        self.starts_path = directory / "starts.jsonl"
        self.state_path = directory / "bench.json"
        directory.mkdir(parents=True, exist_ok=True)

    def begin(self, compared: str, first: Plan, *, resume: bool) -> tuple[list[Start], Plan]:
        """The starts measured so far and the plan. Raises `UsageError` when what is compared is not what it was."""
        if not resume or not self.state_path.exists():
            self.starts_path.unlink(missing_ok=True)
            self.save_plan(compared, first)
            return [], first
        try:
            state = json.loads(self.state_path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as bad:
            raise UsageError(f"{self.state_path}: cannot be read: {bad}", "compare again without resuming") from None
        if state.get("compared") != compared:
            raise UsageError("the programs or the machine are not those of the starts measured before", "compare again without resuming")
        return self._starts(), from_plain(Plan, state.get("plan"), str(self.state_path))

    def _starts(self) -> list[Start]:
        """Complete lines; a last one torn by a kill is cut off, so that the next start begins on a line of its own."""
        try:
            data = self.starts_path.read_bytes()
        except FileNotFoundError:
            return []
        whole = data[: data.rfind(b"\n") + 1]
        if len(whole) < len(data):
            os.truncate(self.starts_path, len(whole))
        return [from_plain(Start, json.loads(line), str(self.starts_path)) for line in whole.splitlines()]

    def save_plan(self, compared: str, plan: Plan) -> None:
        write_atomically(self.state_path, json.dumps({"compared": compared, "plan": asdict(plan)}, indent=2) + "\n")

    def append(self, start: Start) -> None:
        with self.starts_path.open("ab") as file:
            file.write(json.dumps(to_plain(start), allow_nan=False).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())
