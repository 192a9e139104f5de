"""What operators of a trace move at least, by their shapes and formats; and what of it the advice says."""

from __future__ import annotations

import json

import pytest
from profile_scenarios import host, launched, profile, trace, work

from trainflash.profile.analysis.build import summarize
from trainflash.profile.analysis.floors import moved_bytes
from trainflash.schema.boards import BOARDS, board

BIG = [1024, 1024]
MEGA = 1 << 20


@pytest.mark.parametrize(
    ("name", "shapes", "formats", "megabytes"),
    [
        ("aten::add", [BIG, BIG, []], ["float", "float", "Scalar"], 12),
        ("aten::add_", [BIG, [1024], []], ["c10::BFloat16", "c10::BFloat16", "Scalar"], 4 + 1 / 512),
        ("aten::mul", [BIG, []], ["c10::Half", "double"], 4 + 8 / MEGA),
        ("aten::gelu", [BIG, []], ["c10::Half", ""], 4),
        ("aten::clamp_min", [BIG, [], BIG], ["float", "Scalar", "float"], 8),  # the last is where it writes
        ("aten::copy_", [BIG, BIG, []], ["float", "c10::BFloat16", ""], 6),
        ("aten::fill_", [BIG, []], ["float", "Scalar"], 4),
        ("aten::sum", [BIG, [], [], []], ["float", "ScalarList", "", ""], 4 + 4 / MEGA),
        ("aten::eq", [BIG, []], ["long int", "Scalar"], 9),
        ("aten::_softmax", [BIG, [], []], ["float", "Scalar", ""], 8),
    ],
)
def test_bytes_follow_from_shapes_and_formats(name, shapes, formats, megabytes):
    assert moved_bytes(name, json.dumps(shapes), json.dumps(formats)) == pytest.approx(megabytes * MEGA, abs=1)


@pytest.mark.parametrize(
    ("name", "shapes", "formats"),
    [
        ("aten::sort", [BIG], ["float"]),  # more than one pass
        ("aten::view", [BIG, []], ["float", "ScalarList"]),
        ("aten::add", [[], []], ["Scalar", "Scalar"]),
        ("aten::add", [[BIG, BIG], []], ["TensorList", "Scalar"]),
        ("aten::add", [BIG], ["float", "float"]),
        ("aten::add", [[1024, "x"]], ["float"]),
    ],
)
def test_what_does_not_follow_is_not_said(name, shapes, formats):
    assert moved_bytes(name, json.dumps(shapes), json.dumps(formats)) is None


def test_damaged_texts_say_nothing():
    assert moved_bytes("aten::add", "[[1024, 10", "[") is None and moved_bytes("aten::add", "{}", "[]") is None


def test_what_the_cache_may_hold_and_keep_costs_nothing():
    card = board("NVIDIA A100-SXM4-80GB")
    assert card.moving_us(80e6) == 0 and card.moving_us(80e6 + 2039e6) == pytest.approx(1000)
    assert all(each.memory_gb_s > 100 and 1 < each.cache_mb <= 256 for each in BOARDS)


def busy(number=10):
    """A memset, a product and its reduction by one operator; then an addition of 1.5 GB, 1 ms, and one in the cache."""
    events, at = [], 100.0
    adding = {"input_dims": json.dumps([[1 << 14, 1 << 13]] * 2), "input_types": '["float", "float"]'}
    small = {"input_dims": json.dumps([[64, 64]] * 2), "input_types": '["float", "float"]'}
    product = {"input_dims": json.dumps([BIG, BIG]), "input_types": '["float", "float"]'}
    for n in range(number):
        for place, (operator, side, kernels) in enumerate(
            [
                ("aten::mm", product, [("Memset (Device)", 2), ("ampere_sgemm_128x64_tn", 400), ("splitKreduce_kernel", 10)]),
                ("aten::add", adding, [("vectorized_elementwise_kernel<add>", 1000)]),
                ("aten::add", small, [("elementwise_kernel<small>", 3)]),
            ]
        ):
            began = n * 40 + place * 10
            events.append(host(operator, began, 9, **side))
            for number_, (name, length) in enumerate(kernels):
                correlation = n * 100 + place * 10 + number_ + 1
                events += launched(name, began + 1 + number_, at + 500, length, correlation, call_us=0.5)
                at += length
    return summarize(profile(trace(events, provenance={"deviceProperties": [{"id": 0, "name": "NVIDIA A100-SXM4-80GB"}]})))


def test_an_operator_counts_for_the_kernel_that_does_its_work():
    found = {op.name: op for op in busy().hot_ops}
    assert found["ampere_sgemm_128x64_tn"].flop_proxy_per_invocation == 2 * 1024**3
    assert found["Memset (Device)"].flop_proxy_per_invocation is None and found["splitKreduce_kernel"].flop_proxy_per_invocation is None
    assert found["vectorized_elementwise_kernel<add>"].bytes_proxy_per_call == 3 * 4 * (1 << 27)
    assert found["vectorized_elementwise_kernel<add>"].calls_with_bytes == 10


def test_kernels_that_move_memory_are_told_with_what_the_cards_bandwidth_takes():
    found = next(each for each in busy().optimization_candidates if each.finding == "slow_operator")
    figures = {each.name: each.value for each in found.figures}
    assert figures["at the card's bandwidth their tensors take at least"] == pytest.approx(
        10 * (3 * 4 * (1 << 27) - 80e6) / 2039e6, rel=0.001
    )
    assert figures["of the measured"] == pytest.approx(10.03, abs=0.01)
    assert found.ceiling_speedup == pytest.approx(1 / (1 - found.share), rel=0.001), "fused, all of it could go"


def test_fused_kernels_are_not_told_to_be_fused():
    events = [work("triton_poi_fused_gelu_add_3", n * 100, 100) for n in range(20)]
    found = next(each for each in summarize(profile(trace(events))).optimization_candidates if each.finding == "slow_operator")
    assert "fused already" in found.suggestions[0]
