"""`python -m tools.bench.run --bench --eval` from a checkout: metrics.json and eval.json of the reference model, or of one's own.

Examples, beside that one: `--env --bench --workload bench_step.py:build --profile trace`, `--eval --model mymodel.py:build`.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from tools.bench import BenchConfig, BenchRunner

from trainflash.errors import Inconclusive, Rejected, TrainFlashError

FILES = {"env": "env.json", "bench": "metrics.json", "eval": "eval.json", "compare": ""}


def parsed(argv: list[str] | None) -> argparse.Namespace:
    """The options; without a mode there is nothing to do."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.bench.run", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    default = BenchConfig()
    parser.add_argument("--env", action="store_true", help="write env.json")
    parser.add_argument("--bench", action="store_true", help="write metrics.json")
    parser.add_argument("--eval", action="store_true", help="write eval.json")
    parser.add_argument("--compare", action="store_true", help="compare with the stored baselines of this machine profile")
    parser.add_argument("--out", type=Path, default=Path(), help="folder for the files; default: here")
    parser.add_argument("--workload", help="MODULE:FUNCTION or FILE.py:FUNCTION that builds a Workload; default: the reference model")
    parser.add_argument("--model", help="MODULE:FUNCTION or FILE.py:FUNCTION that gives a model; default: the reference model")
    parser.add_argument("--warmup-steps", type=int, default=default.warmup_steps)
    parser.add_argument("--measure-steps", type=int, default=default.measure_steps)
    parser.add_argument("--mode", choices=("e2e", "synthetic"), default=default.mode)
    parser.add_argument("--world-size", type=int, default=default.world_size)
    parser.add_argument("--profile", choices=("off", "trace", "tb"), default=default.profile, help="write traces to OUT/profile")
    parser.add_argument("--repeat", type=int, default=default.repeat)
    parser.add_argument("--peak-tflops", type=float)
    parser.add_argument("--mfu-estimator", choices=("6ND", "transformer_aware"), default=default.mfu_estimator)
    options = parser.parse_args(argv)
    if not (options.env or options.bench or options.eval or options.compare):
        parser.error("nothing to do: give --env, --bench, --eval or --compare")
    return options


def main(argv: list[str] | None = None) -> int:
    """Do what the options ask for; the last line of the output says in JSON what was written. 4: the comparison failed, 3: it is open."""
    options = parsed(argv)
    config = BenchConfig(
        options.warmup_steps, options.measure_steps, options.mode, options.world_size, options.profile, options.repeat,
        options.peak_tflops, options.mfu_estimator,
    )  # fmt: skip
    modes = [mode for mode in FILES if getattr(options, mode)]
    try:
        found = BenchRunner().run(modes, bench=config, workload=options.workload, model=options.model, out_dir=options.out)
    except TrainFlashError as problem:
        output = getattr(problem, "output", "")
        print(*filter(None, (output, problem.message, problem.mend)), sep="\n", file=sys.stderr)
        return problem.exit_code
    written: dict[str, str] = {mode: str(options.out / name) for mode, name in FILES.items() if mode in modes and name}
    result = found.get("compare", {}).get("result")
    print(json.dumps({**written, **({"result": result} if result else {})}))
    return {"fail": Rejected.exit_code, "inconclusive": Inconclusive.exit_code}.get(result, 0)


if __name__ == "__main__":
    sys.exit(main())
