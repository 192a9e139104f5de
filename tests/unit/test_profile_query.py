"""Questions of a summary: every one that is promised is answered, the same way each time, and an unknown one says what can be asked."""

from __future__ import annotations

import functools
import io
import json

import pytest
from profile_scenarios import profile, ranks, step, trace, training, work
from rich.console import Console

from trainflash import report
from trainflash.errors import UsageError
from trainflash.profile import query, selecting
from trainflash.profile.analysis.build import summarize
from trainflash.profile.events import Kind
from trainflash.profile.query import ask


@functools.cache
def summary():
    return summarize(ranks(training(16, heavy_every=4), training(16, loading=100, heavy_every=4)))


@pytest.mark.parametrize(
    ("question", "query_type"),
    [
        ("What are the top 10 ops by exclusive time?", "top_ops"),
        ("Is comm or compute dominating? Which collective is worst?", "compute_vs_communication"),
        ("gap before _linear_softmax_cross_entropy_loss_bwd_pallas_mosaic_tpu_combined.1", "pre_op_gap"),
        ("show hierarchical regions", "hierarchical_regions"),
        ("show context for op copy.564", "op_context"),
        ("What should we try next?", "optimization_candidates"),
        *[(known.example, known.query_type) for known in query.QUESTIONS],
        ("which rank is the straggler", "stragglers"),
        ("Where does the time go?", "time_breakdown"),
        ("is this trace truncated?", "quality"),
    ],
)
def test_every_promised_question_is_answered(question, query_type):
    answer = query.ask(summary(), question)
    assert answer.query_type == query_type and answer.said and answer.digest == summary().digest
    assert query.ask(summary(), question) == answer
    json.dumps(answer.results, allow_nan=False)
    assert report.profiles.markdown(answer).startswith("# Answer")


def test_top_ops_are_sorted_and_counted_as_asked():
    ops = query.ask(summary(), "top 1 kernels").results
    assert len(ops) == 1 and ops[0]["name"] == "ampere_sgemm_128x64_tn"
    by_count = query.ask(summary(), "which ops are most frequent, by count?").results
    assert [row["count"] for row in by_count] == sorted((row["count"] for row in by_count), reverse=True)
    assert query.ask(summary(), "top 5 host ops").results[0]["category"] == "host"


def test_a_gap_is_found_by_payload_or_marker_or_part_of_a_name():
    found = query.ask(summary(), "gap before op `ampere_sgemm_128x64_tn`?")
    assert found.facts["payload_op"] == "ampere_sgemm_128x64_tn" and "data_loading" in found.said
    assert found.facts["context"][0]["region_path"].startswith("enumerate(DataLoader)")
    assert query.ask(summary(), "gap before sgemm").facts["payload_op"] == "ampere_sgemm_128x64_tn"


def test_an_op_that_is_not_there_gets_its_nearest_names():
    found = query.ask(summary(), "gap before ampere_sgem_128x64_tm")
    assert found.results == () and "ampere_sgemm_128x64_tn" in found.facts["close_names"]
    assert "ampere_sgemm_128x64_tn" in query.ask(summary(), "context for op ampere_sgem_128x64_tm").facts["close_names"]


def test_the_context_of_an_op_joins_what_is_known_of_it():
    found = query.ask(summary(), "show context for op ampere_sgemm_128x64_tn")
    assert found.results[0]["launched_by"] == "aten::mm" and found.facts["gaps"] and found.facts["regions"]
    assert "launched by aten::mm" in found.said and "train.py:12" in found.said


@pytest.mark.parametrize("what", sorted(selecting.SELECTIONS))
def test_every_selection_can_be_sorted_by_its_numbers(what):
    everything = selecting.select(summary(), what, limit=100)
    for field, value in everything.results[0].items() if everything.results else ():
        if isinstance(value, int | float) and not isinstance(value, bool):
            rows = [row[field] for row in selecting.select(summary(), what, field, 100).results if row[field] is not None]
            assert rows == sorted(rows, reverse=True)


