"""How fast traces are read and with how much memory, beside other readers: `make bench-profile`.

The traces are those of `profile_shapes`, synthetic and real. Each measurement is a process of its own: CPU seconds (user and system), and
peak memory beyond that of the imports, as a multiple of the raw size. Of several rounds, in turns with the other readers, the best counts:
other work on the machine only ever adds. Beside ours: `json.load`, HolisticTraceAnalysis in an environment of its own, and for XPlane the
protobuf library reading every stat. What was measured stays in `results/profile_decode.json`, and is not measured again.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import profile_shapes
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
    from trainflash.profile.analysis.columns import ANALYSED
    from trainflash.profile.sources import Request, load
    named = {"xplane_file" if path.name.endswith(".pb") else "trace_file": (path,), "columns": ANALYSED}
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
    arguments.add_argument("--styles", nargs="+", default=[*profile_shapes.SHAPES, "kineto.gz"])
    arguments.add_argument("--readers", nargs="+", default=["ours", "summary", "json", "hta", "protobuf"])
    arguments.add_argument("--rounds", type=int, default=3)
    arguments.add_argument("--control-mb", type=int, default=256, help="the largest trace that the other readers get")
    arguments.add_argument("--traces", type=Path, default=Path(tempfile.gettempdir()) / "trainflash-bench-traces")
    arguments.add_argument("--fresh", action="store_true", help="forget what was measured")
    chosen = arguments.parse_args()
    chosen.traces.mkdir(parents=True, exist_ok=True)
    known = KeptResults(STATE, bool, fresh=chosen.fresh)
    for number in range(chosen.rounds):
        for style in chosen.styles:
            for size in chosen.mb:
                for reader in chosen.readers:
                    key = f"{style} {size} {reader} {number}"
                    wanted = reader in ("ours", "summary") or size <= chosen.control_mb
                    if known.has(key) or not wanted or not applies(reader, style):
                        continue
                    path = profile_shapes.make(chosen.traces, style, size)
                    found = None if path is None else measure(reader, path)
                    if found is not None:
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
    raw = profile_shapes.raw_bytes(path)
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


def show(known: dict) -> None:
    best: dict[tuple[str, ...], tuple[float, float, int]] = {}
    for key, found in known.items():
        style, size, reader, _ = key.split(" ")
        speed, peak, rounds = best.get((style, size, reader), (0.0, 9e9, 0))
        best[style, size, reader] = (max(speed, found["mb_per_cpu_s"]), min(peak, found["peak_share"]), rounds + 1)
    print("| trace | raw MB | reader | MB per CPU-s, best | peak memory, of raw size | rounds |\n|---|---|---|---|---|---|")
    for (style, size, reader), (speed, peak, rounds) in sorted(best.items(), key=lambda item: (item[0][0], int(item[0][1]), item[0][2])):
        print(f"| {style} | {size} | {reader} | {speed:.0f} | {peak:.2f} | {rounds} |")


if __name__ == "__main__":
    main()
