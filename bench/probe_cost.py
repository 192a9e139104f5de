"""What the probe costs, beside an A/A control and a peer: `make bench-probe`.

A tiny training loop runs in fresh processes, in turns: bare, bare again (the control), under the probe as timed runs carry it, under the
probe as a diagnosis carries it, and under TraceML. Per process: CPU time of a step (of the least disturbed tenth, where a busy machine has
least say; the median; the mean), CPU time beyond the steps and peak memory. A cost is the median over rounds of the difference to the
bare run of the same round: a machine's speed drifts between rounds.

Scenes: `warm` (the bare loop), `cold` (a sweep over memory between the steps throws the hooks out of the processor's caches), `deep` (a
thousand submodules), `workers`, `print` (a log line each step), `workers print deep` together, and `ranks` (two of them over gloo under
torchrun; the first one's steps, the peer left out). The worst one is named.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PROBE = ROOT / "src" / "trainflash" / "probe"
RESULTS = Path(__file__).resolve().parent / "results"
PEERS = RESULTS / "peers"
TRACEML = "traceml-ai==0.5.0"
MODES = ("bare", "control", "timing", "diagnose", "traceml")
SCENES = {
    "warm": ["--depth", "10"],
    "cold": ["--depth", "10", "--sweep"],
    "deep": ["--depth", "1000"],
    "workers": ["--depth", "10", "--workers", "2"],
    "print": ["--depth", "10", "--print"],
    "workers print deep": ["--depth", "1000", "--workers", "2", "--print"],
    "ranks": ["--depth", "10", "--ranks"],
}
PROGRAM = """
import argparse, contextlib, json, resource, sys, time
started = time.process_time_ns()
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int)
parser.add_argument("--depth", type=int)
parser.add_argument("--workers", type=int, default=0)
parser.add_argument("--sweep", action="store_true")
parser.add_argument("--print", action="store_true")
parser.add_argument("--ranks", action="store_true")
parser.add_argument("--out")
given = parser.parse_args()
TRACEML = False
if TRACEML:
    import traceml_ai
    traceml_ai.init(mode="auto")
torch.manual_seed(0)
torch.set_num_threads(1)
data = TensorDataset(torch.randn(8 * given.steps, 16), torch.randn(8 * given.steps, 1))
body = nn.Sequential(*[nn.Identity() for _ in range(given.depth)])
model = nn.Sequential(nn.Linear(16, 16), body, nn.ReLU(), nn.Linear(16, 1))
if given.ranks:
    torch.distributed.init_process_group("gloo")
    model = nn.parallel.DistributedDataParallel(model)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
swept = torch.zeros(4 << 20) if given.sweep else None
times, last = [], time.thread_time_ns()
for x, y in DataLoader(data, batch_size=8, num_workers=given.workers):
    with traceml_ai.trace_step(model) if TRACEML else contextlib.nullcontext():
        loss = nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if given.print:
        print("loss", loss.item())
    now = time.thread_time_ns()
    times.append(now - last)
    if swept is not None:
        swept.add_(1)
        now = time.thread_time_ns()
    last = now
