"""What a fidelity run wrote, as frozen values: one `Stream` for each process that trained, in order of rank and start.

`Reader` reads only what was added since its last look, so a running training can be followed. A last line without an end is left for
the next look; a line that is no JSON ends the stream there (`Stream.broken`).
"""

from __future__ import annotations

import itertools
import json
import statistics
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

SCHEMA = "training-record.v1"
CONSIDERABLE = 0.1  # own: of the samples that are trained with, those of an evaluation that a speed-up may be about
_KINDS = ("weights", "evaluation", "checkpoint", "stored", "written", "load", "draws", "making", "end")


@dataclass(frozen=True)
class Update:
    """One `optimizer.step`. Hashes are hexadecimal; None means not measured."""

    n: int  # from 1, over all optimizers of the process
    optimizer: int
    optimizer_class: str
    losses: tuple[float, ...]  # one for each backward since the update before, loss scale undone
    loss_types: tuple[str, ...]
    forwards: int
    samples: int
    rows: tuple[str, ...] | None  # one hash a sample; None: too many to list
    multiset: str
    order: str
    targets: str | None
    shapes: tuple[str, ...]
    moments: tuple[float, ...]
    modes: tuple[tuple[Any, ...], ...]
    autocast: tuple[str, ...]
    settings: tuple[dict[str, Any], ...]
    grad_norm: float | None
    grads: int | None
    grad_elements: int | None
    logs: int
    epoch: int
    batches: tuple[Any, ...]
    keys: tuple[str, ...] | None = None  # which samples of its data set the loader drew; None: no loader, or it draws none by key

    unpadded: tuple[str, ...] | None = None  # `rows` without the zeros that pad them; None: the same, or too many
    trimmed: tuple[str, str] | None = None  # multiset and order of the samples without the zeros that pad them; None: not recorded

    pairs: str | None = None  # order-insensitive hash of samples with their targets; None: they do not belong together one by one
    parts: tuple[str, ...] = ()  # order-sensitive hash of each input tensor of each model's forward
    whole: str | None = None  # order-sensitive hashes of the inputs that are no floating-point numbers; None: there are none
    target_rows: tuple[str, ...] | None = None  # one hash a row of the targets; None: too many to list
    target_sums: tuple[str, str] | None = None  # see the recorder's `aims.together`; None: no float targets, or not measured
    coarse: tuple[int, int] = (0, 0)  # float32 input values that bfloat16 holds exactly, of all
    gradient: str | None = None  # signed sums of the gradient, packed as float32 in hexadecimal; None: not recorded
    step: str | None = None  # the same of what has changed in the weights since the optimizer's update before

    @property
    def inputs(self) -> tuple[str, ...] | None:
        """One hash a sample, however far it is padded; None: too many to list."""
        return self.rows if self.unpadded is None else self.unpadded

    @property
    def loss(self) -> float | None:
        """Sum of the losses that reached backward (the mean, where the program divides by its accumulation steps); None without one."""
        return sum(self.losses) if self.losses else None


@dataclass(frozen=True)
class Stream:
    """Everything one process recorded, in order."""

    rank: int
    world_size: int
    updates: tuple[Update, ...] = ()
    weights: tuple[dict[str, Any], ...] = ()
    evaluations: tuple[dict[str, Any], ...] = ()
    checkpoints: tuple[dict[str, Any], ...] = ()
    stored: tuple[dict[str, Any], ...] = ()  # files read back
    workers: tuple[dict[str, Any], ...] = ()  # random streams that each loader worker began with
    loads: tuple[dict[str, Any], ...] = ()  # files that the program read
    ended: bool = False  # the process left in an orderly way
    broken: bool = False  # a line could not be read
    swallowed: dict[str, int] = field(default_factory=dict)
    seeded: bool | None = None  # the program seeded a global random stream before its first update; None: not recorded
    given: int = 0  # generators that the program left without a seed, and that got one of ours
    draws: frozenset[str] = frozenset()  # random streams that making batches draws from, in whatever process: python, torch, numpy, held
    making: frozenset[str] = frozenset()  # hashes of the owner's code that makes batches, of each loader
    written: tuple[str, ...] = ()  # files as large as the weights that nobody looked into

    @property
    def steps(self) -> int:
        """Updates of the optimizer that steps least often: each is one step."""
        return min(Counter(update.optimizer for update in self.updates).values(), default=0)


def evaluated_every(stream: Stream) -> int | None:
    """Updates from one evaluation to the next; None where none was seen behind the first update, or they are small.

    Small is one of fewer samples than a tenth of those trained with in between: forwards alone, it takes a few hundredths of the time.
    """
    samples: Counter[int] = Counter()
    for line in stream.evaluations:
        if line.get("forwards") and line["n"]:
            samples[line["n"]] += line.get("samples") or 0
    if not samples:
        return None
    at = sorted(samples)
    every = statistics.median_low([after - before for before, after in itertools.pairwise(at)] or at)
    trained = every * statistics.fmean(update.samples for update in stream.updates)
    return every if statistics.fmean(samples.values()) >= CONSIDERABLE * trained else None


@dataclass(frozen=True)
class Record:
    """One run. `whole`: the program ran to its own end; else it was cut, and what it would have done later is unknown."""

    streams: tuple[Stream, ...]
    whole: bool = False

    @property
    def trained(self) -> tuple[Stream, ...]:
        """The processes that made updates: a loader's worker that reads files leaves a stream too."""
        return tuple(stream for stream in self.streams if stream.updates)

    @property
    def updates(self) -> int:
        """Updates of the process that made most of them."""
        return max((len(stream.updates) for stream in self.streams), default=0)


