"""How long a job of thousands of ranks takes to be diagnosed, and in how much memory: `make bench-ranks`.

Event files are written as the probe writes them (12 words a step), for ranks of one job that reduce gradients once a step; one rank is slow
in backward, and the first finding has to name it. Each size is read, summarized and diagnosed in a process of its own.
"""

from __future__ import annotations

import argparse
import importlib
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
MS = 1_000_000
BASE_NS = 1_000 * MS
TARGETS = {"seconds": 60.0, "gigabytes": 2.0}  # for 10,000 ranks and 1,000 steps
DATA, FWD, BWD, REDUCE, OPT = 2.0, 3.0, 8.0, 1.0, 1.0  # ms of a step
LATE = 3.0  # ms of backward, on the slow rank

READER = """
import json, resource, sys, time
from pathlib import Path
from trainflash import trace
from trainflash.diagnosis import diagnose
from trainflash.schema import dump_json
from trainflash.summary import summarize
began, cpu = time.perf_counter(), time.process_time()
summary = summarize(trace.load(Path(sys.argv[1])), run="run", project="project")
found = diagnose(summary)
out = {"wall_s": time.perf_counter() - began, "cpu_s": time.process_time() - cpu, "first": found.findings[0].summary}
out |= {"json_per_rank": len(dump_json(summary)) / summary.ranks, "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024}
print(json.dumps(out))
"""


def write(directory: Path, ranks: int, steps: int, slow: int) -> float:
    """Event files of all ranks; bytes a rank and step."""
    sys.path.append(str(ROOT / "src" / "trainflash" / "probe"))
    codes = importlib.import_module("trainflash_probe.codes")
    rng = np.random.default_rng(7)
    names = ("data_of", "/Data", "Fwd", "/Fwd", "Bwd", "/Bwd", "reduced", "", "", "Opt", "/Opt", "step")
    numbers = np.array([codes.NAMES[name.strip("/")] + name.startswith("/") if name else 3 for name in names])
    for first in range(0, ranks, 500):
        count = min(500, ranks - first)
        ready = BWD + np.abs(rng.normal(0, 0.2, (count, steps)))
        if first <= slow < first + count:
            ready[slow - first] += LATE
        for index in range(count):
            _write_rank(directory, codes, first + index, ranks, ready[index], numbers)
    return sum(path.stat().st_size for path in directory.iterdir()) / ranks / steps


def _write_rank(directory: Path, codes, rank: int, ranks: int, ready: np.ndarray, numbers: np.ndarray) -> None:
    steps, together = len(ready), BWD + LATE + 1.0 + REDUCE
    length = DATA + FWD + together + OPT
    at = 1 + length * np.arange(steps)
    begin = at + DATA + FWD
    done = begin + together
    marks = [at, at + DATA, at + DATA, begin, begin, done, done, None, None, done, done + OPT, done + OPT]
    words = np.empty((steps, len(numbers)), np.uint64)
    for column, (mark, number) in enumerate(zip(marks, numbers, strict=True)):
        value = (together - ready) * MS if column == 7 else np.full(steps, 1000.0) if mark is None else mark * MS
        words[:, column] = (value.astype(np.uint64) << np.uint64(12)) | np.uint64(number)
    head = np.array([codes.MAGIC, steps, 0, 0, 0, 0, 0, 0], np.uint64)
    (directory / f"events-{rank}.bin").write_bytes(head.tobytes() + words.tobytes())
    joined = {"k": "rank", "rank": rank, "world_size": ranks, "backend": "gloo"}
    (directory / f"facts-{rank}.jsonl").write_text(json.dumps(joined) + "\n")
    document = {
        "schema": codes.VERSION, "pid": 100 + rank, "ppid": 1, "role": "main", "rank": rank, "world_size": ranks, "argv": ["train.py"],
        "python": "3.11.7", "torch": "2.13.0", "start_ns": BASE_NS - 500 * MS, "base_ns": BASE_NS, "own": ["/project"],
        "host": f"node{rank // 8}", "codes": codes.NAMES, "phases": list(codes.PHASES), "events": f"events-{rank}.bin",
        "facts": f"facts-{rank}.jsonl",
    }  # fmt: skip
    (directory / f"process-{rank}.json").write_text(json.dumps(document))
    if rank == 0:
        (directory / "notice.jsonl").write_text(json.dumps({"notice": "torch 2.13.0"}) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, nargs="+", default=[1000, 3000, 10_000])
    parser.add_argument("--steps", type=int, default=1000)
    arguments = parser.parse_args()
    print(
        "| ranks | steps | bytes a rank and step | summary, bytes a rank | wall s | CPU s | peak GB | slow rank named |\n"
        + "|---" * 8
        + "|"
    )
    for ranks in arguments.ranks:
        with tempfile.TemporaryDirectory() as folder:
            slow = ranks * 2 // 5 + 1
            size = write(Path(folder), ranks, arguments.steps, slow)
            done = subprocess.run([sys.executable, "-c", READER, folder], capture_output=True, text=True, check=True)
        found = json.loads(done.stdout)
        named = f"rank {slow} " in found["first"] and "Bwd" in found["first"]
        figures = f"{size:.0f} | {found['json_per_rank']:.0f} | {found['wall_s']:.1f} | {found['cpu_s']:.1f} | {found['peak'] / 1e9:.2f}"
        print(f"| {ranks:,} | {arguments.steps:,} | {figures} | {'yes' if named else 'NO: ' + found['first']} |", flush=True)
    print(f"bars for 10,000 ranks and 1,000 steps: {TARGETS['seconds']:.0f} s, {TARGETS['gigabytes']:.0f} GB, 300 bytes, 30 KB")


if __name__ == "__main__":
    main()
