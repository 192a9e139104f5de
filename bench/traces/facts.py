"""Figures of a trace by plain loops over its events, without trainflash: the independent side of `make bench-traces`.

Reads Kineto and Chrome JSON (gzip or not) and SQLite exports of Nsight Systems. All figures are of the whole trace, in milliseconds:
nothing is left out as warm-up, so that they can be checked by hand in a trace viewer. `python facts.py FILE…` prints them.
"""

from __future__ import annotations

import collections
import gzip
import json
import re
import sqlite3
import sys
from decimal import Decimal
from itertools import pairwise
from pathlib import Path

DEVICE = {"kernel", "concurrent_kernel", "gpu_memcpy", "gpu_memset", "memcpy", "memset", "mtia_ccp_events"}
CALLS = {"cuda_runtime", "cuda_driver", "runtime", "mtia_runtime"}
HOST = {"cpu_op", "operator", "user_annotation", "python_function"}
BETWEEN = re.compile(r"enumerate\(DataLoader\)|dataloader\.py")
COMMUNICATION = re.compile(r"nccl|rccl|deep_ep|cross_device_reduce|all_?reduce|reduce_?scatter|all_?gather", re.IGNORECASE)


def _of_json(path: Path):
    """(device events, calls, host events, header): times in microseconds."""
    raw = path.read_bytes()
    text = (gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw).decode("utf-8", "replace")
    try:
        data = json.loads(text, strict=False, parse_float=Decimal)
    except ValueError:
        data = json.loads(re.sub(r"\\(?![\"\\/bfnrtu])", r"\\\\", text), strict=False, parse_float=Decimal)
    events = data if isinstance(data, list) else data["traceEvents"]
    found = collections.defaultdict(list)
    memory = []
    base = min(
        (int(event["ts"]) * 1000 for event in events if event.get("ph") == "X" and isinstance(event.get("ts"), (int, Decimal))), default=0
    )
    for event in events:
        if event.get("ph") == "i" and event.get("name") == "[memory]":
            memory.append(event)
        if event.get("ph") != "X" or not isinstance(event.get("ts"), (int, Decimal)):
            continue
        category = str(event.get("cat", "")).lower()
        args = event.get("args") or {}
        start = round(Decimal(event["ts"]) * 1000) - base
        row = (
            start / 1e3,
            round(Decimal(event.get("dur") or 0) * 1000) / 1e3,
            event.get("name", ""),
            args,
            (event.get("pid"), event.get("tid")),
            category,
        )
        kind = "device" if category in DEVICE else "call" if category in CALLS else "host" if category in HOST else "other"
        found[kind].append(row)
    head = {} if isinstance(data, list) else {key: value for key, value in data.items() if key != "traceEvents"}
    return found["device"], found["call"], found["host"], {**head, "memory": len(memory), "other": len(found["other"])}


COPY_KINDS = {1: "HtoD", 2: "DtoH", 8: "DtoD", 10: "PtoP"}
MEMORY_KINDS = {0: "Pageable", 1: "Pinned", 2: "Device"}


def _of_sqlite(path: Path):
    base = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    names = {row[0] for row in base.execute("select name from sqlite_master where type='table'")}
    texts = dict(base.execute("select id, value from StringIds")) if "StringIds" in names else {}
    device, calls, host = [], [], []
    if "CUPTI_ACTIVITY_KIND_KERNEL" in names:
        cursor = base.execute("select start, end, demangledName, correlationId, deviceId, streamId from CUPTI_ACTIVITY_KIND_KERNEL")
        for start, end, name, correlation, where, stream in cursor:
            device.append(
                (
                    start / 1e3,
                    (end - start) / 1e3,
                    texts.get(name, str(name)),
                    {"correlation": correlation, "device": where},
                    (where, stream),
                    "kernel",
                )
            )
    if "CUPTI_ACTIVITY_KIND_MEMCPY" in names:
        cursor = base.execute(
            "select start, end, copyKind, srcKind, dstKind, bytes, correlationId, deviceId, streamId from CUPTI_ACTIVITY_KIND_MEMCPY"
        )
        for start, end, kind, source, target, size, correlation, where, stream in cursor:
            name = f"Memcpy {COPY_KINDS.get(kind, kind)} ({MEMORY_KINDS.get(source, source)} -> {MEMORY_KINDS.get(target, target)})"
            device.append(
                (
                    start / 1e3,
                    (end - start) / 1e3,
                    name,
                    {"correlation": correlation, "bytes": size, "device": where},
                    (where, stream),
                    "gpu_memcpy",
                )
            )
    if "CUPTI_ACTIVITY_KIND_MEMSET" in names:
        cursor = base.execute("select start, end, bytes, correlationId, deviceId, streamId from CUPTI_ACTIVITY_KIND_MEMSET")
        for start, end, size, correlation, where, stream in cursor:
            told = {"correlation": correlation, "bytes": size, "device": where}
            device.append((start / 1e3, (end - start) / 1e3, "Memset", told, (where, stream), "gpu_memset"))
    if "CUPTI_ACTIVITY_KIND_RUNTIME" in names:
        for start, end, name, correlation, thread in base.execute(
            "select start, end, nameId, correlationId, globalTid from CUPTI_ACTIVITY_KIND_RUNTIME"
        ):
            calls.append(
                (start / 1e3, (end - start) / 1e3, texts.get(name, str(name)), {"correlation": correlation}, (0, thread), "cuda_runtime")
            )
    if "NVTX_EVENTS" in names:
        columns = {row[1] for row in base.execute("pragma table_info(NVTX_EVENTS)")}
        text = "coalesce(text, textId)" if "textId" in columns else "text"
        for start, end, name, thread in base.execute(f"select start, end, {text}, globalTid from NVTX_EVENTS where end is not null"):
            host.append(
                (
                    start / 1e3,
                    (end - start) / 1e3,
                    texts.get(name, str(name)) if isinstance(name, int) else str(name),
                    {},
                    (0, thread),
                    "user_annotation",
                )
            )
    head = {}
    if "TARGET_INFO_GPU" in names:
        head["deviceProperties"] = [{"name": row[0]} for row in base.execute("select name from TARGET_INFO_GPU")]
    return device, calls, host, head


