"""One process of a benchmark that torchrun starts: `python -m trainflash.gate.measure.rank REQUEST.json`."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from trainflash.errors import TrainFlashError
from trainflash.gate.config import BenchConfig
from trainflash.gate.measure.bench import BenchTrain
from trainflash.schema import GateEnv, from_plain


def main(path: Path) -> int:
    """Measure what the request asks for; rank 0 writes the result, or why there is none."""
    asked = json.loads(path.read_text())
    first = os.environ.get("RANK", "0") == "0"
    bench = BenchTrain(
        BenchConfig(**asked["config"]),
        asked["spec"],
        profile_dir=asked["profile_dir"],
        env=from_plain(GateEnv, asked["env"], str(path)),
    )
    try:
        bench.run()
    except TrainFlashError as problem:
        if first:
            path.with_name("problem.json").write_text(json.dumps({"message": problem.message}))
        print(problem.message, file=sys.stderr)
        return problem.exit_code
    if first:
        bench.save(asked["out"])
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