times = sorted(times[len(times) // 10 :])
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
if given.ranks:
    other = torch.distributed.get_rank() > 0
    torch.distributed.barrier()
    del model, loss, optimizer
    torch.distributed.destroy_process_group()
    if other:
        sys.exit()
with open(given.out, "w") as out:
    found = {"quiet_us": times[len(times) // 10], "step_us": times[len(times) // 2], "mean_us": sum(times) / len(times)}
    json.dump({**{name: ns / 1000 for name, ns in found.items()}, "peak_mb": peak}, out)
"""


@dataclass(frozen=True)
class Cost:
    """One process: CPU µs of a little disturbed, a median and a mean step, CPU seconds beyond the steps, peak MB of memory."""

    quiet_us: float
    step_us: float
    mean_us: float
    beyond_s: float
    peak_mb: float


def measure(mode: str, scene: str, steps: int) -> Cost:
    """One fresh process; the whole command's CPU time counts, helper processes of a peer too."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    with tempfile.TemporaryDirectory() as folder:
        source = PROGRAM.replace("TRACEML = False", "TRACEML = True") if mode == "traceml" else PROGRAM
        Path(folder, "train.py").write_text(source)
        arguments = ["--steps", str(steps), *SCENES[scene], "--out", f"{folder}/out.json"]
        launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"] if scene == "ranks" else []
        command = [sys.executable, *launcher, "train.py", *arguments]
        if mode == "traceml":
            environment["PYTHONPATH"] = str(PEERS / "traceml")
            command = [sys.executable, "-m", "traceml_ai.launcher.cli", "run", "train.py", "--args", *arguments]
        elif mode in ("timing", "diagnose"):
            Path(folder, "run").mkdir()
            environment |= {
                "PYTHONPATH": str(PROBE), "TRAINFLASH_RUN": f"{folder}/run", "TRAINFLASH_OWN": folder, "TRAINFLASH_CAPTURE": mode,
            }  # fmt: skip
        before = os.times()
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=600)
        after = os.times()
        if scene == "ranks" and "terminate called without" in done.stderr:  # threads of gloo's own, as the interpreter ends; bare runs, too
            return measure(mode, scene, steps)
        if done.returncode or not Path(folder, "out.json").exists():
            raise SystemExit(f"{mode} failed: {done.stderr[-2000:] or done.stdout[-2000:]}")
        if mode in ("timing", "diagnose") and not list(Path(folder, "run").glob("events-*.bin")):
            raise SystemExit("the probe did not enter the program")
        seen = json.loads(Path(folder, "out.json").read_text())
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return Cost(seen["quiet_us"], seen["step_us"], seen["mean_us"], cpu - steps * seen["mean_us"] / 1e6, seen["peak_mb"])


def python_ms(probed: bool) -> float:
    """CPU milliseconds of a Python that imports a little of the standard library and never torch."""
    environment = {**os.environ, **({"PYTHONPATH": str(PROBE), "TRAINFLASH_RUN": tempfile.gettempdir()} if probed else {})}
    before = os.times()
    subprocess.run([sys.executable, "-c", "import json, argparse, subprocess"], env=environment, check=True)
    after = os.times()
    return 1000 * (after.children_user + after.children_system - before.children_user - before.children_system)


def has_peer() -> bool:
    """Install the peer into a folder of its own; False where it cannot be had."""
    if not (PEERS / "traceml").is_dir():
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(PEERS / "traceml"), TRACEML]
        return subprocess.run(command, capture_output=True).returncode == 0
    return True


def spread(values: list[float]) -> str:
    """Median, and smallest to largest."""
    return f"{statistics.median(values):6.1f} ({min(values):.1f} to {max(values):.1f})"


def scene_rows(scene: str, rounds: int, steps: int, modes: list[str], kept: dict) -> dict[str, list[dict]]:
    """All rounds of one scene; those that `kept` has are not run again."""
    done = kept.setdefault(scene, [])
    while len(done) < rounds:
        print(f"\r{scene}: round {len(done) + 1} of {rounds}    ", end="", file=sys.stderr, flush=True)
        turn = {mode: vars(measure("bare" if mode == "control" else mode, scene, steps)) for mode in modes}
        done.append(
            {**turn, "python": [min(python_ms(probed) for _ in range(10)) for probed in (False, True)] if scene == "warm" else None}
        )
        RESULTS.mkdir(exist_ok=True)
        (RESULTS / "probe_cost.json").write_text(json.dumps(kept))
    print(file=sys.stderr)
    return done


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--scenes", nargs="+", choices=list(SCENES), default=list(SCENES))
    parser.add_argument("--fresh", action="store_true", help="measure again what an interrupted bench has measured")
    arguments = parser.parse_args()
    kept_file = RESULTS / "probe_cost.json"
    kept = json.loads(kept_file.read_text()) if kept_file.exists() and not arguments.fresh else {}
    peer = has_peer()
    print("added to the bare loop: median over rounds (smallest to largest)\n")
    print(
        f"{'scene':20} {'what':10} {'µs a quiet step':>22} {'µs a median step':>24} {'µs a mean step':>24} {'s CPU beyond':>21} {'MB':>20}"
    )
    worst = {"timing": ("", 0.0), "diagnose": ("", 0.0)}
    for scene in arguments.scenes:
        modes = [mode for mode in MODES if mode != "traceml" or (peer and scene != "ranks")]
        rounds = scene_rows(scene, arguments.rounds, arguments.steps, modes, kept)
        bare = [statistics.median(turn["bare"][key] for turn in rounds) for key in ("quiet_us", "step_us", "beyond_s")]
        print(f"{scene:20} {'bare':10} {bare[0]:.1f} µs a quiet step, {bare[1]:.1f} a median one, {bare[2]:.2f} s CPU beyond")
        for mode in modes[1:]:
            keys = ("quiet_us", "step_us", "mean_us", "beyond_s", "peak_mb")
            columns = [spread([turn[mode][key] - turn["bare"][key] for turn in rounds]) for key in keys]
            print(f"{'':20} {mode:10} " + "  ".join(columns))
            if mode in worst:
                added = statistics.median(turn[mode]["quiet_us"] - turn["bare"]["quiet_us"] for turn in rounds)
                worst[mode] = max(worst[mode], (scene, added), key=lambda found: found[1])
    if "warm" in arguments.scenes:
        added = [turn["python"][1] - turn["python"][0] for turn in kept["warm"]]
        print(f"\na Python that never imports torch: {spread(added)} ms CPU")
    for mode, (scene, added) in worst.items():
        print(f"worst scene of {mode}: {scene}, {added:.1f} µs a quiet step")


if __name__ == "__main__":
    main()
