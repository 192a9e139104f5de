"""What a process does together with others: collectives, and how the model is wrapped."""

from __future__ import annotations

import numpy as np

from trainflash.schema.runs import PHASES
from trainflash.trace.accounting import Spans, step_of
from trainflash.trace.facts import Facts
from trainflash.trace.model import CollectiveLine, Collectives, Parallel
from trainflash.trace.words import Codes, Words


def rank(facts: Facts, header: dict) -> tuple[int, int]:
    """(rank, number of ranks): a program may join its process group after its first event, when the header is written."""
    joined = facts.newest("rank")
    return int(joined.get("rank", header["rank"])), int(joined.get("world_size", header["world_size"]))


def collectives(words: Words, codes: Codes, marks: Spans, step_start: np.ndarray, facts: Facts) -> Collectives | None:
    """Calls that talk to other ranks; None where the probe did not listen for them."""
    if "collective" not in codes.names or not facts.all("rank"):
        return None
    kept = np.isin(words.code, (codes["collective"], codes["reduced"]))
    t, value, second = words.t_ns[kept], np.maximum(words.value[kept], 0), np.maximum(words.second[kept], 0)
    reduction = words.code[kept] == codes["reduced"]
    before = np.searchsorted(marks.t_ns, t, side="right") - 1
    effective = marks.effective if len(marks.t_ns) else np.array([PHASES.index("Other")])
    phase = np.where(before >= 0, effective[np.maximum(before, 0)], PHASES.index("Other"))
    return Collectives(
        end_ns=t,
        host_ns=value,
        bytes=np.where(reduction, second, second // 2),
        called=reduction | (second % 2 == 1),
        reduction=reduction,
        phase=np.where(reduction, PHASES.index("Bwd"), phase),  # it is noted right after the span of backward
        step=step_of(t - 1, step_start),
    )


def parallel(facts: Facts) -> Parallel | None:
    """How the process talks to others; None where it joined no process group."""
    joined, wrapped, ddp = facts.newest("rank"), facts.newest("wrapper"), facts.newest("ddp")
    if not joined:
        return None
    lines = [
        CollectiveLine(facts.location(place), str(operation), int(calls), int(ns), int(size))
        for place, operation, calls, ns, size in facts.newest("collectives").get("lines", [])
    ]
    cap = ddp.get("bucket_cap_bytes")
    return Parallel(
        backend=str(joined.get("backend", "")),
        wrapper=str(wrapped.get("name", "")),
        location=facts.location(wrapped.get("at")),
        find_unused_parameters=ddp.get("find_unused_parameters"),
        static_graph=ddp.get("static_graph"),
        bucket_cap_mb=cap / 2**20 if cap is not None else None,
        buckets=ddp.get("buckets"),
        reduced_bytes=ddp.get("bytes"),
        comm_ns=ddp.get("comm_ns"),
        overlap_ns=ddp.get("overlap_ns"),
        lines=tuple(sorted(lines, key=lambda line: -line.total_ns)),
    )
