"""Fact lines of one process → typed facts.

A line that is broken or of an unknown kind is left out: the process may have died writing it.
"""

from __future__ import annotations

import json
from bisect import bisect
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from trainflash.schema.runs import Location
from trainflash.schema.summaries import PaddedField, Setting, StartUp, Written
from trainflash.trace.model import (
    BatchTrace,
    Beside,
    BesideThread,
    CpuReading,
    DataFunction,
    EvalTrace,
    Fetches,
    LoaderTrace,
    LogTrace,
    Occurrences,
    SaveTrace,
    ThreadFacts,
)
from trainflash.trace.unused_forwards import Unused
from trainflash.trace.words import Codes, Words


@dataclass(frozen=True)
class Facts:
    """All fact lines of one process by kind, in order of writing; `root` is what locations become relative to."""

    root: str
    by_kind: dict[str, list[dict]] = field(default_factory=dict)

    def all(self, kind: str) -> list[dict]:
        """Every fact of `kind`."""
        return self.by_kind.get(kind, [])

    def newest(self, kind: str) -> dict:
        """The last fact of `kind`, {} without one."""
        return self.by_kind.get(kind, [{}])[-1]

    def location(self, at: object) -> Location | None:
        """[file, line, function] as a location, relative to the project where the file lies inside."""
        if not isinstance(at, (list, tuple)) or len(at) != 3 or not isinstance(at[1], int):
            return None
        name = str(at[0])
        if self.root and name.startswith(self.root.rstrip("/") + "/"):
            name = name[len(self.root.rstrip("/")) + 1 :]
        return Location(name, int(at[1]), str(at[2]))


def read(path: Path, root: str) -> Facts:
    """The facts of one process; none when the file is absent."""
    by_kind: dict[str, list[dict]] = defaultdict(list)
    try:
        lines = path.read_bytes().splitlines()
    except OSError:
        lines = []
    for line in lines:
        try:
            fact = json.loads(line)
        except ValueError:
            continue
        if isinstance(fact, dict) and isinstance(fact.get("k"), str):
            by_kind[fact["k"]].append(fact)
    return Facts(root, dict(by_kind))


def fetches(words: Words, codes: Codes) -> Fetches:
    """Fetches of one process: `fetch`, `collate`, `fetched` in this order; an incomplete one (end of data) is left out."""
    keep = np.isin(words.code, (codes["fetch"], codes["collate"], codes["fetched"]))
    code, t, value, waited = words.code[keep], words.t_ns[keep], words.value[keep], words.second[keep]
    first = np.flatnonzero(code[:-2] == codes["fetch"]) if len(code) > 2 else np.zeros(0, dtype=np.int64)
    first = first[(code[first + 1] == codes["collate"]) & (code[first + 2] == codes["fetched"])]
    getitem, collate = t[first + 1] - t[first], t[first + 2] - t[first + 1]
    return Fetches(t[first], getitem, collate, value[first + 2], waited[first + 2])


def evaluations(facts: Facts, found: Occurrences, unused: Sequence[Unused] = ()) -> tuple[EvalTrace, ...]:
    """One for each evaluation seen in the events; its facts are those that began nearest to it, None where the process died first."""
    noted = facts.all("eval")
    at = np.array([fact.get("t", 0) for fact in noted], dtype=np.int64)
    result = []
    batches = {each.start_ns: each.batches for each in unused}
    for start, end in zip(found.start_ns.tolist(), found.end_ns.tolist(), strict=True):
        if start in batches:
            result.append(EvalTrace(start, None, batches[start], None, True))
            continue
        fact: dict = {}
        if len(at):
            nearest = int(np.argmin(np.abs(at - start)))
            if abs(int(at[nearest]) - start) <= max(50_000_000, end - start):
                fact = noted[nearest]
        forwards = tuple(filter(None, map(facts.location, fact.get("forwards", ()))))
        where, batches_seen = facts.location(fact.get("at")), int(fact.get("batches", 0))
        result.append(EvalTrace(start, where, batches_seen, fact.get("batch_size"), fact.get("grad"), forwards))
    return tuple(result)


def saves(facts: Facts) -> tuple[SaveTrace, ...]:
    """Outermost saves; a framework's saver takes the bytes of the saves inside it, and a save the time until its file has its last name."""
    result: list[SaveTrace] = []
    inner_bytes = 0
    for fact in facts.all("save"):
        size = fact.get("bytes")
        if fact.get("inner"):
            inner_bytes += size or 0
            continue
        if fact.get("method"):
            size = inner_bytes or None
        inner_bytes = 0
        result.append(SaveTrace(int(fact["t"]), int(fact["ns"]), facts.location(fact.get("at")), size))
    starts = [save.start_ns for save in result]
    for fact in facts.all("save_moved"):
        at = bisect(starts, int(fact["t"])) - 1
        if at >= 0:
            result[at] = replace(result[at], duration_ns=result[at].duration_ns + int(fact["ns"]))
    return tuple(result)


