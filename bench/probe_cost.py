"""What the probe costs a step, in microseconds, with an A/A control beside it: `make bench-probe`.

A tiny training loop runs in fresh processes, in turns: bare, bare again (the control) and under the probe as timed runs carry it. The
figure of a process is the median CPU time of a step; the cost is the median over rounds of the difference to the bare run of that round.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

PROBE = Path(__file__).resolve().parents[1] / "src" / "trainflash" / "probe"
PROGRAM = """
import json, sys, time
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
torch.set_num_threads(1)
steps, depth = int(sys.argv[1]), int(sys.argv[2])
data = TensorDataset(torch.randn(8 * steps, 16), torch.randn(8 * steps, 1))
body = nn.Sequential(*[nn.Identity() for _ in range(depth)])
model = nn.Sequential(nn.Linear(16, 16), body, nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
times, last = [], time.thread_time_ns()
for x, y in DataLoader(data, batch_size=8):
    loss = nn.functional.mse_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    now = time.thread_time_ns()
    times.append(now - last)
    last = now
times = sorted(times[200:])
print(json.dumps(times[len(times) // 2] / 1000))
"""


def step_us(mode: str, steps: int, depth: int) -> float:
    """Median CPU microseconds of a step of one fresh process; `mode` is bare, timing or diagnose."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "train.py").write_text(PROGRAM)
        if mode != "bare":
            Path(folder, "run").mkdir()
            environment |= {
                "PYTHONPATH": str(PROBE), "TRAINFLASH_RUN": f"{folder}/run", "TRAINFLASH_OWN": folder, "TRAINFLASH_CAPTURE": mode,
            }  # fmt: skip
        done = subprocess.run(
            [sys.executable, "train.py", str(steps), str(depth)], cwd=folder, env=environment, capture_output=True, text=True, check=True
        )
        if mode != "bare" and not list(Path(folder, "run").glob("events-*.bin")):
            raise SystemExit("the probe did not enter the program")
        return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--steps", type=int, default=3000)
    parser.add_argument("--submodules", type=int, nargs="+", default=[10, 1000])
    arguments = parser.parse_args()
    for depth in arguments.submodules:
        differences: dict[str, list[float]] = {"control": [], "timing": [], "diagnose": []}
        bare = []
        for done in range(arguments.rounds):
            print(f"\r{depth} submodules: round {done + 1} of {arguments.rounds}", end="", file=sys.stderr, flush=True)
            first = step_us("bare", arguments.steps, depth)
            bare.append(first)
            for name, mode in (("control", "bare"), ("timing", "timing"), ("diagnose", "diagnose")):
                differences[name].append(step_us(mode, arguments.steps, depth) - first)
        print(file=sys.stderr)
        row = {name: [round(f(values), 1) for f in (min, statistics.median, max)] for name, values in differences.items()}
        print(json.dumps({"submodules": depth, "bare_us": round(statistics.median(bare), 1), "added_us_min_median_max": row}))


if __name__ == "__main__":
    main()
