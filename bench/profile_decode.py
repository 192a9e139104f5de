"""How fast traces are read and with how much memory, beside other readers: `make bench-profile`.

Synthetic traces, written as Kineto and XLA write them: `kineto` (per launch four operators, two runtime calls, a kernel, two arrows; 265
bytes an event, as in A100 traces), `stacks` (operators with shapes and Python frames; 300 bytes), `xplane` (events with five stats each).
Each measurement is a process of its own: CPU seconds (user and system) of reading, and peak memory beyond that of the imports, as a
multiple of the raw size. Of several rounds the best counts: other work on the machine only ever adds. Beside ours: `json.load`,
HolisticTraceAnalysis in an environment of its own, and for XPlane the protobuf library reading every stat. What was measured stays in
`results/profile_decode.json`, and is not measured again.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from kept_results import KeptResults

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results"
STATE = RESULTS / "profile_decode.json"
PEERS = RESULTS / "peers"
HTA = "HolisticTraceAnalysis==0.5.0"
MB = 1_000_000

READER = """
import json, sys, time
from pathlib import Path
reader, path = sys.argv[1], Path(sys.argv[2])
if reader in ("ours", "summary"):
    from trainflash.profile.sources import Request, load
    named = {"xplane_file" if path.name.endswith(".pb") else "trace_file": (path,)}
    if reader == "summary":
        from trainflash.profile.analysis.build import Options, summarize
        read = lambda: summarize(load(Request(**named)), Options(), generated_at_utc="2026-01-01T00:00:00Z")
    else:
        read = lambda: sum(len(trace.events) for trace in load(Request(**named)).traces)
elif reader == "json":
    read = lambda: len(json.load(path.open())["traceEvents"])
elif reader == "hta":
    from hta.common.trace import parse_trace_file
    from hta.configs.parser_config import ParserConfig
    read = lambda: len(parse_trace_file(str(path))[1])
else:
    sys.path.insert(0, sys.argv[3])
    from xplane_protobuf import read_all
    read = lambda: read_all(path)
def peak():
    status = Path("/proc/self/status").read_text()  # getrusage would count what the process was before it began
    return int(status.split("VmHWM:")[1].split()[0]) * 1024