def logs(facts: Facts) -> tuple[LogTrace, ...]:
    """Log calls by line, most time first."""
    lines = facts.newest("logs").get("lines", [])
    found = [LogTrace(facts.location(place), source, int(count), int(ns)) for place, source, count, ns in lines]
    return tuple(sorted(found, key=lambda log: -log.total_ns))


def settings(facts: Facts) -> tuple[Setting, ...]:
    """Debug and performance settings seen on; the newest line of each name."""
    newest = {fact["name"]: fact for fact in facts.all("setting")}
    shares = {fact["name"]: fact["ns"] / fact["of_ns"] for fact in facts.all("aid_time") if fact.get("of_ns")}
    return tuple(
        Setting(name, str(fact.get("value", "")), facts.location(fact.get("at")), shares.get(name)) for name, fact in newest.items()
    )


def _classes(facts: Facts, told: list | None) -> tuple[tuple[str, str], ...] | None:
    """File and name of classes; None where they are not known."""
    places = None if told is None else [facts.location(each) for each in told]
    return None if places is None else tuple((place.file, place.function) for place in places if place is not None)


OPENED_OFTEN = 3  # while training


def written(facts: Facts) -> tuple[Written, ...]:
    """Places that write, each once; of those that wrote ahead of the training such as keep a file open."""
    rows = facts.all("written")
    often = {tuple(fact["at"]) for fact in rows if int(fact.get("times", 0)) >= OPENED_OFTEN}
    state = {tuple(fact["at"]) for fact in rows if fact.get("state")}
    unheard = {tuple(fact["at"]) for fact in rows if fact.get("unheard")}
    closed = {tuple(fact["at"]) for fact in facts.all("closed")} - {tuple(fact["at"]) for fact in rows if int(fact.get("times", 0))}
    places = dict.fromkeys(tuple(fact["at"]) for fact in rows if fact.get("state") or tuple(fact["at"]) not in closed)
    known = ((place, facts.location(place)) for place in places)
    return tuple(Written(location, place in often, place in state, place in unheard) for place, location in known if location is not None)


def startup(facts: Facts) -> StartUp | None:
    """Where the time before the first event went; None where no lines were sampled."""
    found = facts.newest("ahead")
    if not found:
        return None
    rows = [(facts.location(row[:3]), int(row[3])) for row in found.get("rows", []) if len(row) == 4]
    lines = tuple((location, ns / 1e9) for location, ns in rows if location is not None)
    return StartUp(own_s=int(found["own_ns"]) / 1e9, importing_s=int(found["importing_ns"]) / 1e9, lines=lines)


def data_functions(facts: Facts) -> tuple[DataFunction, ...]:
    """Functions that are bracketed as data functions."""
    found = []
    for fact in facts.all("data_function"):
        location = facts.location(fact.get("at"))
        if location is not None:
            found.append(DataFunction(location, location.function))
    return tuple(found)


def threads(facts: Facts) -> ThreadFacts | None:
    """CPU budget and consumption; None when the run carried no facts."""
    fixed, readings = facts.newest("threads"), facts.all("cpu")
    if not fixed and not readings:
        return None
    set_at = facts.newest("set_num_threads")
    return ThreadFacts(
        affinity=fixed.get("affinity"),
        cgroup_cpus=fixed.get("cgroup_cpus"),
        torch_threads=fixed.get("torch_threads"),
        interop_threads=fixed.get("interop_threads"),
        omp_num_threads=fixed.get("omp_num_threads"),
        set_at=facts.location(set_at.get("at")),
        cpu=tuple(CpuReading(int(each["t"]), each.get("cpu_ns"), each.get("runq_ns"), each.get("oncpu_ns")) for each in readings),
        beside=_beside(facts),
    )


def _beside(facts: Facts) -> Beside | None:
    """Busy Python threads, those that were seen in one function together; None without any, or where the kernel told nothing."""
    newest = facts.newest("beside")
    if not newest or not newest["lived"][0]:
        return None
    wall, process, trainer = (int(each) for each in newest["lived"])
    work, work_cpu, work_runq = (int(each) for each in newest["work"])
    threads: dict[tuple[str, str] | str, BesideThread] = {}
    for row in newest["threads"]:
        places = [facts.location(place[:3]) for place in row["at"]]
        location = next((place for place in places if place), None)
        one = BesideThread(str(row["name"]), int(row["cpu_ns"]), location, bool(row["makes"]))
        key = (location.file, location.function) if location is not None else one.name
        before = threads.get(key)
        threads[key] = one if before is None else replace(one, cpu_ns=one.cpu_ns + before.cpu_ns)
    found = tuple(sorted(threads.values(), key=lambda each: -each.cpu_ns))
    return Beside(wall, found, work, work_cpu, work_runq, max(0, process - trainer - sum(each.cpu_ns for each in found)))


