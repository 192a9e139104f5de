"""How long `sandbox create` takes beside a plain `git worktree add` of the same project on the same disk: `make bench-sandbox`.

Both are done in turns, with the order changed each round, so that a busy machine or disk disturbs both alike; the result is the median
of the ratios of each round, with the processor time beside it, which other programs disturb least. A sandbox has two checkouts of the
project, so the ratio to two worktrees stands beside the ratio to one.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from trainflash import sandbox

MOST = 1.3  # times one plain worktree: what the sandbox is allowed to cost


def make_project(root: Path, files: int) -> None:
    """A committed project of small source files, 20 to a folder."""
    chance = random.Random(1)
    for number in range(files):
        path = root / f"package{number % 40}" / f"part{number // 40 % 25}" / f"file{number}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(f"value_{line} = {chance.random()}\n" for line in range(chance.randrange(5, 120))))
    for words in (["init", "-q"], ["add", "."], ["-c", "user.name=o", "-c", "user.email=o@localhost", "commit", "-q", "-m", "first"]):
        subprocess.run(["git", *words], cwd=root, check=True)


def cpu_s() -> float:
    """Processor seconds of this process and those that it waited for."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def timed(do: Callable[[], object]) -> tuple[float, float, object]:
    """Wall seconds, processor seconds and what came of it; the disk is idle when it starts."""
    os.sync()
    cpu, begun = cpu_s(), time.perf_counter()
    made = do()
    return time.perf_counter() - begun, cpu_s() - cpu, made


def one_round(root: Path, base: Path, sandbox_first: bool) -> dict[str, float]:
    found: dict[str, float] = {}

    def ours() -> None:
        found["sandbox_s"], found["sandbox_cpu_s"], made = timed(lambda: sandbox.create(root, base / "boxes"))
        sandbox.discard(made, everything=True)

    def plain() -> None:
        place = base / "worktree"
        command = ["git", "-C", str(root), "worktree", "add", "-q", "--detach", str(place)]
        found["worktree_s"], found["worktree_cpu_s"], _ = timed(lambda: subprocess.run(command, check=True))
        subprocess.run(["git", "-C", str(root), "worktree", "remove", "--force", str(place)], check=True)

    for do in (ours, plain) if sandbox_first else (plain, ours):
        do()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--files", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--place", type=Path, default=None, help="a folder on the disk to measure")
    given = parser.parse_args()
    base = Path(tempfile.mkdtemp(prefix="bench-sandbox-", dir=given.place))
    os.environ["XDG_STATE_HOME"] = str(base / "state")
    try:
        make_project(base / "project", given.files)
        one_round(base / "project", base, True)  # fills the caches
        rounds = [one_round(base / "project", base, number % 2 == 0) for number in range(given.rounds)]
    finally:
        shutil.rmtree(base)
    ratio = statistics.median(one["sandbox_s"] / one["worktree_s"] for one in rounds)
    cpu_ratio = statistics.median(one["sandbox_cpu_s"] / one["worktree_cpu_s"] for one in rounds)
    result = {"files": given.files, "ratio": ratio, "ratio_to_two": ratio / 2, "cpu_ratio": cpu_ratio, "allowed": MOST, "rounds": rounds}
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