before, started = peak(), time.process_time()
found = read()
cpu_s = time.process_time() - started
print(json.dumps({"cpu_s": cpu_s, "peak": peak() - before, "found": found if isinstance(found, int) else None}))
"""


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    arguments.add_argument("--mb", type=int, nargs="+", default=[256, 1024], help="sizes of the traces; 4096 shows that cost stays linear")
    arguments.add_argument("--styles", nargs="+", default=["kineto", "stacks", "xplane", "kineto.gz"])
    arguments.add_argument("--readers", nargs="+", default=["ours", "summary", "json", "hta", "protobuf"])
    arguments.add_argument("--rounds", type=int, default=3)
    arguments.add_argument("--control-mb", type=int, default=256, help="the largest trace that the other readers get")
    arguments.add_argument("--traces", type=Path, default=Path(tempfile.gettempdir()) / "trainflash-bench-traces")
    arguments.add_argument("--fresh", action="store_true", help="forget what was measured")
    chosen = arguments.parse_args()
    chosen.traces.mkdir(parents=True, exist_ok=True)
    known = KeptResults(STATE, bool, fresh=chosen.fresh)
    for style in chosen.styles:
        for size in chosen.mb:
            for reader in chosen.readers:
                if not applies(reader, style) or (reader not in ("ours", "summary") and size > chosen.control_mb):
                    continue
                for number in range(chosen.rounds):
                    key = f"{style} {size} {reader} {number}"
                    if known.has(key):
                        continue
                    found = measure(reader, trace(chosen.traces, style, size))
                    if found is None:
                        break
                    known.put(key, found)
                    print(key, found, file=sys.stderr, flush=True)
    show(known.rows)


def applies(reader: str, style: str) -> bool:
    if style == "xplane":
        return reader in ("ours", "summary", "protobuf")
    return reader != "protobuf" and not (style.endswith(".gz") and reader == "json")


def measure(reader: str, path: Path) -> dict | None:
    """One reading in a process of its own; None where this reader is not to be had here."""
    python = interpreter(reader)
    if python is None:
        return None
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run([python, "-c", READER, reader, str(path), str(HERE)], capture_output=True, text=True, env=environment)
    if done.returncode:
        print(f"{reader} on {path.name}: {done.stderr.strip().splitlines()[-1]}", file=sys.stderr)
        return None
    found = json.loads(done.stdout.splitlines()[-1])
    raw = raw_bytes(path)
    return {**found, "mb_per_cpu_s": raw / MB / found["cpu_s"], "peak_share": found["peak"] / raw}


def interpreter(reader: str) -> str | None:
    """The Python that has the reader; those of others get an environment of their own."""
    package = {"hta": HTA, "protobuf": "protobuf>=6"}.get(reader)
    if package is None:
        return sys.executable
    place = PEERS / f"profile-{reader}"
    python = place / "bin" / "python"
    if not (place / ".ready").is_file():
        made = subprocess.run([sys.executable, "-m", "venv", place]).returncode == 0
        if not made or subprocess.run([python, "-m", "pip", "install", "-q", package], stdout=sys.stderr).returncode:
            return None
        (place / ".ready").touch()
    return str(python)


def raw_bytes(path: Path) -> int:
    return int(path.with_name(path.name + ".raw").read_text()) if path.suffix == ".gz" else path.stat().st_size


def show(known: dict) -> None:
    best: dict[tuple[str, ...], tuple[float, float, int]] = {}
    for key, found in known.items():
        style, size, reader, _ = key.split(" ")
        speed, peak, rounds = best.get((style, size, reader), (0.0, 9e9, 0))
        best[style, size, reader] = (max(speed, found["mb_per_cpu_s"]), min(peak, found["peak_share"]), rounds + 1)
    print("| trace | raw MB | reader | MB per CPU-s, best | peak memory, of raw size | rounds |\n|---|---|---|---|---|---|")
    for (style, size, reader), (speed, peak, rounds) in sorted(best.items(), key=lambda item: (item[0][0], int(item[0][1]), item[0][2])):
        print(f"| {style} | {size} | {reader} | {speed:.0f} | {peak:.2f} | {rounds} |")


# Traces


def trace(directory: Path, style: str, size_mb: int) -> Path:
    """The synthetic trace, made once."""
    if style == "xplane":
        return made(directory / f"xplane-{size_mb}.xplane.pb", lambda path: write_xplane(path, size_mb * MB))
    plain = style.removesuffix(".gz")
    path = made(directory / f"{plain}-{size_mb}.json", lambda path: write_kineto(path, size_mb * MB, plain == "stacks"))
    return path if plain == style else made(path.with_name(path.name + ".gz"), lambda packed: pack(path, packed))


def made(path: Path, write_to) -> Path:
    if not path.is_file():
        beside = path.with_name(f".{path.name}.tmp")
        write_to(beside)
        beside.replace(path)
    return path


def pack(plain: Path, packed: Path) -> None:
    with plain.open("rb") as text, gzip.open(packed, "wb", 1) as out:
        while chunk := text.read(1 << 22):
            out.write(chunk)
    name = packed.name.removeprefix(".").removesuffix(".tmp")
    packed.with_name(name + ".raw").write_text(str(plain.stat().st_size))


def write_kineto(path: Path, size: int, stacks: bool) -> None:
    head = '{\n  "schemaVersion": 1,\n  "deviceProperties": [\n    {"id": 0, "name": "NVIDIA A100"}\n  ],\n  "traceEvents": [\n'
    with path.open("w") as out:
        written = out.write(head)
        for number, text in enumerate(launches(stacks)):
            written += out.write(text if number else text.removeprefix(",\n"))
            if written >= size:
                break
        out.write('\n  ],\n  "traceName": "synthetic.pt.trace.json"\n}\n')


def launches(stacks: bool) -> Iterator[str]:
    """The events of one kernel's launch after the other, with a step marker after each 400."""
    rng = random.Random(7)
    ops = [f"aten::op_{n}" for n in range(60)] + [f"autograd::engine::evaluate_function: Op{n}Backward0" for n in range(30)]
    kernels = [
        f"void at::native::vectorized_elementwise_kernel<4, at::native::Functor{n}<float>, at::detail::Array<char*, 2>>" for n in range(80)
    ]
    frames = [f"/opt/site-packages/torch/nn/modules/module_{n}.py(1553): _call_impl" for n in range(300)]
    time, number, step, began = 4458676522690.655, 0, 0, 4458676522690.655
    while True:
        number += 1
        parts = []
        for level in range(4):
            inner = 4 * number + level
            args = f'"External id": {inner},{SHAPES if stacks else ""}"Record function id": {inner}, '
            args += f'"Sequence number": {number}, "Fwd thread id": 1, "Ev Idx": {inner}'
            parts.append(complete("cpu_op", ops[rng.randrange(len(ops))], HOST, time + level, 20.5 - 2 * level, args))
            if stacks:
                args = f'"Python parent id": {number}, "Python id": {inner}, "Ev Idx": {inner}'
                parts.append(complete("python_function", frames[rng.randrange(300)], HOST, time + level, 20.7 - 2 * level, args))
        for call, name in enumerate(("cudaLaunchKernel", "cudaStreamIsCapturing")):
            args = f'"External id": {4 * number}, "cbid": 211, "correlation": {2 * number + call}'
            parts.append(complete("cuda_runtime", name, HOST, time + 5 + 4 * call, 3.25, args))
        parts.append(arrow("s", 2 * number, HOST, time + 5))
        args = (
            f'"External id": {4 * number},\n      "queued": 0, "device": 0, "context": 1,\n      "stream": 7, "correlation": {2 * number},'
            f'\n      "registers per thread": 32, "shared memory": 0,\n      "blocks per SM": 1.185185, "warps per SM": 9.481481,\n      '
            f'"grid": [{rng.randrange(1, 50)}, 1, 1], "block": [128, 1, 1],\n      "est. achieved occupancy %": 31'
        )
        parts.append(complete("kernel", kernels[rng.randrange(80)], DEVICE, time + 12, 5 + rng.randrange(9000) / 1000, args))
        parts.append(arrow("f", 2 * number, DEVICE, time + 12))
        time += 25.125
        if number % 400 == 0:
            parts.append(
                complete("user_annotation", f"ProfilerStep#{step}", HOST, began, time - began - 0.1, '"External id": 0, "Ev Idx": 0')
            )
            step, began = step + 1, time
        yield "".join(parts)