class Reader:
    """Follows the record of one run directory."""

    def __init__(self, run_dir: Path) -> None:
        self._run_dir = run_dir
        self._files: dict[str, _File] = {}

    def look(self, *, whole: bool = False) -> Record:
        """The record as it stands; an unreadable or missing directory is a record without streams."""
        for path in sorted(self._run_dir.glob("training-*.jsonl")):
            self._files.setdefault(path.name, _File(path)).read()
        started = sorted((file for file in self._files.values() if file.started), key=lambda file: file.place)
        return Record(tuple(file.stream() for file in started), whole)


def read(run_dir: Path, *, whole: bool = False) -> Record:
    """The record in `run_dir`, read once."""
    return Reader(run_dir).look(whole=whole)


class _File:
    """One `training-<pid>.jsonl`, read on from where the last look stopped."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0
        self._head: dict[str, Any] = {}
        self._settings: dict[int, tuple[dict[str, Any], ...]] = {}
        self._updates: list[Update] = []
        self._others: dict[str, list[dict[str, Any]]] = {kind: [] for kind in _KINDS}
        self._seeded: bool | None = None
        self._given = 0
        self._broken = False

    @property
    def started(self) -> bool:
        return bool(self._head)

    @property
    def place(self) -> tuple[int, int]:
        """Rank, then start on the machine's monotonic clock."""
        return int(self._head["rank"]), int(self._head["start_ns"])

    def read(self) -> None:
        if self._broken:
            return
        with self._path.open("rb") as file:
            file.seek(self._offset)
            text = file.read()
        complete = text[: text.rfind(b"\n") + 1]
        self._offset += len(complete)
        for line in complete.splitlines():
            try:
                self._take(json.loads(line))
            except (ValueError, KeyError, TypeError):
                self._broken = True
                return

    def _take(self, line: dict[str, Any]) -> None:
        kind = line["k"]
        if kind == "start":
            if line["schema"] != SCHEMA:
                raise ValueError(line["schema"])
            self._head = line
        elif kind == "update":
            if "settings" in line:
                self._settings[line["optimizer"]] = tuple(line["settings"] or ())
            self._seeded = line.get("seeded", self._seeded)
            self._given = line.get("given", self._given)
            self._updates.append(update(line, self._settings.get(line["optimizer"], ())))
        elif kind in self._others:
            self._others[kind].append(line)

    def _workers(self) -> tuple[dict[str, Any], ...]:
        path = self._path.with_name(self._path.name.replace("training-", "workers-"))
        try:
            return tuple(json.loads(line) for line in path.read_bytes().split(b"\n")[:-1])
        except (OSError, ValueError):
            return ()

    def stream(self) -> Stream:
        end, workers = self._others["end"], self._workers()
        return Stream(
            rank=int(self._head["rank"]),
            world_size=int(self._head["world_size"]),
            updates=tuple(self._updates),
            weights=tuple(self._others["weights"]),
            evaluations=tuple(self._others["evaluation"]),
            checkpoints=tuple(self._others["checkpoint"]),
            stored=tuple(self._others["stored"]),
            workers=tuple(line for line in workers if "worker" in line),
            draws=frozenset(name for line in (*workers, *self._others["draws"]) for name in line.get("drew", ())),
            making=frozenset(line["code"] for line in self._others["making"]),
            loads=tuple(self._others["load"]),
            ended=bool(end),
            broken=self._broken,
            swallowed=end[-1]["swallowed"] if end else {},
            seeded=self._seeded,
            given=self._given,
            written=tuple(line["target"] for line in self._others["written"]),
        )


def update(line: dict[str, Any], settings: tuple[dict[str, Any], ...]) -> Update:
    """An `Update` from its line; `settings` of its optimizer are written only where they change."""
    return Update(
        n=line["n"],
        optimizer=line["optimizer"],
        optimizer_class=line["class"],
        losses=tuple(float.fromhex(loss) for loss in line["losses"]),
        loss_types=tuple(line["loss_types"]),
        forwards=line["forwards"],
        samples=line["samples"],
        rows=_split(line["rows"]),
        multiset=line["multiset"],
        order=line["order"],
        targets=line["targets"],
        shapes=tuple(line["shapes"]),
        moments=tuple(line["moments"]),
        modes=tuple(tuple(mode) for mode in line["modes"]),
        autocast=tuple(line["autocast"]),
        settings=settings,
        grad_norm=None if line["grad_norm"] is None else float.fromhex(line["grad_norm"]),
        grads=line["grads"],
        grad_elements=line["grad_elements"],
        logs=line["logs"],
        epoch=line["epoch"],
        batches=tuple(line["batches"]),
        keys=_split(line.get("keys")),
        pairs=line.get("pairs"),
        unpadded=_split(line.get("unpadded")),
        parts=tuple(line.get("parts", ())),
        whole=line.get("whole"),
        target_rows=_split(line.get("target_rows")),
        target_sums=tuple(line["target_sums"]) if line.get("target_sums") else None,
        coarse=tuple(line.get("coarse", (0, 0))),
        trimmed=tuple(line["trimmed"]) if "trimmed" in line else None,
        gradient=line.get("gradient"),
        step=line.get("step"),
    )


def _split(listed: str | None) -> tuple[str, ...] | None:
    return None if listed is None else tuple(listed[at : at + 16] for at in range(0, len(listed), 16))
