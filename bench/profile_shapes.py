"""Traces to measure reading with: synthetic ones of several shapes, and real ones laid end to end until they are large enough.

Written as Kineto and XLA write them. `SHAPES` says what each one is; `make` writes it once and gives its path.
"""

from __future__ import annotations

import gzip
import itertools
import random
import re
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path

MB = 1_000_000
REAL = Path(__file__).resolve().parent.parent.parent / "shared" / "traces" / "kineto"
SHAPES = {
    "kineto": "per launch four operators, two runtime calls, a kernel, two arrows; 400 launches a step",
    "stacks": "the same with shapes and Python frames",
    "plain": "an operator, its launch, its kernel; 4,000 operators a step, one thread",
    "short": "the same, 25 operators a step: many steps",
    "threads": "the same on 16 host threads and 8 streams",
    "ranked": "two operators with shapes a launch, both kinds of arrows, allocations, an all-reduce with its group after each 40",
    "v100": "a real ResNet-50 on a V100, old style, laid end to end",
    "a100": "a real job on A100s with NCCL",
    "h100": "a real BERT on an H100, Python stacks and modules",
    "dlrm": "a real DLRM on V100s, one rank of eight",
    "xplane": "XPlane, 51 bytes an event, five stats each",
}
_REAL = {
    "v100": "resnet50_v100_workers0.json.gz",
    "a100": "a100_nccl_3steps.json.gz",
    "h100": "h100_bert_small.json.gz",
    "dlrm": "dlrm_8rank_v100.tar.gz",
}


def make(directory: Path, shape: str, size_mb: int) -> Path | None:
    """The trace of about this size; None where the real one that it is made of is not here. `shape` may end in ".gz"."""
    plain = shape.removesuffix(".gz")
    if plain == "xplane":
        return _once(directory / f"xplane-{size_mb}.xplane.pb", lambda path: _write_xplane(path, size_mb * MB))
    if plain in _REAL and not (REAL / _REAL[plain]).is_file():
        return None
    events = _laid_end_to_end(_real_text(plain)) if plain in _REAL else _EVENTS[plain]()
    path = _once(directory / f"{plain}-{size_mb}.json", lambda path: _write(path, size_mb * MB, events))
    return path if plain == shape else _once(path.with_name(path.name + ".gz"), lambda packed: _pack(path, packed))


def raw_bytes(path: Path) -> int:
    """Its size unpacked."""
    return int(path.with_name(path.name + ".raw").read_text()) if path.suffix == ".gz" else path.stat().st_size


def _once(path: Path, write_to: Callable[[Path], None]) -> Path:
    if not path.is_file():
        beside = path.with_name(f".{path.name}.tmp")
        write_to(beside)
        beside.replace(path)
    return path


def _pack(plain: Path, packed: Path) -> None:
    with plain.open("rb") as text, gzip.open(packed, "wb", 1) as out:
        while chunk := text.read(1 << 22):
            out.write(chunk)
    name = packed.name.removeprefix(".").removesuffix(".tmp")
    packed.with_name(name + ".raw").write_text(str(plain.stat().st_size))


def _write(path: Path, size: int, events: Iterator[str]) -> None:
    head = '{\n  "schemaVersion": 1,\n  "deviceProperties": [\n    {"id": 0, "name": "NVIDIA A100"}\n  ],\n  "traceEvents": [\n'
    with path.open("w") as out:
        written = out.write(head)
        for number, text in enumerate(events):
            written += out.write(text if number else text.removeprefix(",\n"))
            if written >= size:
                break
        out.write('\n  ],\n  "traceName": "synthetic.pt.trace.json"\n}\n')


# Synthetic

_START_US = 4458676522690.655
_HOST, _DEVICE = '"pid": 2910249, "tid": 2919752', '"pid": 0, "tid": 7'
_DIMS = '\n      "Input Dims": [[64, 512, 14, 14], [512], []], "Input type": ["float", "float", "Scalar"],'
_KERNELS = [
    f"void at::native::vectorized_elementwise_kernel<4, at::native::Functor{n}<float>, at::detail::Array<char*, 2>>" for n in range(80)
]
_OPS = [f"aten::op_{n}" for n in range(60)] + [f"autograd::engine::evaluate_function: Op{n}Backward0" for n in range(30)]