def test_short_words_for_fields():
    exclusive = selecting.select(summary(), "ops", "exclusive", 10)
    assert exclusive.results == selecting.select(summary(), "ops", "exclusive_duration", 10).results
    assert selecting.select(summary(), "ops", "exclusive", 1, ascending=True).results[0] == exclusive.results[-1]
    assert selecting.select(summary(), "idle", "total").results[0]["cause"] == "data_loading"


@pytest.mark.parametrize(
    ("ask", "says"),
    [
        (lambda: query.ask(summary(), "what is love"), "What should we try next"),
        (lambda: query.ask(summary(), ""), "gap before OP"),
        (lambda: selecting.select(summary(), "kernels"), "host_ops"),
        (lambda: selecting.select(summary(), "ops", "colour"), "exclusive_duration"),
        (lambda: selecting.select(summary(), "gaps", "causes"), "total_gap_duration"),
    ],
)
def test_what_is_not_understood_lists_what_can_be_asked(ask, says):
    with pytest.raises(UsageError) as refused:
        ask()
    assert says in refused.value.mend and "\n" not in refused.value.message + refused.value.mend


def on_terminal(answer):
    console = Console(width=80, file=io.StringIO())
    console.print(report.profiles.terminal(answer))
    return console.file.getvalue()


def test_in_a_terminal_rows_are_named_and_headings_whole():
    for known in query.QUESTIONS:
        text = on_terminal(query.ask(summary(), known.example))
        assert "duration_us" not in text and "window_us" not in text
    together = summarize(ranks(*([work("ncclDevKernel_AllReduce", at, 1000 - at)] for at in (0, 900))))
    assert "all_reduce" in on_terminal(query.ask(together, "Which collective is worst?"))
    text = on_terminal(query.ask(together, "Which rank is late?"))
    assert all(heading in text for heading in ("rank", "collectives, ms", "waiting, ms", "came last", "held others, ms"))
    assert "ms each" in on_terminal(selecting.select(summary(), "ops", "avg")) and "count" in on_terminal(
        selecting.select(summary(), "ops", "count")
    )


@pytest.mark.parametrize(
    ("question", "kind", "said"),
    [
        ("Do copies overlap with compute?", "copies", "0.020 ms of all copies ran beside no computing"),
        ("How long does the optimizer take?", "families", "optimizer takes 0.500 ms"),
        ("Which step is slowest?", "step_time", "step 2 is the slowest: 3.000 ms"),
        ("longest gap", "pre_op_gap", "the longest gap takes 1.100 ms, before gemm"),
        ("What should we optimize?", "optimization_candidates", ""),
    ],
)
def test_a_question_gets_the_answer_to_itself(question, kind, said):
    events = [step(0, 0, 1000), step(1, 1000, 1000), step(2, 2000, 3000)]
    events += [work("Memcpy HtoD (Pinned -> Device)", 10, 20, kind=Kind.MEMCPY), work("multi_tensor_adam", 900, 500)]
    answer = ask(summarize(profile(trace([*events, work("gemm", 2500, 2400)]))), question)
    assert answer.query_type == kind and said in answer.said, answer.said


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("top kernels by count", "tiny_kernel is called most often: 500 times, together 0.500 ms"),
        ("top ops by avg", "rare_kernel takes the longest a call: 0.900 ms, 1 times"),
        ("top ops by total time", "op_ax takes the most with what it contains: 1.000 ms in 20 calls"),
    ],
)
def test_ops_are_found_by_what_they_are_asked_for(question, said):
    """40 ops of together 1 ms are the costliest; one of less is called 500 times, and one takes the longest a call."""
    events, at = [], 0
    programs = [(f"op_{chr(97 + number % 26)}{'xy'[number // 26]}", 20, 50) for number in range(40)]
    for name, times, took in (*programs, ("tiny_kernel", 500, 1), ("rare_kernel", 1, 900)):
        for _ in range(times):
            events.append(work(name, at, took))
            at += took + 1
    assert ask(summarize(profile(trace(events))), question).said == said


def test_memory_is_not_answered_with_something_else():
    answer = ask(summarize(profile(trace([work("gemm", 0, 10)]))), "How much GPU memory is used?")
    assert answer.query_type == "memory" and answer.results == () and "no allocation was recorded" in answer.said