def batch(facts: Facts) -> BatchTrace | None:
    """Shapes and padding of the sampled batches."""
    newest = facts.newest("batch")
    if not newest:
        return None
    shapes = {tuple(int(size) for size in shape): int(count) for shape, count in newest.get("shapes", [])}
    common = newest.get("common_padding")
    return BatchTrace(
        shapes,
        int(newest.get("elements", 0)),
        int(newest.get("padding", 0)),
        int(newest.get("signatures", 0)),
        None if common is None else int(common),
        tuple(PaddedField(*field) for field in newest.get("padded", [])),
        int(newest.get("listed", 0)),
        facts.location(newest.get("padded_by")),
        facts.location(facts.newest("tokenizer").get("at")),
    )


def loaders(facts: Facts, words: Words, codes: Codes, own_fetches: Fetches) -> tuple[LoaderTrace, ...]:
    """One for each `DataLoader` constructed in the process."""
    roles = {fact["loader"]: fact["role"] for fact in facts.all("role")}
    sample_bytes = {fact["loader"]: fact.get("bytes") for fact in facts.all("sample")}
    waits = Waits(words, codes)
    return tuple(
        _loader(facts, fact, waits, own_fetches, roles.get(fact["id"]), sample_bytes.get(fact["id"])) for fact in facts.all("loader")
    )


class Waits:
    """Data spans of loaders in one process: which loader, from when to when, `iter()` or a batch."""

    def __init__(self, words: Words, codes: Codes) -> None:
        begin = (words.code >= codes["data_of"]) & (words.code < codes["sample_of"])
        end = words.code == codes["Data"] + 1
        marks = np.flatnonzero(begin | end)
        is_begin = begin[marks]
        followed = np.zeros(len(marks), dtype=bool)
        followed[:-1] = is_begin[:-1] & ~is_begin[1:]
        first = marks[np.flatnonzero(followed)]
        self.code = words.code[first]
        self.start = words.t_ns[first]
        self.end = words.t_ns[marks[np.flatnonzero(followed) + 1]]
        self.data_of, self.iter_of = codes["data_of"], codes["iter_of"]


def _loader(facts: Facts, fact: dict, waits: Waits, own: Fetches, role: str | None, sample_bytes: int | None) -> LoaderTrace:
    number = int(fact["id"])
    iters = waits.code == waits.iter_of + number
    batches = waits.code == waits.data_of + number
    iter_at, wait_at = waits.start[iters], waits.start[batches]
    wait = waits.end[batches] - wait_at
    first = np.searchsorted(wait_at, iter_at)
    first = np.unique(first[first < len(wait_at)])
    mine = np.searchsorted(wait_at, own.start_ns, side="right") - 1
    inside = (mine >= 0) & (own.start_ns < waits.end[batches][np.maximum(mine, 0)]) if len(wait_at) else np.zeros(len(own.start_ns), bool)
    return LoaderTrace(
        id=number,
        role=role or ("eval" if len(wait_at) else "unused"),
        location=facts.location(fact.get("at")),
        num_workers=int(fact["num_workers"]),
        batch_size=fact.get("batch_size"),
        persistent_workers=bool(fact["persistent_workers"]),
        pin_memory=bool(fact["pin_memory"]),
        prefetch_factor=fact.get("prefetch_factor"),
        shuffles=bool(fact["shuffles"]),
        own_generator=bool(fact["own_generator"]),
        iterable=bool(fact["iterable"]),
        drop_last=bool(fact["drop_last"]),
        dataset=str(fact["dataset"]),
        dataset_location=facts.location(fact.get("dataset_at")),
        collate_location=facts.location(fact.get("collate_at")),
        collator_made_at=facts.location(fact.get("collator_at")),
        classes=_classes(facts, fact.get("classes")),
        dataset_len=fact.get("dataset_len"),
        sample_bytes=sample_bytes,
        iter_at_ns=iter_at,
        iter_ns=waits.end[iters] - iter_at,
        first_batch_ns=wait[first],
        batches=len(wait_at),
        wait_ns=wait,
        fetches=own.where(inside),
    )