def union(spans):
    """Disjoint spans in order."""
    made: list[list[float]] = []
    for start, end in sorted(spans):
        if made and start <= made[-1][1]:
            made[-1][1] = max(made[-1][1], end)
        elif end > start:
            made.append([start, end])
    return made


def measure(spans) -> float:
    return sum(end - start for start, end in spans)


def minus(whole, holes):
    """The part of `whole` (disjoint, in order) outside of `holes` (likewise)."""
    left, place = [], 0
    for start, end in whole:
        at = start
        while place < len(holes) and holes[place][1] <= start:
            place += 1
        here = place
        while here < len(holes) and holes[here][0] < end:
            if holes[here][0] > at:
                left.append([at, holes[here][0]])
            at = max(at, holes[here][1])
            here += 1
        if at < end:
            left.append([at, end])
    return left


def read(path: Path):
    return _of_sqlite(path) if path.suffix == ".sqlite" else _of_json(path)


def facts(path: Path) -> dict:
    """Counts, sums, unions, spans, gaps by whether their work was queued; see the module."""
    device, calls, host, head = read(path)
    answer: dict = {
        "device": [each.get("name") for each in head.get("deviceProperties") or []][:1],
        "memory_events": head.get("memory"),
        "other_events": head.get("other"),
    }
    answer |= {"device_events": len(device), "calls": len(calls), "host_events": len(host)}
    marks = sorted((start, duration) for start, duration, name, *_, category in host if str(name).startswith("ProfilerStep"))
    answer["step_marks_ms"] = [round(duration / 1e3, 3) for _, duration in marks][:12]
    everything = [*device, *calls, *host]
    if not everything:
        return answer
    first, last = min(row[0] for row in everything), max(row[0] + row[1] for row in everything)
    answer["span_ms"] = round((last - first) / 1e3, 3)
    if host and not device:
        answer["host_ms"] = round(measure(union((row[0], row[0] + row[1]) for row in host)) / 1e3, 3)
    own = collections.Counter()
    by_thread = collections.defaultdict(list)
    for row in host:
        if row[5] in {"cpu_op", "operator"} and not row[2].startswith("ProfilerStep"):
            by_thread[row[4]].append(row)
    for rows in by_thread.values():
        rows.sort(key=lambda row: (row[0], -row[1]))
        stack: list = []
        for start, duration, name, *_ in rows:
            while stack and stack[-1][0] <= start:
                stack.pop()
            if stack:
                own[stack[-1][1]] -= duration
            own[name] += duration
            stack.append((start + duration, name))
    answer["host_ops_own_ms"] = {name: round(value / 1e3, 3) for name, value in own.most_common(6)}
    if not device:
        return answer
    kernels = [
        row
        for row in device
        if not row[2].startswith(("Memcpy", "Memset")) and row[5] not in {"gpu_memcpy", "gpu_memset", "memcpy", "memset"}
    ]
    compute = [row for row in kernels if not COMMUNICATION.search(row[2])]
    talking = [row for row in kernels if COMMUNICATION.search(row[2])]
    copying = (
        [row for row in device if row not in kernels]
        if len(device) < 3000
        else [row for row in device if row[5] in {"gpu_memcpy", "gpu_memset", "memcpy", "memset"}]
    )
    spans = {
        name: union((row[0], row[0] + row[1]) for row in rows)
        for name, rows in (("compute", compute), ("communication", talking), ("copy", copying), ("busy", device))
    }
    begin, end = spans["busy"][0][0], spans["busy"][-1][1]
    answer["device_span_ms"] = round((end - begin) / 1e3, 3)
    answer["before_device_ms"] = round((begin - first) / 1e3, 3)
    answer["kernels"], answer["kernel_sum_ms"] = len(kernels), round(sum(row[1] for row in kernels) / 1e3, 3)
    answer |= {f"{name}_ms": round(measure(each) / 1e3, 3) for name, each in spans.items()}
    answer["communication_exposed_ms"] = round(measure(minus(spans["communication"], spans["compute"])) / 1e3, 3)
    sums = collections.defaultdict(lambda: [0, 0.0, 0, 0.0])
    for name in {row[2] for row in copying}:
        mine = [row for row in copying if row[2] == name]
        alone = measure(minus(union((row[0], row[0] + row[1]) for row in mine), spans["compute"]))
        sums[name] = [
            len(mine),
            round(sum(row[1] for row in mine) / 1e3, 3),
            sum(int(row[3].get("bytes") or 0) for row in mine),
            round(alone / 1e3, 3),
        ]
    answer["copies"] = {
        name: dict(zip(("count", "ms", "bytes", "exposed_ms"), value, strict=True))
        for name, value in sorted(sums.items(), key=lambda item: -item[1][1])
    }
    top = collections.Counter()
    for row in kernels:
        top[row[2]] += row[1]
    answer["kernels_ms"] = {name[:110]: round(value / 1e3, 3) for name, value in top.most_common(7)}
    answer["short_kernels"] = round(sum(row[1] < 10 for row in kernels) / max(len(kernels), 1), 3)
    answer["talking"] = len(talking)
    answer |= _gaps(device, calls, host, spans["busy"])
    return answer