def _launches(stacks: bool = False) -> Iterator[str]:
    """The events of one kernel's launch after the other, with a step marker after each 400."""
    rng = random.Random(7)
    frames = [f"/opt/site-packages/torch/nn/modules/module_{n}.py(1553): _call_impl" for n in range(300)]
    time, step, began = _START_US, 0, _START_US
    for number in itertools.count(1):
        parts = []
        for level in range(4):
            inner = 4 * number + level
            args = f'"External id": {inner},{_DIMS if stacks else ""}"Record function id": {inner}, '
            args += f'"Sequence number": {number}, "Fwd thread id": 1, "Ev Idx": {inner}'
            parts.append(_complete("cpu_op", _OPS[rng.randrange(len(_OPS))], _HOST, time + level, 20.5 - 2 * level, args))
            if stacks:
                args = f'"Python parent id": {number}, "Python id": {inner}, "Ev Idx": {inner}'
                parts.append(_complete("python_function", frames[rng.randrange(300)], _HOST, time + level, 20.7 - 2 * level, args))
        for call, name in enumerate(("cudaLaunchKernel", "cudaStreamIsCapturing")):
            args = f'"External id": {4 * number}, "cbid": 211, "correlation": {2 * number + call}'
            parts.append(_complete("cuda_runtime", name, _HOST, time + 5 + 4 * call, 3.25, args))
        parts.append(_arrow("s", 2 * number, _HOST, time + 5))
        args = (
            f'"External id": {4 * number},\n      "queued": 0, "device": 0, "context": 1,\n      "stream": 7, "correlation": {2 * number},'
            f'\n      "registers per thread": 32, "shared memory": 0,\n      "blocks per SM": 1.185185, "warps per SM": 9.481481,\n      '
            f'"grid": [{rng.randrange(1, 50)}, 1, 1], "block": [128, 1, 1],\n      "est. achieved occupancy %": 31'
        )
        parts.append(_complete("kernel", _KERNELS[rng.randrange(80)], _DEVICE, time + 12, 5 + rng.randrange(9000) / 1000, args))
        parts.append(_arrow("f", 2 * number, _DEVICE, time + 12))
        time += 25.125
        if number % 400 == 0:
            parts.append(_step(step, began, time))
            step, began = step + 1, time
        yield "".join(parts)


def _operators(each_step: int, threads: int = 1, streams: int = 1) -> Iterator[str]:
    """An operator with its launch and its kernel, one after the other on each thread."""
    rng = random.Random(11)
    time, step, began = _START_US, 0, _START_US
    for number in itertools.count(1):
        thread, stream = number % threads, 7 + number % streams
        host = f'"pid": 291, "tid": {291 + thread}'
        at = time + rng.randrange(1000) / 1000
        args = f'"External id": {number}, "Record function id": 0, "Ev Idx": {number}'
        parts = [_compact("cpu_op", _OPS[rng.randrange(60)], host, at, 14.5 * threads, args)]
        args = f'"External id": {number}, "cbid": 211, "correlation": {number}'
        parts.append(_compact("cuda_runtime", "cudaLaunchKernel", host, at + 3, 4.125, args))
        args = (
            f'"External id": {number}, "device": 0, "context": 1, "stream": {stream}, "correlation": {number}, '
            f'"registers per thread": {16 + rng.randrange(90)}, "shared memory": {1024 * rng.randrange(4)}, '
            f'"blocks per SM": {rng.randrange(1, 10**4) / 100}, "warps per SM": {rng.randrange(1, 10**4) / 100}, '
            f'"grid": [{rng.randrange(1, 4000)}, 1, 1], "block": [128, 1, 1], "est. achieved occupancy %": {rng.randrange(100)}'
        )
        kernel = _KERNELS[rng.randrange(80)][: 16 + rng.randrange(30)]
        parts.append(_compact("kernel", kernel, f'"pid": 0, "tid": {stream}', at + 9, 4 + rng.randrange(6000) / 1000, args))
        time += 16.25
        if number % each_step == 0:
            parts.append(_step(step, began, time))
            step, began = step + 1, time
        yield "".join(parts)


