"""TraceML on the same planted programs, beside ours: does its primary diagnosis name the class of the planted cause?

TraceML sees a step only where the program says so; its two lines are put into a copy here: `traceml_ai.init(mode="auto")` at the top, and
`with traceml_ai.trace_step(model)` around the body of the innermost loop or function that runs backward. Commands that are no
`python SCRIPT` or `python -m PACKAGE` (launchers, shell scripts) and programs without a backward of their own (trainers) are counted
as not tried. Its answer is a class, never a kind or a line; it counts as right when the truth lies in that class, which is generous.

    python bench/planted/peer.py [--half open|kept|all] [--only NAME] [--fresh]
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import libcst as cst
from programs import HERE, Program, copy_of, environment, programs

sys.path.append(str(HERE.parent))

from kept_results import KeptResults

PEER = HERE.parent / "results" / "peers" / "traceml"
VERSION = "traceml-ai==0.5.0"
RESULTS = HERE.parent / "results" / "planted-traceml.json"
INPUT = {"input_cpu", "input_io", "input_tail", "collate", "worker_startup", "repeated_work", "padding"}
OUTSIDE = {"host_code", "logging", "checkpoint", "evaluation", "sync_point", "garbage_collection", "communication"}
COMPUTE = {
    "compute",
    "attention_kernel",
    "optimizer",
    "recompute",
    "recompilation",
    "shape_instability",
    "thread_oversubscription",
    "debug_api",
}
RIGHT = {
    "INPUT_BOUND": INPUT,
    "RESIDUAL_HEAVY": OUTSIDE,
    "COMPUTE_BOUND": COMPUTE | {"thread_oversubscription", "debug_api", "small_microbatch", "precision", "launch_overhead"},
    "BALANCED": {"compute"},
    "NORMAL": {"compute"},
    "INPUT_STRAGGLER": {"rank_straggler"},
    "COMPUTE_STRAGGLER": {"rank_straggler"},
    "STRAGGLER": {"rank_straggler"},
}
MODEL = '''
import gc
from torch import nn

_found = []


def model():
    """The largest module of the program, as its author would name it."""
    if not _found:
        modules = [each for each in gc.get_objects() if isinstance(each, nn.Module)]
        _found.append(max(modules, key=lambda each: sum(p.numel() for p in each.parameters()), default=nn.Identity()))
    return _found[0]
'''


class _RunsBackward(cst.CSTVisitor):
    def __init__(self) -> None:
        self.found = False

    def visit_Call(self, node: cst.Call) -> None:
        if isinstance(node.func, cst.Attribute) and node.func.attr.value == "backward":
            self.found = True


def runs_backward(node: cst.CSTNode) -> bool:
    visitor = _RunsBackward()
    node.visit(visitor)
    return visitor.found


class MarkSteps(cst.CSTTransformer):
    """Wraps the body of the innermost loop, else function, that runs backward."""

    def __init__(self) -> None:
        self.marked = 0

    def _wrap(self, original, updated):
        if not runs_backward(original.body) or _IsMarked.of(updated):
            return updated
        self.marked += 1
        item = cst.WithItem(cst.parse_expression("__import__('traceml_ai').trace_step(__import__('peer_model').model())"))
        return updated.with_changes(body=cst.IndentedBlock([cst.With([item], updated.body)]))

    def leave_For(self, original_node: cst.For, updated_node: cst.For) -> cst.For:
        return self._wrap(original_node, updated_node)

    def leave_While(self, original_node: cst.While, updated_node: cst.While) -> cst.While:
        return self._wrap(original_node, updated_node)

    def leave_FunctionDef(self, original_node: cst.FunctionDef, updated_node: cst.FunctionDef) -> cst.FunctionDef:
        return self._wrap(original_node, updated_node)


class _IsMarked(cst.CSTVisitor):
    def __init__(self) -> None:
        self.found = False

    def visit_Attribute(self, node: cst.Attribute) -> None:
        self.found |= node.attr.value == "trace_step"

    @classmethod
    def of(cls, node: cst.CSTNode) -> bool:
        visitor = cls()
        node.visit(visitor)
        return visitor.found


def mark(folder: Path) -> int:
    """Puts the marks into every file of the copy; how many there are."""
    (folder / "peer_model.py").write_text(MODEL)
    count = 0
    for path in folder.rglob("*.py"):
        if path.name != "peer_model.py":
            step = MarkSteps()
            path.write_text(cst.parse_module(path.read_text()).visit(step).code)
            count += step.marked
    return count


def script_of(program: Program, folder: Path) -> tuple[str, list[str]] | None:
    """The script that TraceML can start, and its arguments; a package gets a script of one line."""
    command = program.manifest["command"]
    if command[0] != "python" or "torch.distributed.run" in command:
        return None
    if command[1] != "-m":
        script, arguments = command[1], command[2:]
        text = f"import runpy\nrunpy.run_path({script!r}, run_name='__main__')\n"
    else:
        arguments = command[3:]
        text = f"import runpy\nrunpy.run_module({command[2]!r}, run_name='__main__', alter_sys=True)\n"
    start = "import os, sys\nsys.path.insert(0, os.getcwd())\nimport traceml_ai\ntraceml_ai.init(mode='auto')\n"
    (folder / "peer_start.py").write_text(start + text)
    return "peer_start.py", arguments


def diagnose(program: Program, limit_s: float) -> dict:
    """TraceML's primary diagnosis, or why there is none."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as base:
        folder = copy_of(program, Path(base))
        script = script_of(program, folder)
        if script is None:
            return {"findings": [], "untried": "no python script"}
        if not mark(folder):
            return {"findings": [], "untried": "no backward of its own"}
        command = [sys.executable, "-m", "traceml_ai.launcher.cli", "run", script[0], "--args", *script[1]]
        env = {k: v for k, v in os.environ.items() if not k.startswith("PLANTED_")} | environment()
        env["PYTHONPATH"] = os.pathsep.join([str(PEER), str(folder)])
        process = subprocess.Popen(command, cwd=folder, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)
        try:
            out = process.communicate(timeout=limit_s)[0].decode(errors="replace")
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            return {"error": f"no answer within {limit_s:.0f} s"}
        summaries = sorted(folder.glob("logs/*/final_summary.json"))
        if not summaries:
            return {"error": out[-800:]}
        found = json.loads(summaries[-1].read_text())["primary_diagnosis"]
        return {"findings": [{key: found.get(key) for key in ("kind", "severity", "summary")}]}


