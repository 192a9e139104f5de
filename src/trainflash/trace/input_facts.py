"""Where batches are made: single samples, and which part of making a batch a source line lies in."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

import numpy as np

from trainflash.schema import Location
from trainflash.trace import repeats
from trainflash.trace.facts import Facts
from trainflash.trace.model import PARTS, LoaderTrace, SampleTimes, WorkerMemoryReading
from trainflash.trace.words import Codes, Words


def sample_times(facts: Facts) -> dict[int, SampleTimes]:
    """By loader (-1: the one that this worker process serves) the newest figures about its samples."""
    found = {}
    for fact in facts.all("samples"):
        slow = tuple((int(index), int(ns), int(times), name) for index, ns, times, name in fact.get("slow", []))
        found[int(fact["loader"])] = SampleTimes(int(fact["loader"]), int(fact["count"]), int(fact["usual_ns"]), slow)
    return found


def batched(facts: Facts) -> frozenset[int]:
    """Loaders whose dataset was seen to make whole batches; -1 as above."""
    return frozenset(int(fact["loader"]) for fact in facts.all("batched"))


def draws(facts: Facts) -> dict[int, bool]:
    """By loader (-1 as above) whether making its batches was seen to draw random numbers."""
    return {int(fact["loader"]): bool(fact["draws"]) for fact in facts.all("draws")}


def joined(facts: Facts) -> dict[int, Location]:
    """By loader (-1 as above) the owner's function that most of the joining of samples passed in, without the functions that it called."""
    spent: dict[int, dict[int, int]] = defaultdict(lambda: defaultdict(int))
    for _, call, window in repeats.calls(facts):
        if window.get("where") == "collate":
            of_loader = spent[int(window.get("loader", -1))]
            of_loader[call["place"]] += int(call["ns"])
            of_loader[call["caller"]] -= int(call["ns"])
    places = {fact["id"]: facts.location(fact["at"]) for fact in facts.all("function")}
    found = {loader: places.get(max(each, key=lambda place: each[place])) for loader, each in spent.items()}
    return {loader: location for loader, location in found.items() if location is not None}


def slowed(facts: Facts) -> set[int]:
    """Steps that were traced, so slower than others."""
    return {int(fact["step"]) for fact in facts.all("slowed")}


def with_samples(loaders: tuple[LoaderTrace, ...], facts: Facts) -> tuple[LoaderTrace, ...]:
    """The loaders of a process with what this process itself saw of their samples."""
    times, whole, drawn, joining = sample_times(facts), batched(facts), draws(facts), joined(facts)
    return tuple(
        replace(
            loader,
            times=times.get(loader.id),
            batched=loader.id in whole,
            draws=drawn.get(loader.id),
            joined_at=joining.get(loader.id),
        )
        for loader in loaders
    )


def parts(words: Words, codes: Codes, t_ns: np.ndarray, worker: bool) -> np.ndarray:
    """For each of these moments the part of making a batch that it lies in, as an index of `PARTS`."""
    marks = np.isin(words.code, (codes["fetch"], codes["collate"], codes["fetched"]))
    outside = PARTS.index("waiting" if worker else "")
    after = {codes["fetch"]: PARTS.index("getitem"), codes["collate"]: PARTS.index("collate"), codes["fetched"]: outside}
    begins = np.array([outside, *(after[int(code)] for code in words.code[marks])], dtype=np.int64)
    return begins[np.searchsorted(words.t_ns[marks], t_ns, side="right")]


def worker_memory(facts: Facts) -> tuple[WorkerMemoryReading, ...]:
    """What a worker read of its own memory; none where the kernel does not say."""
    return tuple(
        WorkerMemoryReading(*(int(fact[name]) for name in ("t", "batches", "private", "faults", "system_ns", "cpu_ns")))
        for fact in facts.all("worker_memory")
        if fact.get("private") is not None
    )