def _ranked() -> Iterator[str]:
    """A rank of a data-parallel job that records shapes and memory."""
    rng = random.Random(13)
    time, step, began, held = _START_US, 0, _START_US, 1 << 30
    group = '"Process Group Name": "0", "Process Group Description": "default_pg", "Process Group Ranks": [0, 1, 2, 3, 4, 5, 6, 7]'
    for number in itertools.count(1):
        parts = []
        for level in range(2):
            inner = 2 * number + level
            dims = f'"Input Dims": [[{rng.randrange(1, 400)}, 512], [512, 512]], "Input type": ["c10::BFloat16", "c10::BFloat16"], '
            args = (
                f'"External id": {inner}, "Record function id": 0, {dims}"Sequence number": {number}, "Fwd thread id": 0, "Ev Idx": {inner}'
            )
            parts.append(_complete("cpu_op", _OPS[rng.randrange(60)], _HOST, time + level, 18.5 - 2 * level, args))
        for phase, at in (("s", time), ("f", time + 400)):
            parts.append(_arrow(phase, number, _HOST, at, "fwdbwd"))
        change = rng.choice((-1, 1)) * 512 * rng.randrange(1, 5000)
        held = max(held + change, 1 << 29)
        parts.append(_allocation(time + 2, number, change, held))
        parts.append(
            _complete(
                "cuda_runtime",
                "cudaLaunchKernel",
                _HOST,
                time + 5,
                3.25,
                f'"External id": {2 * number}, "cbid": 211, "correlation": {number}',
            )
        )
        parts.append(_arrow("s", number, _HOST, time + 5))
        reduces = number % 40 == 0
        stream = 20 if reduces else 7
        args = f'"External id": {2 * number},\n      "queued": 0, "device": 0, "context": 1,\n      '
        args += f'"stream": {stream}, "correlation": {number},\n'
        if reduces:
            args += (
                f'      "Collective name": "allreduce", "In msg nelems": {number}, "Out msg nelems": {number}, "Group size": 8, '
                f'"dtype": "BFloat16", "In split size": "[]", "Out split size": "[]", {group}, '
            )
        args += '"registers per thread": 32, "shared memory": 0, "blocks per SM": 1.5, "warps per SM": 9.25, '
        args += f'"grid": [{rng.randrange(1, 50)}, 1, 1], "block": [128, 1, 1],\n      "est. achieved occupancy %": 31'
        name = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)" if reduces else _KERNELS[rng.randrange(80)]
        device = f'"pid": 0, "tid": {stream}'
        parts.append(_complete("kernel", name, device, time + 12, 200 if reduces else 5 + rng.randrange(9000) / 1000, args))
        parts.append(_arrow("f", number, device, time + 12))
        time += 25.125
        if number % 1200 == 0:
            parts.append(_step(step, began, time))
            step, began = step + 1, time
        yield "".join(parts)


def _complete(category: str, name: str, place: str, time: float, length: float, args: str) -> str:
    head = f',\n  {{\n    "ph": "X", "cat": "{category}", "name": "{name}", {place},\n    '
    return f'{head}"ts": {time:.3f}, "dur": {length:.3f},\n    "args": {{\n      {args}\n    }}\n  }}'


def _compact(category: str, name: str, place: str, time: float, length: float, args: str) -> str:
    head = f'{{"ph": "X", "cat": "{category}", "name": "{name}", {place}, "ts": {time:.3f}, "dur": {length:.3f}'
    return f',\n{head}, "args": {{{args}}}}}'


def _step(number: int, began: float, ended: float) -> str:
    return _complete("user_annotation", f"ProfilerStep#{number}", _HOST, began, ended - began - 0.1, '"External id": 0, "Ev Idx": 0')


def _arrow(phase: str, number: int, place: str, time: float, category: str = "ac2g") -> str:
    rest = f'"cat": "{category}", "name": "{category}", "bp": "e"\n  }}'
    return f',\n  {{\n    "ph": "{phase}", "id": {number}, {place}, "ts": {time:.3f},\n    {rest}'


def _allocation(time: float, number: int, size: int, held: int) -> str:
    args = f'"Total Reserved": {1 << 31}, "Total Allocated": {held}, "Bytes": {size}, "Addr": {140000000000000 + 512 * number}, '
    args += '"Device Id": 0, "Device Type": 1'
    head = f',\n  {{\n    "ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]",\n    {_HOST},\n    "ts": {time:.3f}'
    return f'{head},\n    "args": {{\n      {args}\n    }}\n  }}'


_EVENTS: dict[str, Callable[[], Iterator[str]]] = {
    "kineto": _launches,
    "stacks": lambda: _launches(stacks=True),
    "plain": lambda: _operators(4000),
    "short": lambda: _operators(25),
    "threads": lambda: _operators(2000, threads=16, streams=8),
    "ranked": _ranked,
}


# Real ones, laid end to end