HOST, DEVICE = '"pid": 2910249, "tid": 2919752', '"pid": 0, "tid": 7'
SHAPES = '\n      "Input Dims": [[64, 512, 14, 14], [512], []], "Input type": ["float", "float", "Scalar"],'


def complete(category: str, name: str, place: str, time: float, length: float, args: str) -> str:
    head = f',\n  {{\n    "ph": "X", "cat": "{category}", "name": "{name}", {place},\n    '
    return f'{head}"ts": {time:.3f}, "dur": {length:.3f},\n    "args": {{\n      {args}\n    }}\n  }}'


def arrow(phase: str, number: int, place: str, time: float) -> str:
    rest = '"cat": "ac2g", "name": "ac2g", "bp": "e"\n  }'
    return f',\n  {{\n    "ph": "{phase}", "id": {number}, {place}, "ts": {time:.3f},\n    {rest}'


def varint(value: int) -> bytes:
    out = bytearray()
    while value >= 128:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def field(number: int, value: int | bytes) -> bytes:
    if isinstance(value, bytes):
        return varint(number << 3 | 2) + varint(len(value)) + value
    return varint(number << 3) + varint(value)


def write_xplane(path: Path, size: int) -> None:
    """One GPU plane with one stream; each event has a correlation, three references and a number."""
    stats = {1: "correlation_id", 2: "tf_op", 3: "hlo_op", 4: "hlo_module", 5: "program_id"}
    texts = {100 + n: f"jit(train_step)/transformer/layer_{n % 12}/dot_general_{n}" for n in range(400)}
    rng, parts, total, number, offset = random.Random(7), [], 0, 0, 0
    while total < size:
        number += 1
        op = 100 + rng.randrange(400)
        values = (field(3, number), field(7, op), field(7, op), field(7, 100), field(4, 3))
        packed = b"".join(field(4, field(1, stat) + value) for stat, value in enumerate(values, 1))
        event = field(1, 1 + rng.randrange(200)) + field(2, offset) + field(3, 4_000_000 + rng.randrange(5_000_000)) + packed
        parts.append(field(4, event))
        total += len(parts[-1])
        offset += 10_000_000
    line = field(1, 13) + field(2, b"Stream #13(Compute)") + field(3, 711141) + b"".join(parts)
    del parts
    names = b"".join(field(4, field(1, n) + field(2, field(1, n) + field(2, f"fusion_{n}".encode()))) for n in range(1, 201))
    known = b"".join(field(5, field(1, n) + field(2, field(1, n) + field(2, text.encode()))) for n, text in {**stats, **texts}.items())
    path.write_bytes(field(1, field(2, b"/device:GPU:0") + field(3, line) + names + known))


if __name__ == "__main__":
    main()
