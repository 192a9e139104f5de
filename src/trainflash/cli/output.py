"""What commands print: text for people, or with `--json` one document on stdout; progress always on stderr."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from trainflash.errors import EXIT_DONE, ApprovalNeeded, Inconclusive, Rejected


def exit_of(status: str) -> int:
    """What a command ends with that was asked for a verdict, by the status of its answer."""
    codes = {"ok": EXIT_DONE, Rejected.status: Rejected.exit_code, ApprovalNeeded.status: ApprovalNeeded.exit_code}
    return codes.get(status, Inconclusive.exit_code)


class Output:
    """Where one command's words go. `answer` is called once, at the end."""

    def __init__(self, as_json: bool) -> None:
        self.as_json = as_json
        self.stdout = Console(file=sys.stdout, highlight=False)
        self.stderr = Console(file=sys.stderr, highlight=False, soft_wrap=not sys.stderr.isatty())

    def say(self, line: str) -> None:
        """One line about what is going on, on stderr."""
        self.stderr.print(line, markup=False)

    def answer(self, document: dict[str, Any], *shown: Any) -> None:
        """The result: `document` as JSON (ASCII: a diff may hold bytes that no encoding of stdout takes), else the renderables `shown`."""
        if self.as_json:
            sys.stdout.write(json.dumps(document, allow_nan=False) + "\n")
            sys.stdout.flush()
            return
        for part in shown:
            plain = isinstance(part, str)  # as it is: brackets in it are code, and no markup
            self.stdout.print(part, crop=False, soft_wrap=plain, markup=not plain, highlight=not plain)

    @contextmanager
    def progress(self) -> Iterator[Any]:
        """A progress callback `(label, done, total)`: a moving line on a terminal, else one plain line a stage."""
        if not self.stderr.is_terminal:
            yield _PlainProgress(self)
            return
        columns = (
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            TextColumn("{task.fields[count]}"),
            TimeElapsedColumn(),
            TimeRemainingColumn(compact=True),
        )
        with Progress(*columns, console=self.stderr, transient=False) as bars:
            yield _LiveProgress(bars)


class _LiveProgress:
    def __init__(self, bars: Progress) -> None:
        self._bars = bars
        self._label = ""
        self._task: Any = None

    def __call__(self, label: str, done: int, total: int) -> None:
        if label != self._label:
            self.finish()
            self._label = label
            self._task = self._bars.add_task(label, total=total or None, count="")
        self._bars.update(
            self._task, completed=done, total=total or None, count=f"{done}/{total}" if total else (str(done) if done else "")
        )

    def finish(self) -> None:
        if self._task is not None:
            task = next(t for t in self._bars.tasks if t.id == self._task)
            self._bars.update(self._task, total=task.total or max(task.completed, 1), completed=task.total or max(task.completed, 1))
            self._bars.stop_task(self._task)


class _PlainProgress:
    """For logs: a line when a stage begins, and one at most every 30 s while it lasts, with the time left where its end is known."""

    EVERY_S = 30.0

    def __init__(self, output: Output, clock: Callable[[], float] = time.monotonic) -> None:
        self._output = output
        self._clock = clock
        self._label = ""
        self._said = 0.0
        self._began = 0.0, 0  # when, and how much was done already

    def __call__(self, label: str, done: int, total: int) -> None:
        now = self._clock()
        if label != self._label:
            self._began = now, done
        elif now - self._said < self.EVERY_S:
            return
        self._label, self._said = label, now
        count = f": {done}/{total}" if total else f": {done}" if done else ""
        self._output.say(f"{label}{count}{self._left(now, done, total)}")

    def _left(self, now: float, done: int, total: int) -> str:
        began, before = self._began
        if not before < done < total:
            return ""
        return f", about {_time((now - began) / (done - before) * (total - done))} left"

    def finish(self) -> None:
        """Nothing is pending: each line was printed whole."""


def _time(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"