_EVENT = re.compile(r"\}\s*,\s*(?=\{\s*\"(?:ph|name|cat)\")")
_TIME = re.compile(r"\"(ts|dur)\": *\"?(\d+(?:\.\d+)?)")
_NUMBERED = re.compile(r"(\"(?:correlation|External id|external id|Ev Idx|Python id|Python parent id|id)\": *)(\d+)|(ProfilerStep ?#)(\d+)")
_MOST_STEPS = 1000


def _real_text(shape: str) -> str:
    path = REAL / _REAL[shape]
    if path.name.endswith(".tar.gz"):
        with tarfile.open(path) as archive:
            member = next(each for each in archive if each.name.endswith((".json", ".json.gz")))
            data = archive.extractfile(member).read()
            return (gzip.decompress(data) if member.name.endswith(".gz") else data).decode()
    return gzip.decompress(path.read_bytes()).decode()


def _laid_end_to_end(text: str) -> Iterator[str]:
    """The events again and again, each time later and with other ids; what describes processes stands once."""
    begin = text.index('"traceEvents"')
    begin = text.index("[", begin) + 1
    end = re.compile(r"\}\s*\]").search(text, text.rindex('"ts"')).start() + 1
    events = [piece if piece.endswith("}") else piece + "}" for piece in _EVENT.split(text[begin:end].strip())]
    timed = [event for event in events if re.search(r'"ph": *"[^M]', event) and '"Record Window End"' not in event]
    yield from (",\n  " + event for event in events if re.search(r'"ph": *"M"', event))
    times = [{key: float(value) for key, value in _TIME.findall(event)} for event in timed]
    first = min(each["ts"] for each in times)
    length = int(max(each["ts"] + each.get("dur", 0) for each in times) - first) + 1000
    ids = 1 + max(int(number) for event in timed for _, number, _, _ in _NUMBERED.findall(event) if number and len(number) < 12)
    for again in itertools.count():
        for event in timed:
            moved = _TIME.sub(lambda found, again=again: _later(found, again * length), event)
            yield ",\n  " + _NUMBERED.sub(lambda found, again=again: _renumbered(found, again * ids, again * _MOST_STEPS), moved)


def _later(found: re.Match, shift: int) -> str:
    if found[1] == "dur" or not shift:
        return found[0]
    whole, _, fraction = found[2].partition(".")
    return found[0][: found.start(2) - found.start()] + str(int(whole) + shift) + ("." + fraction if fraction else "")


def _renumbered(found: re.Match, ids: int, steps: int) -> str:
    if found[3]:
        return f"{found[3]}{int(found[4]) + steps}"
    return f"{found[1]}{int(found[2]) + (ids if len(found[2]) < 12 else 0)}"


# XPlane


def _varint(value: int) -> bytes:
    out = bytearray()
    while value >= 128:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def _field(number: int, value: int | bytes) -> bytes:
    if isinstance(value, bytes):
        return _varint(number << 3 | 2) + _varint(len(value)) + value
    return _varint(number << 3) + _varint(value)


def _write_xplane(path: Path, size: int) -> None:
    """One GPU plane with one stream; each event has a correlation, three references and a number."""
    stats = {1: "correlation_id", 2: "tf_op", 3: "hlo_op", 4: "hlo_module", 5: "program_id"}
    texts = {100 + n: f"jit(train_step)/transformer/layer_{n % 12}/dot_general_{n}" for n in range(400)}
    rng, parts, total, number, offset = random.Random(7), [], 0, 0, 0
    while total < size:
        number += 1
        op = 100 + rng.randrange(400)
        values = (_field(3, number), _field(7, op), _field(7, op), _field(7, 100), _field(4, 3))
        packed = b"".join(_field(4, _field(1, stat) + value) for stat, value in enumerate(values, 1))
        event = _field(1, 1 + rng.randrange(200)) + _field(2, offset) + _field(3, 4_000_000 + rng.randrange(5_000_000)) + packed
        parts.append(_field(4, event))
        total += len(parts[-1])
        offset += 10_000_000
    line = _field(1, 13) + _field(2, b"Stream #13(Compute)") + _field(3, 711141) + b"".join(parts)
    del parts
    names = b"".join(_field(4, _field(1, n) + _field(2, _field(1, n) + _field(2, f"fusion_{n}".encode()))) for n in range(1, 201))
    known = b"".join(_field(5, _field(1, n) + _field(2, _field(1, n) + _field(2, text.encode()))) for n, text in {**stats, **texts}.items())
    path.write_bytes(_field(1, _field(2, b"/device:GPU:0") + _field(3, line) + names + known))
