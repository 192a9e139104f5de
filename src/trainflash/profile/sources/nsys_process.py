"""Rows of the tables that nsys exported → the events of one process."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

import numpy as np

from trainflash.profile.building import TraceBuilder
from trainflash.profile.device_lines import host_kind
from trainflash.profile.events import SIDE_COLUMNS, TEXTS, Kind, TrackKind
from trainflash.profile.sources import nsys_names as names
from trainflash.profile.sources.nsys_tables import MISSING, Block
from trainflash.profile.sources.values import LARGEST_NS

Side = dict[str, tuple[np.ndarray | None, np.ndarray]]
ID_BITS = 24  # of a thread's id, and of its process's id before it, in what nsys calls a global id
LOW = (1 << ID_BITS) - 1
MARK, PUSH_POP, START_END = 34, 59, 60  # event types of NVTX

SHAPES = {"grid": ("gridX", "gridY", "gridZ"), "block": ("blockX", "blockY", "blockZ")}
SHARED = ("staticSharedMemory", "dynamicSharedMemory")
_NUMBERS = {
    "correlationId": "correlation",
    "deviceId": "device",
    "streamId": "stream",
    "contextId": "context",
    "bytes": "bytes",
    "registersPerThread": "registers",
    "graphNodeId": "graph_node_id",
    "graphId": "graph_id",
}
_RANGE_FIELDS = {"sequence": "sequence", "step": "step", "sizes": "input_dims"}


class Process:
    """What is collected of one process. `string`: id → text of StringIds."""

    def __init__(self, file: str, pid: int, string: Callable[[int], str], columns: Collection[str]) -> None:
        self.pid = pid
        self.builder = TraceBuilder("nsys", file, columns)
        self.devices: set[int] = set()
        self.total = self.without_time = self.negative = self.open = 0
        self._string = string

    def device(self, kind: Kind, category: str, block: Block) -> None:
        """Rows of a table of device work; `category` is the table's name behind CUPTI_ACTIVITY_KIND_."""
        block, start, duration = self._timed(block)
        if not len(block):
            return
        side = _numbers(block)
        if category == "kernel":
            self._launch_shapes(block, side)
        places, place = np.unique(np.stack((block["deviceId"], block["streamId"])), axis=1, return_inverse=True)
        tracks = [self._stream(device, stream) for device, stream in places.T.tolist()]
        if kind is not Kind.SYNC:
            self.devices.update(places[0].tolist())
        track = np.asarray(tracks, np.int32)[place.ravel()]
        self._add(side, start, duration, self._device_names(category, block), category, track, np.full(len(block), kind, np.int8))

    def host(self, kind: Kind, category: str, block: Block) -> None:
        """Rows of a table of calls."""
        block, start, duration = self._timed(block)
        if not len(block):
            return
        name = self._named(block, ("nameId",), lambda number: names.call(self._string(number)))
        kinds = np.full(len(block), kind, np.int8)
        if kind is Kind.RUNTIME:
            driver = [number for number in np.unique(name).tolist() if host_kind(self.builder.strings.texts[number]) is Kind.DRIVER]
            kinds[np.isin(name, driver)] = Kind.DRIVER
        self._add(_numbers(block), start, duration, name, category, self._threads(block), kinds)

    def nvtx(self, block: Block) -> None:
        """Rows of NVTX_EVENTS: ranges and marks."""
        ids = block["textId"].tolist()
        texts = [self._string(number) if text is None else text for text, number in zip(block.texts, ids, strict=True)]
        block = Block(block.columns, texts)
        ranges = np.isin(block["eventType"], (PUSH_POP, START_END))
        closed = block["end"] != MISSING
        self.open += int((ranges & ~closed).sum())
        self._marks(block.of(np.flatnonzero(block["eventType"] == MARK)))
        block, start, duration = self._timed(block.of(np.flatnonzero(ranges & closed)))
        if not len(block):
            return
        told = {text: names.nvtx_range(text) for text in set(block.texts)}
        rows = [told[text] for text in block.texts]
        track = self._threads(block)
        anywhere = block["eventType"] == START_END  # may end on another thread, and overlap
        if anywhere.any():
            track[anywhere] = self.builder.track(str(self.pid), "NVTX ranges", TrackKind.ASYNC)
        name = np.asarray([self.builder.strings[row.name] for row in rows], np.int32)
        self._add(self._range_side(rows), start, duration, name, "nvtx", track, np.asarray([row.kind for row in rows], np.int8))

    def _timed(self, block: Block) -> tuple[Block, np.ndarray, np.ndarray]:
        """(rows with a possible time, their begin, their duration)."""
        far = LARGEST_NS // 2  # the session's begin is added later
        possible = (np.abs(block["start"]) < far) & (np.abs(block["end"]) < far)
        if not possible.all():
            self.without_time += int((~possible).sum())
            block = block.of(np.flatnonzero(possible))
        start, end = block["start"], block["end"]
        self.negative += int((end < start).sum())
        return block, start, np.maximum(end - start, 0)

    def _stream(self, device: int, stream: int) -> int:
        track = self.builder.track(str(device), str(stream), TrackKind.STREAM)
        self.builder.describe(track, thread_name=f"stream {stream}", labels=f"GPU {device}", device=device, stream=stream)
        return track

    def _threads(self, block: Block) -> np.ndarray:
        """Ids of the tracks of these rows' threads."""
        known = np.where(block["globalTid"] == MISSING, 0, block["globalTid"] & ((1 << 2 * ID_BITS) - 1))
        numbers, place = np.unique(known, return_inverse=True)
        tracks = [self.builder.track(str(number >> ID_BITS), str(number & LOW)) for number in numbers.tolist()]
        return np.asarray(tracks, np.int32)[place]

    def _device_names(self, category: str, block: Block) -> np.ndarray:
        if category == "kernel":
            told = np.where(block["demangledName"] == MISSING, block["shortName"], block["demangledName"])
            return self._named(Block({"name": told}), ("name",), self._string)
        columns, text = {
            "memcpy": (("copyKind", "srcKind", "dstKind"), names.copy),
            "memset": (("memKind",), names.memset),
            "synchronization": (("syncType",), names.wait),
            "graph_trace": (("deviceId",), lambda device: names.WHOLE_GRAPH),
        }[category]
        return self._named(block, columns, text)

    def _launch_shapes(self, block: Block, side: Side) -> None:
        shared = np.stack([block[column] for column in SHARED])
        known = np.flatnonzero((shared != MISSING).all(axis=0))
        if len(known):
            side["shared_memory"] = (known, shared.sum(axis=0)[known])
        for column, axes in SHAPES.items():
            if (block[axes[0]] != MISSING).all():
                side[column] = (None, self._named(block, axes, lambda *axis: "[" + ", ".join(map(str, axis)) + "]"))

    def _range_side(self, rows: Sequence[names.Range]) -> Side:
        side: Side = {}
        for field, column in _RANGE_FIELDS.items():
            found = [(number, value) for number, row in enumerate(rows) if (value := getattr(row, field)) is not None]
            if found:
                is_text = SIDE_COLUMNS[column] == TEXTS
                values = [self.builder.strings[value] if is_text else value for _, value in found]
                side[column] = (np.asarray([number for number, _ in found]), np.asarray(values, np.int32 if is_text else np.int64))
        return side

    def _marks(self, block: Block) -> None:
        possible = np.flatnonzero(np.abs(block["start"]) < LARGEST_NS // 2)
        if len(possible):
            block = block.of(possible)
            name = np.asarray([self.builder.strings[text] for text in block.texts], np.int32)
            category = np.full(len(block), self.builder.strings["nvtx"], np.int32)
            self.builder.add_marks(t_ns=block["start"], name=name, category=category, track=self._threads(block))

    def _named(self, block: Block, columns: Sequence[str], text: Callable[..., str]) -> np.ndarray:
        """Ids of what `text` makes of these columns of each row, asked once for each different row."""
        distinct, place = np.unique(np.stack([block[column] for column in columns]), axis=1, return_inverse=True)
        return np.asarray([self.builder.strings[text(*row)] for row in distinct.T.tolist()], np.int32)[place.ravel()]

    def _add(self, side: Side, start: np.ndarray, duration: np.ndarray, name, category: str, track, kind) -> None:
        categories = np.full(len(start), self.builder.strings[category], np.int32)
        columns = {"name": name, "category": categories, "track": track, "kind": kind}
        self.builder.add_events(side, start_ns=start, duration_ns=duration, **columns)


def _numbers(block: Block) -> Side:
    """The columns that are numbers in a trace as they stand in the table."""
    side: Side = {}
    for column, name in _NUMBERS.items():
        if column in block.columns:
            rows = np.flatnonzero(block[column] != MISSING)
            if len(rows):
                side[name] = (None if len(rows) == len(block) else rows, block[column][rows])
    return side
