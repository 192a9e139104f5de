"""Numbers in the output: what only an evaluation can have moved is told from times, rates, dates and memory."""

from __future__ import annotations

from pathlib import Path

import pytest
from training_records import record

from trainflash.fidelity import compare, printed
from trainflash.fidelity.reuse import Run


def run(folder: Path, name: str, text: str) -> Run:
    path = folder / f"{name}.log"
    path.write_text(text)
    return Run(record(), 1.0, path, None)


def judged(folder: Path, old: str, new: str, *, again: str | None = None, nudged: str | None = None, whole: bool = True):
    """The verdict, and which further runs of the baseline were asked for."""
    texts, asked = {"rerun": old if again is None else again, "nudged-bfloat16": nudged}, []

    def more(name: str) -> Run | None:
        asked.append(name)
        return None if texts[name] is None else run(folder, name, texts[name])

    found = compare(record(), record())
    return printed.judge(found, run(folder, "old", old), run(folder, "new", new), whole=whole, run=more), asked


def epochs(*values: str, words: str = "epoch {n} accuracy {value} lr 0.0100") -> str:
    return "".join(words.format(n=n, value=value) + "\n" for n, value in enumerate(values))


USUAL = epochs("0.7031", "0.8125", "0.9062")
NUDGED = epochs("0.7031", "0.8281", "0.9062")


def test_another_accuracy_after_the_same_training_is_another_evaluation(tmp_path):
    found, asked = judged(tmp_path, USUAL, epochs("0.7031", "0.9375", "0.9375"), nudged=NUDGED)
    assert (found.verdict, found.changed) == ("changed", ("evaluation",)) and asked == ["rerun", "nudged-bfloat16"]
    assert "accuracy 0.8125 → 0.9375" in found.reasons[0]


HONEST = {
    "the same": USUAL,
    "other words": epochs("0.1111", "0.2222", "0.3333", words="{n} acc={value}"),
    "rounding": epochs("0.7031", "0.8126", "0.9062"),
    "one line less": epochs("0.7031", "0.9999"),
    "whole numbers": epochs("703", "999", "906"),
    "two digits": epochs("0.70", "0.99", "0.91"),
}


@pytest.mark.parametrize("name", HONEST)
def test_what_rounding_or_another_log_moves_costs_no_further_run(tmp_path, name):
    old = {"whole numbers": epochs("703", "812", "906"), "two digits": epochs("0.70", "0.81", "0.91")}.get(name, USUAL)
    found, asked = judged(tmp_path, old, HONEST[name], nudged=NUDGED)
    assert (found.verdict, found.notes, asked) == ("same", (), [])


@pytest.mark.parametrize(
    "line",
    [
        "epoch 1 loss 0.123 time {}",
        "step 10 took {}s",
        "elapsed_time={} loss=0.123",
        '{{"epoch": 1, "loss": 0.123, "step_time_ms": {}}}',
        "loss 0.123 ({} it/s)",
        "throughput {} samples/s",
        "{} tokens / sec",
        "epochTime: {}",
        "peak memory {} MiB",
        "max_memory_allocated {}",
        "using {} GB",
        "eta {} h, loss 0.123",
        "[00:0{}, loss=0.123]",
        "2026-11-22 21:27:4{} loss 0.123",
        "\x1b[32mstep\x1b[0m 4 [{}ms]",
        "mfu {}%",
        "gpu_util {}",
    ],
)
def test_times_rates_dates_and_memory_are_never_compared(tmp_path, line):
    fast, slow = line.format("1.23"), line.format("4.56")
    found, asked = judged(tmp_path, slow, fast, nudged=line.format("4.78"))
    assert (found.verdict, found.notes, asked) == ("same", (), [])


def test_a_column_without_words_is_judged_by_how_it_behaves(tmp_path):
    table = "{} {} {}\n".format
    old = table(1, 0.5125, 12.31) + table(2, 0.4125, 12.47)
    times = table(1, 0.5125, 8.311) + table(2, 0.4125, 8.472)
    found, asked = judged(tmp_path, old, times, again=table(1, 0.5125, 12.33) + table(2, 0.4125, 12.45))
    assert (found.verdict, found.notes, asked) == ("same", (), ["rerun"]), "a time is another one in the second run of the baseline"
    found, asked = judged(tmp_path, old, times, nudged=table(1, 0.5187, 12.31) + table(2, 0.4187, 12.47))
    assert found.verdict == "same" and "12.31 → 8.311" in found.notes[0], "a figure of memory does not care about the weights"
    loss = table(1, 0.5125, 12.31) + table(2, 0.2125, 12.47)
    found, _ = judged(tmp_path, old, loss, nudged=table(1, 0.5187, 12.31) + table(2, 0.4187, 12.47))
    assert found.changed == ("evaluation",)


def test_without_a_further_run_a_difference_is_a_note(tmp_path):
    found, asked = judged(tmp_path, USUAL, epochs("0.7031", "0.9375", "0.9375"))
    assert found.verdict == "same" and "accuracy 0.8125 → 0.9375" in found.notes[0] and asked == ["rerun", "nudged-bfloat16"]


def test_outputs_of_programs_that_were_stopped_are_compared_as_far_as_both_go(tmp_path):
    cut = epochs("0.7031", "0.9375")
    assert judged(tmp_path, USUAL, cut, nudged=NUDGED, whole=False)[0].changed == ("evaluation",)
    found, _ = judged(tmp_path, USUAL, cut, again=epochs("0.7031"), nudged=NUDGED, whole=False)
    assert found.verdict == "same" and found.notes, "the second run of the baseline did not come that far"
