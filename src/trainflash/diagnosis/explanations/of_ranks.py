"""Explanations of the findings about several ranks."""

from __future__ import annotations

from trainflash.diagnosis.explanations.parts import NOTHING, Explanation, Fix

RANKS = (
    Explanation(
        "communication",
        "N devices deliver far less than N times the throughput",
        "gradients or parameters are exchanged without computing meanwhile: no overlap, too many reductions, a slow wire",
        "time in collectives that nothing hides, waiting for a later rank apart from transfer; reductions per update, buckets, "
        "find_unused_parameters, calls and bytes per step",
        (
            Fix("find_unused_parameters=False where all parameters are used", "nothing; unused ones become an error"),
            Fix("no_sync() in all but the last backward of an accumulation", "rounding: the order of sums"),
            Fix(
                "one collective for all tensors of a loop instead of one for each",
                "rounding: the order of sums",
                pattern="one_exchange_between_ranks",
            ),
            Fix("bucket_cap_mb near 25 or above, gradient_as_bucket_view=True", "rounding: the order of sums"),
            Fix("no reading of tensors between backward and the update", NOTHING),
            Fix("FSDP: backward_prefetch and forward_prefetch", "nothing but memory"),
            Fix("16-bit gradients on the wire", "numerics: needs the owner's agreement"),
        ),
        "https://docs.pytorch.org/docs/stable/notes/ddp.html",
        "T1, T23",
    ),
    Explanation(
        "rank_straggler",
        "all ranks step at the pace of one",
        "one rank has more to do: longer sequences, slower input, extra work on rank 0, a slower machine or a device that throttles",
        "own time of each rank (without waiting in collectives) against the median of the others, and the phase where it differs most",
        (
            Fix("move what only this rank does out of the step, or do it less often", "which steps it sees"),
            Fix("deal out samples by cost, not by number", "which rank sees which sample: the order", pattern="deal_rows_out_in_turn"),
            Fix("look at that machine: clocks, neighbours, disk", NOTHING),
        ),
        "https://docs.pytorch.org/docs/stable/notes/ddp.html",
        "T23",
    ),
)
