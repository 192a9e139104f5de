"""What other tools' comparators say of two loss curves. Runs in an interpreter that has them, which need not have TrainFlash.

Standard input: a JSON list of [losses of the baseline, losses of the candidate], one loss an update; a NaN is the word "nan". Standard
output: {judge: [true where it lets the change pass, ...]}; a tool that is not installed is left out.
"""

import json
import math
import sys
import types


def profine():
    from profine.benchmarker.comparator import compare_payloads

    def passes(old, new):
        times = {"step_times_ms": [10.0] * 30}, {"step_times_ms": [5.0] * 30}
        verdict = compare_payloads({**times[0], "loss_values": old}, {**times[1], "loss_values": new})
        return verdict.correctness.passed

    return passes


def loadtune():
    from loadtune import experiment

    def passes(old, new):
        """Its check of the losses, which it makes for what changes numerics: so the change is said to be one."""
        experiment.run_trial_repeated = lambda *_, **__: {"losses": new[:5], "throughput": 2.0, "batch_size": 1}
        trial = types.SimpleNamespace(knobs=types.SimpleNamespace(compile=True, amp=False), result=None)
        baseline = {"losses": old[:5], "throughput": 1.0, "batch_size": 1}
        experiment.run_trials("", [trial], 5, 0, baseline_result=baseline)
        return not trial.result.get("error")

    return passes


def codeflash():
    from codeflash.verification.comparator import comparator

    return lambda old, new: bool(comparator(old, new))


JUDGES = {"profine 0.5.1": profine, "loadtune 0.3.0": loadtune, "codeflash 0.20.6": codeflash}


def main():
    curves = [[[math.nan if loss == "nan" else loss for loss in side] for side in pair] for pair in json.load(sys.stdin)]
    found = {}
    for name, make in JUDGES.items():
        try:
            passes = make()
        except ImportError as missing:
            print(f"{name}: {missing}", file=sys.stderr)
            continue
        found[name] = [passes(old, new) for old, new in curves]
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
