"""The figures of a trace by a computation of its own, beside those that `trainflash` reads: `make bench-profile-exact TRACES="FILE…"`.

Nothing of ours reads the file here: `json` gives the events, `fractions` the times, one sweep over sorted ends the unions. Compared are
counts of complete events and kernels, the sum of kernel time, the time in which the device is busy, its span, and the time from each step's
mark to the next one's. Times are exact to the nanosecond that the file's decimals round to. Without TRACES: those of `../shared/traces`,
where that folder is there, and the synthetic ones of `profile_shapes` at 4 MB.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import profile_shapes

from trainflash.profile.analysis.columns import ANALYSED
from trainflash.profile.analysis.step_marks import steps_of
from trainflash.profile.analysis.view import Rank
from trainflash.profile.events import Kind
from trainflash.profile.sources import Request, load

KERNELS = {"kernel", "concurrent_kernel"}
COPIES = {"gpu_memcpy", "memcpy", "gpu_memset", "memset"}
STEP = re.compile(r"ProfilerStep ?#(\d+)$")
HOST_MARKS = {"user_annotation", "operator", "cpu_op"}
FIGURES = ("events", "kernels", "kernel_ns", "busy_ns", "span_ns", "step_ns")


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    arguments.add_argument("traces", nargs="*", type=Path, help="JSON traces, plain or .gz, or a .tar.gz of them")
    chosen = arguments.parse_args()
    wrong = 0
    with tempfile.TemporaryDirectory(prefix="trainflash-exact-") as directory:
        for path in chosen.traces or usual(Path(directory)):
            for name, text, plain in members(path, Path(directory)):
                own, ours = by_itself(text), as_read(plain)
                differ = [figure for figure in FIGURES if own[figure] != ours[figure]]
                wrong += bool(differ)
                told = "; ".join(f"{figure}: {own[figure]} here, {ours[figure]} read" for figure in differ)
                print(f"{name}: {own['events']:,} events, {own['kernels']:,} kernels: {told or 'equal'}", flush=True)
    sys.exit(1 if wrong else 0)


def usual(directory: Path) -> Iterator[Path]:
    if profile_shapes.REAL.is_dir():
        yield from sorted(path for path in profile_shapes.REAL.iterdir() if path.name.endswith((".json.gz", ".tar.gz")))
    for shape in profile_shapes.SHAPES:
        path = None if shape == "xplane" else profile_shapes.make(directory, shape, 4)
        if path is not None:
            yield path


def members(path: Path, directory: Path) -> Iterator[tuple[str, str, Path]]:
    """(name, text, a file that holds it alone)."""
    if path.name.endswith((".tar.gz", ".tgz", ".tar")):
        with tarfile.open(path) as archive:
            for member in archive:
                if member.isfile():
                    data = archive.extractfile(member).read()
                    alone = directory / Path(member.name).name
                    alone.write_bytes(data)
                    yield f"{path.name}/{alone.name}", unpacked(data), alone
        return
    yield path.name, unpacked(path.read_bytes()), path


def unpacked(data: bytes) -> str:
    return (gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data).decode("utf-8", "replace")


def by_itself(text: str) -> dict:
    """The figures of this text."""
    found = json.loads(text, parse_float=Fraction, strict=False)
    events = found if isinstance(found, list) else found["traceEvents"]
    complete = [event for event in events if event.get("ph") == "X"]
    kinds = [(event, str(event.get("cat", "")).lower()) for event in complete]
    kernels = [event for event, kind in kinds if kind in KERNELS and not re.match(r"Mem(cpy|set)\b", event["name"])]
    busy = [event for event, kind in kinds if kind in KERNELS | COPIES]
    spans = sorted(ends(event) for event in busy)
    marks = sorted(
        {
            (begin, int(mark[1]))
            for event, kind in kinds
            if kind in HOST_MARKS and (mark := STEP.match(event["name"]))
            for begin in [ends(event)[0]]
        }
    )
    return {
        "events": len(complete),
        "kernels": len(kernels),
        "kernel_ns": sum(last - first for first, last in map(ends, kernels)),
        "busy_ns": covered(spans),
        "span_ns": max((last for _, last in spans), default=0) - (spans[0][0] if spans else 0),
        "step_ns": [after - begin for (begin, _), (after, _) in pairwise(marks)],
    }


def ends(event: dict) -> tuple[int, int]:
    """(begin, end) in nanoseconds; a time and a duration are each rounded to one, as the file's decimals mean them."""
    begin = nanoseconds(event["ts"])
    return begin, begin + max(nanoseconds(event.get("dur", 0)), 0)


def nanoseconds(us: Fraction | int | str) -> int:
    return round(Fraction(us) * 1000)


def covered(spans: list[tuple[int, int]]) -> int:
    """The length of the union of ascending spans."""
    total, reach = 0, None
    for first, last in spans:
        if reach is None or first > reach:
            total, reach = total + last - first, last
        elif last > reach:
            total, reach = total + last - reach, last
    return total


def as_read(path: Path) -> dict:
    """The same figures from the columns that a summary is made of."""
    (trace,) = load(Request(trace_file=(path,), columns=ANALYSED)).traces
    rank = Rank(trace)
    device = rank.device
    kernels = trace.rows(Kind.KERNEL)
    steps = steps_of(rank)
    return {
        "events": trace.quality.complete_events,
        "kernels": len(kernels),
        "kernel_ns": int(trace.events.duration_ns[kernels].sum()),
        "busy_ns": device.spans().total,
        "span_ns": int(device.end.max(initial=0) - device.start.min(initial=2**62)) if len(device) else 0,
        "step_ns": (steps.start[1:] - steps.start[:-1]).tolist() if steps.basis == "step_markers" else [],
    }


if __name__ == "__main__":
    main()