def outcome(program: Program, row: dict) -> str:
    if row.get("untried"):
        return "not tried"
    if not row.get("findings"):
        return "error"
    kind = row["findings"][0]["kind"]
    if kind in ("INSUFFICIENT_STEP_TIME_DATA", "NO_DATA", "INCOMPLETE_DATA"):
        return "no diagnosis"
    truths = {"compute"} if program.manifest["healthy"] else {program.manifest["kind"], *program.manifest["also_right"]}
    return "right" if truths & RIGHT.get(kind, set()) else "wrong"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--half", choices=["open", "kept", "all"], default="kept")
    parser.add_argument("--only", action="append")
    parser.add_argument("--fresh", action="store_true")
    parser.add_argument("--limit", type=float, default=240.0)
    args = parser.parse_args()
    if not PEER.is_dir():
        subprocess.run([sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", str(PEER), VERSION], check=True)
    store, counts = KeptResults(RESULTS, lambda row: "findings" in row, fresh=args.fresh), {}
    for program in programs(args.half, args.only):
        key = f"{program.half}/{program.name}"
        if not store.has(key):
            store.put(key, diagnose(program, args.limit))
        row = store.rows[key]
        said = row["findings"][0]["kind"] if row.get("findings") else row.get("untried") or row.get("error", "")[-100:]
        how = outcome(program, row)
        counts[how] = counts.get(how, 0) + 1
        print(f"{key}: {program.manifest['kind']} -> {said}: {how}", flush=True)
    print(", ".join(f"{how} {count}" for how, count in sorted(counts.items())))
    return 0


if __name__ == "__main__":
    sys.exit(main())