def _gaps(device, calls, host, busy) -> dict:
    """Idle time between device work, by whether the call that launched what follows had begun before the gap."""
    launch = {}
    for start, duration, name, args, *_ in calls:
        correlation = args.get("correlation")
        if correlation:
            launch.setdefault(correlation, []).append((start, start + duration, name))
    ordered = sorted(device, key=lambda row: row[0])
    position, queued, late, unknown, longest = 0, 0.0, 0.0, 0.0, []
    for before, after in pairwise(busy):
        gap = after[0] - before[1]
        while position < len(ordered) and ordered[position][0] < after[0]:
            position += 1
        row = ordered[position]
        known = [each for each in launch.get(row[3].get("correlation"), ()) if each[0] <= row[0]]
        if not known:
            unknown += gap
        elif max(known)[0] <= before[1]:
            queued += gap
        else:
            late += gap
        longest.append((gap, before[1], after[0], row[2], max(known)[0] - before[1] if known else None))
    longest.sort(key=lambda each: -each[0])
    told = []
    for gap, start, end, name, launched in longest[:4]:
        doing = collections.Counter()
        for row in (*host, *calls):
            if row[0] < end and row[0] + row[1] > start and row[1] < 20 * gap:
                doing[str(row[2])[:60]] += min(end, row[0] + row[1]) - max(start, row[0])
        told.append(
            {
                "ms": round(gap / 1e3, 3),
                "before": name[:60],
                "launched_after_ms": None if launched is None else round(launched / 1e3, 3),
                "meanwhile": {key: round(value / 1e3, 3) for key, value in doing.most_common(5)},
            }
        )
    waits = [row for row in calls if re.search(r"Synchronize$", row[2])]
    reads = collections.Counter(row[2] for row in calls)
    loading = union((row[0], row[0] + row[1]) for row in host if BETWEEN.search(str(row[2])))
    return {
        "gaps_queued_ms": round(queued / 1e3, 3),
        "gaps_late_ms": round(late / 1e3, 3),
        "gaps_unknown_ms": round(unknown / 1e3, 3),
        "largest_gaps": told,
        "synchronize": [len(waits), round(sum(row[1] for row in waits) / 1e3, 3)],
        "call_counts": dict(reads.most_common(6)),
        "loading_ms": round(measure(loading) / 1e3, 3),
    }


def main(paths: list[str]) -> None:
    for path in paths:
        print("==", path)
        for key, value in facts(Path(path)).items():
            if isinstance(value, dict) and value and isinstance(next(iter(value.values())), (dict, float)):
                print(f"  {key}:")
                for name, each in value.items():
                    print(f"     {each}  {name}")
            elif isinstance(value, list) and value and isinstance(value[0], dict):
                print(f"  {key}:")
                for each in value:
                    print(f"     {each}")
            else:
                print(f"  {key}: {value}")


if __name__ == "__main__":
    main(sys.argv[1:])
