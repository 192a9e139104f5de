"""Which operations take the time: one row per name, and semantic families. Sums over all ranks; sums are not wall time."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from trainflash.profile.analysis import words
from trainflash.profile.analysis.figures import share, us
from trainflash.profile.analysis.floors import moved_bytes
from trainflash.profile.analysis.tallies import grouped, largest, pairs, summed
from trainflash.profile.analysis.timeline import Timeline
from trainflash.profile.analysis.view import Rank, Work
from trainflash.schema.profile_ops import MOST_OP_TOTALS, HotOp, OpTotal, SemanticFamilyAggregate

MOST_OTHERWISE = 5
MOST_EACH = 8  # launching operators, shapes, … of a name that are kept while ranks are added up
PRODUCTS = {"aten::mm": (0, 1), "aten::bmm": (0, 1), "aten::addmm": (1, 2), "aten::baddbmm": (1, 2)}  # name → its operands
_WORKS = {Work.COMPUTE: "compute", Work.COMMUNICATION: "communication", Work.COPY: "copy"}
_FRAME = re.compile(r"^(?P<file>[^;()]+\.py)\((?P<line>\d+)\)")
_LIBRARY = re.compile(r"site-packages|dist-packages|/torch/|^torch/|/lib/python|^<|importlib")


@dataclass
class _Row:
    """One name over all ranks, in nanoseconds."""

    category: str
    count: int = 0
    total: int = 0
    own: int = 0
    by_rank: dict[int, int] = field(default_factory=dict)
    parents: dict[str, int] = field(default_factory=dict)
    shapes: dict[str, int] = field(default_factory=dict)
    scopes: dict[str, int] = field(default_factory=dict)
    sources: dict[str, int] = field(default_factory=dict)
    flops: float = 0.0
    counted: int = 0  # invocations whose flops are known
    moved: float = 0.0  # bytes
    moving: int = 0  # operators whose bytes are known


@dataclass(frozen=True)
class _Times:
    """Nanoseconds of each event within the window, and those without the events inside it."""

    whole: np.ndarray
    own: np.ndarray


def device_rows(timelines: Sequence[tuple[int, Timeline]]) -> dict[str, _Row]:
    """Every name of device work within the windows, with what is known of where it comes from."""
    found: dict[str, _Row] = {}
    for number, timeline in timelines:
        rank, device, inside = timeline.rank, timeline.device, timeline.inside
        rows = device.row[inside.at]
        order = np.argsort(rows, kind="stable")
        own = np.empty(len(rows), np.int64)
        own[order] = rank.nest(rows[order]).clipped(timeline.window).own_ns
        ops = timeline.of_events(rank.device_op)[inside.at]
        _add(found, number, rank, rows, _Times(inside.duration, own), _work_at(device.work[inside.at]), ops)
    return found


def _work_at(work: np.ndarray) -> Callable[[int], str]:
    return lambda place: _WORKS[Work(int(work[place]))]


def host_rows(timelines: Sequence[tuple[int, Timeline]]) -> dict[str, _Row]:
    """Every operator of the host by its own time."""
    found: dict[str, _Row] = {}
    for number, timeline in timelines:
        rank = timeline.rank
        rows, tree = rank.host_ops
        inside, seen = timeline.meets(tree.start, tree.end), tree.clipped(timeline.window)
        mine = rows[inside]
        _add(found, number, rank, mine, _Times((seen.end - seen.start)[inside], seen.own_ns[inside]), lambda _: "host", mine)
    return found


def hot_ops(found: dict[str, _Row], limit: int, several: bool) -> tuple[HotOp, ...]:
    """The costliest names by own time, then total, then name; and the few that are called most often or take the longest a call."""
    whole = sum(row.own for row in found.values())
    ordered = sorted(found.items(), key=lambda item: (-item[1].own, -item[1].total, item[0]))
    often = sorted(ordered, key=lambda item: -item[1].count)[: min(limit, MOST_OTHERWISE)]
    long = sorted(ordered, key=lambda item: -item[1].total / item[1].count)[: min(limit, MOST_OTHERWISE)]
    kept = {name for name, _ in (*ordered[:limit], *often, *long)}
    return tuple(_hot(name, row, whole, several) for name, row in ordered if name in kept)


def op_totals(found: dict[str, _Row]) -> tuple[OpTotal, ...]:
    """The costliest canonical names, each over all of its variants."""
    grouped: dict[str, list[int]] = {}
    for name, row in found.items():
        sums = grouped.setdefault(words.canonical(name), [0, 0])
        sums[0] += row.count
        sums[1] += row.own
    ordered = sorted(grouped.items(), key=lambda item: (-item[1][1], item[0]))
    return tuple(OpTotal(name, count, us(own)) for name, (count, own) in ordered[:MOST_OP_TOTALS])


def families(found: dict[str, _Row]) -> tuple[SemanticFamilyAggregate, ...]:
    """Device work by family, largest own time first."""
    grouped: dict[str, list[tuple[str, _Row]]] = {}
    for name, row in found.items():
        grouped.setdefault(family_of(name, row), []).append((name, row))
    whole = sum(row.own for row in found.values())
    answers = [_family(word, sorted(rows, key=lambda item: (-item[1].own, item[0])), whole) for word, rows in grouped.items()]
    return tuple(sorted(answers, key=lambda each: (-each.exclusive_duration, each.family)))


def family_of(name: str, row: _Row) -> str:
    """The family of a name: what it does, else what launched it."""
    if row.category in {"communication", "copy"}:
        return row.category
    return words.family((name, _most(row.parents), _most(row.scopes)))


def _add(
    found: dict[str, _Row], number: int, rank: Rank, rows: np.ndarray, times: _Times, category: Callable[[int], str], ops: np.ndarray
) -> None:
    """Add the events `rows` of one rank with their times; `ops` are the rows of the host operators that they belong to, -1 unknown."""
    if not len(rows):
        return
    codes, place = grouped(rank.trace.events.name[rows])
    count = np.bincount(place, minlength=len(codes))
    total, owned = summed(place, times.whole, len(codes)), summed(place, times.own, len(codes))
    first = np.full(len(codes), len(rows))
    np.minimum.at(first, place, np.arange(len(rows)))
    mine = []
    for at, code in enumerate(codes.tolist()):
        row = found.setdefault(rank.trace.strings[code], _Row(category(int(first[at]))))
        row.count += int(count[at])
        row.total += int(total[at])
        row.own += int(owned[at])
        row.by_rank[number] = row.by_rank.get(number, 0) + int(owned[at])
        mine.append(row)
    _describe(mine, rank, rows, ops, place, times.own)


def _describe(mine: list[_Row], rank: Rank, rows: np.ndarray, ops: np.ndarray, place: np.ndarray, own: np.ndarray) -> None:
    """What the events of each name have most of their time in common: launching operator, shapes, source, scope."""
    known = ops >= 0
    at = np.where(known, ops, 0)
    if known.any() and rows is not ops:
        _tally([row.parents for row in mine], rank, place[known], rank.trace.events.name[at[known]], own[known])
    for name, kept in (("input_dims", "shapes"), ("call_stack", "sources"), ("scope", "scopes"), ("source", "sources")):
        column = rank.trace.column(name)
        if len(column):
            texts = column.take(rows, -1)
            if rows is not ops:
                texts = np.where((texts < 0) & known, column.take(at, -1), texts)
            there = texts >= 0
            _tally([getattr(row, kept) for row in mine], rank, place[there], texts[there], own[there])
    first = _of_operators(at[known], own[known])
    if rows is not ops:
        _moves(mine, rank, place[known][first], at[known][first])
    flops = rank.trace.column("flops")
    if len(flops):
        each = flops.take(rows, np.nan)
        for group in np.unique(place[~np.isnan(each)]).tolist():
            values = each[(place == group) & ~np.isnan(each)]
            mine[group].flops += float(np.sum(values))
            mine[group].counted += len(values)
    else:
        _proxies(mine, rank, place[known][first], at[known][first])


def _of_operators(ops: np.ndarray, own: np.ndarray) -> np.ndarray:
    """The place of the longest event of each operator: what it computes is counted for that one, not for a memset beside it."""
    order = np.lexsort((-own, ops))
    return order[np.unique(ops[order], return_index=True)[1]]


def _proxies(mine: list[_Row], rank: Rank, place: np.ndarray, ops: np.ndarray) -> None:
    """Operations of matrix products from their shapes, where the trace has shapes but no counts."""
    products = np.isin(rank.trace.events.name[ops], rank.trace.ids(PRODUCTS.__contains__))
    place, ops = place[products], ops[products]
    kinds, _, which = pairs(rank.trace.events.name[ops], rank.trace.column("input_dims").take(ops, -1))
    first = np.full(len(kinds), len(ops))
    np.minimum.at(first, which, np.arange(len(ops)))
    each = []
    for row in ops[first].tolist():
        shape = int(rank.trace.column("input_dims").take(np.asarray([row]), -1)[0])
        each.append(matmul_flops(rank.name(row), rank.trace.strings[shape]) if shape >= 0 else None)
    groups, kind, number = pairs(place, which)
    for group, one, times in zip(groups.tolist(), kind.tolist(), np.bincount(number, minlength=len(groups)).tolist(), strict=True):
        if each[one]:
            mine[group].flops += each[one] * times
            mine[group].counted += times


def _moves(mine: list[_Row], rank: Rank, place: np.ndarray, ops: np.ndarray) -> None:
    """Bytes that these operators move."""
    dims, types = rank.trace.column("input_dims"), rank.trace.column("input_types")
    there = dims.has(ops) & types.has(ops)
    place, ops = place[there], ops[there]
    if not len(ops):
        return
    kinds, which = np.unique(np.stack((rank.trace.events.name[ops], dims.take(ops, -1), types.take(ops, -1))), axis=1, return_inverse=True)
    each = [moved_bytes(*(rank.trace.strings[code] for code in codes)) for codes in kinds.T.tolist()]
    groups, kind, number = pairs(place, which.ravel())
    for group, one, times in zip(groups.tolist(), kind.tolist(), np.bincount(number, minlength=len(groups)).tolist(), strict=True):
        if each[one] is not None:
            mine[group].moved += each[one] * times
            mine[group].moving += times


def matmul_flops(name: str, input_dims: str) -> float | None:
    """2·M·N·K of a matrix product by its operand shapes; None for anything else."""
    operands = PRODUCTS.get(name)
    if operands is None:
        return None
    try:
        shapes = json.loads(input_dims)
        left, right = (shapes[place] for place in operands)
        size = 2.0 * right[-1]
        for extent in left:
            size *= extent
        return size
    except (ValueError, TypeError, IndexError, KeyError):
        return None


def _tally(into: list[dict[str, int]], rank: Rank, place: np.ndarray, codes: np.ndarray, amount: np.ndarray) -> None:
    for group, code, total in largest(place, codes, amount, MOST_EACH):
        text = rank.trace.strings[code]
        into[group][text] = into[group].get(text, 0) + total


def _most(tallied: dict[str, int]) -> str | None:
    return min(tallied, key=lambda text: (-tallied[text], text)) if tallied else None


def _hot(name: str, row: _Row, whole: int, several: bool) -> HotOp:
    slowest = min(row.by_rank, key=lambda number: (-row.by_rank[number], number)) if several and row.by_rank else None
    return HotOp(
        name=name,
        canonical_name=words.canonical(name),
        category=row.category,
        count=row.count,
        total_duration=us(row.total),
        exclusive_duration=us(row.own),
        avg_duration=us(row.total / row.count),
        shape_signature=_shape(_most(row.shapes)),
        source_file=_source(_most(row.sources)),
        tf_op_path=_most(row.scopes),
        flop_proxy_per_invocation=round(row.flops / row.counted, 3) if row.counted and row.flops else None,
        calls_with_flops=row.counted,
        bytes_proxy_per_call=round(row.moved / row.moving, 1) if row.moving else None,
        calls_with_bytes=row.moving,
        launched_by=_most(row.parents),
        family=family_of(name, row),
        share_of_total=share(row.own, whole),
        slowest_rank=slowest,
        slowest_rank_duration=None if slowest is None else us(row.by_rank[slowest]),
    )


def _family(word: str, rows: list[tuple[str, _Row]], whole: int) -> SemanticFamilyAggregate:
    count, total, own = (sum(getattr(row, name) for _, row in rows) for name in ("count", "total", "own"))
    flops = sum(row.flops for _, row in rows)
    complete = flops > 0 and all(row.counted == row.count for _, row in rows)  # else time and operations are not of the same events
    shapes: dict[str, int] = {}
    for _, row in rows:
        for text, amount in row.shapes.items():
            shapes[text] = shapes.get(text, 0) + amount
    return SemanticFamilyAggregate(
        family=word,
        count=count,
        total_duration=us(total),
        exclusive_duration=us(own),
        share_of_total=share(own, whole),
        avg_duration=us(total / count),
        avg_exclusive_duration=us(own / count),
        example_op=rows[0][0],
        dominant_shape_signature=_shape(_most(shapes)),
        flop_proxy_total=round(flops, 3) if flops else None,
        time_per_flop_proxy=round(own / 1000 / flops, 12) if complete else None,
    )


def _shape(text: str | None) -> str | None:
    return None if text is None else text.replace(" ", "")


def _source(stack: str | None) -> str | None:
    """file:line of the owner's innermost frame; frames of libraries are passed over."""
    for frame in (stack or "").split(";"):
        found = _FRAME.match(frame.strip())
        if found and not _LIBRARY.search(found["file"]):
            return f"{found['file']}:{found['line']}"
        if not found and re.match(r"^\S+\.py:\d+", frame):
            return frame.strip()
    return None
