"""Rules about forward and backward: padding, small_microbatch, attention_kernel, recompute."""

from __future__ import annotations

from trainflash.diagnosis.census import fixed_costs, mean_operator_us, thin_costs
from trainflash.diagnosis.claims import Claim, at, claim, count, percent, shown
from trainflash.diagnosis.memory import memory_used
from trainflash.diagnosis.signals import Signals
from trainflash.diagnosis.thresholds import Thresholds
from trainflash.schema import Evidence, Location, Updates

BOTH = ("Fwd", "Bwd")
DROPPING = "dropout on a CPU"
WEIGHTS_USED = "the weights are used"  # of an attention, elsewhere than in it: no fused kernel hands them out
OF_REASON = {
    "fused kernels are switched off": ("fused_kernels_on",),
}


def padding(signals: Signals, limits: Thresholds) -> tuple[Claim, ...]:
    """Forward and backward work on what does not count: padding in the inputs, and predictions whose targets the loss ignores.

    Abstains where inputs, or targets, were not looked at.
    """
    return (*_padded_inputs(signals, limits), *_ignored_targets(signals, limits))


def _ignored_targets(signals: Signals, limits: Thresholds) -> tuple[Claim, ...]:
    """Where inputs are padded, their padding's part of the targets is what the other claim says already."""
    padded = signals.summary.padding_share or 0.0
    found = [each for each in signals.summary.ignored_targets if each.ignored - padded >= limits.padding]
    share = sum(each.share * (each.ignored - padded) for each in found)
    if share < limits.listed:
        return ()
    first = found[0]
    return (
        claim(
            "padding",
            "Fwd",
            signals.computed_on,
            share,
            limits,
            phases=BOTH,
            summary=f"the loss ignores {shown(first.ignored)} of the targets, and predictions for them take {shown(share)} of the time"
            + at(first.location),
            evidence=(
                percent("targets that the loss ignores", first.ignored),
                percent("all predictions and their loss, estimated share of wall time", sum(each.share for each in found)),
                Evidence("predictions", " × ".join(str(size) for size in first.shape)),
                count("losses per step", sum(each.per_step for each in found)),
            ),
            location=first.location,
        ),
    )


def _padded_inputs(signals: Signals, limits: Thresholds) -> tuple[Claim, ...]:
    padded, work, summary = signals.summary.padding_share, signals.fwd_bwd, signals.summary
    if padded is None or work is None or padded < limits.padding or padded * work < limits.dominant:
        return ()
    share = padded * work
    rows = [percent("padding in the inputs", padded), percent("forward and backward, share of wall time", work)]
    common, knobs = summary.common_padding_share, ("pad_to_longest", "group_by_length")
    if common is not None:
        rows.append(percent("padding behind the longest sample of its batch, of all inputs", common))
        knobs = knobs if 2 * common >= padded else knobs[::-1]
    if summary.input_shapes is not None:
        rows.append(count("distinct input shapes", summary.input_shapes))
    return (
        claim(
            "padding",
            "Fwd",
            signals.computed_on,
            share,
            limits,
            phases=BOTH,
            summary=f"{shown(padded)} of the inputs is padding, so that about {shown(share)} of the time is spent on it",
            evidence=rows,
            location=summary.fixed_width_at or signals.samples_padded_at or signals.hottest("Fwd"),
            knobs=knobs,
        ),
    )


def small_microbatch(signals: Signals, limits: Thresholds) -> tuple[Claim, ...]:
    """A batch goes through the network in many small parts though memory would hold larger ones (T18).

    Either gradients are accumulated over micro-batches, or parts are fed one by one before one backward. `share` is what the fixed costs
    of all but one part take: forward and backward × (1 − 1 ÷ parts) × the part of them that lies in no operator, in operators below
    20 µs or in what larger ones do however few their rows, or that `micro_call_us` (of a convolution `micro_conv_us`) is of an operator in
    the mean, whichever is larger. Abstains without the census of operators, or figures of memory.
    """
    work, used, outside, mean_us = signals.fwd_bwd, memory_used(signals), fixed_costs(signals, limits), mean_operator_us(signals)
    found = _micro_batches(signals, limits) or _parts_of_batches(signals, limits)
    if found is None or work is None or used is None or outside is None or mean_us is None:
        return ()
    times, rows_each, how, location = found
    in_large = thin_costs(signals, rows_each, limits)
    overhead = max(min(1.0, outside + in_large), min(1.0, _stays_us(signals, limits) / mean_us))
    share = work * (1 - 1 / times) * overhead
    if used > limits.recompute_room or overhead < limits.micro_overhead or share < limits.dominant:
        return ()
    rows = [
        count("rows in a part", rows_each),
        count("parts per update", times),
        percent("forward and backward that more rows would not prolong", overhead),
        count("mean operator", mean_us, "µs"),
        percent("memory used", used),
    ]
    if signals.summary.ranks > 1:
        rows.append(count("ranks, each with parts of its own", signals.summary.ranks))
    return (
        claim(
            "small_microbatch",
            "Fwd",
            signals.computed_on,
            share,
            limits,
            phases=BOTH,
            summary=f"{times:.0f} {how} of {rows_each} rows make one update; about {shown(share)} of the time are costs that each of them "
            "pays again",
            evidence=rows,
            location=location,
            knobs=("micro_batch",),
        ),
    )


def _stays_us(signals: Signals, limits: Thresholds) -> float:
    """What an operator of this network takes in the mean, µs, however few its rows."""
    operators = signals.summary.operators
    if operators is None or not operators.conv_per_step or operators.per_step <= 0:
        return limits.micro_call_us
    part = min(1.0, operators.conv_per_step / operators.per_step)
    return limits.micro_call_us * (1 - part) + limits.micro_conv_us * part


def _micro_batches(signals: Signals, limits: Thresholds) -> tuple[float, int, str, Location | None] | None:
    """Backwards per update, rows of each, how they are called and where they are made; None where nothing is accumulated."""
    updates, loader = signals.summary.updates, signals.loader
    if updates is None or updates.micro_batch is None or updates.optimizers != 1 or updates.backwards_per_step < 2:
        return None
    if updates.micro_batch > limits.micro_rows or not _accumulates(signals, updates, limits):
        return None
    where = loader.location if loader is not None else signals.hottest("Bwd") or updates.location
    return updates.backwards_per_step, updates.micro_batch, "micro-batches", where


def _parts_of_batches(signals: Signals, limits: Thresholds) -> tuple[float, int, str, Location | None] | None:
    """The same for parts of one batch that are fed one by one."""
    parts = signals.summary.parts
    if parts is None or parts.calls < 2 or parts.rows > limits.micro_rows:
        return None
    return parts.calls, parts.rows, "parts of a batch, one by one,", parts.location


def _accumulates(signals: Signals, updates: Updates, limits: Thresholds) -> bool:
    """Whether several backwards are several batches, or parts of one: not several losses of the same rows."""
    data = signals.summary.phases.get("Data")
    loader = signals.loader
    fetched = data.per_occurrence.n if data is not None and data.per_occurrence is not None else 0
    if loader is not None and loader.collate_ms is not None:  # a trainer may fetch all batches of an update at once
        fetched = max(fetched, loader.collate_ms.n)
    if fetched >= limits.batches_each * max(1, signals.summary.steps):
        return True
    if loader is not None and loader.batch_size is not None and updates.micro_batch is not None:
        return updates.micro_batch * updates.backwards_per_step <= loader.batch_size * 1.01
    forward = signals.summary.phases.get("Fwd")
    forwards = forward.per_occurrence.n if forward is not None and forward.per_occurrence is not None else 0
    # A generator hands batches over unseen. So many backwards, each after a forward of its own, are no losses of one batch.
    own_forwards = forwards >= 0.99 * updates.backwards_per_step * max(1, signals.summary.steps)  # but for one at the edge
    return loader is None and updates.backwards_per_step >= limits.micro_parts and own_forwards


def attention_kernel(signals: Signals, limits: Thresholds) -> tuple[Claim, ...]:
    """Attention that writes the whole matrix of scores: by hand, or because `scaled_dot_product_attention` fell back (T14).

    Not where the weights are used elsewhere, as by a pointer network: no fused kernel hands them out. Nor with dropout on a CPU, for which
    there is no fused kernel (torch 2.13; measured: without its weights such attention takes 0.97 to 1.0 times as long).
    """
    large = [each for each in signals.summary.attention if len(each.shape) >= 1 and each.shape[-1] >= limits.attention_keys]
    found = [each for each in large if each.reason != WEIGHTS_USED and DROPPING not in each.reason]
    total = sum(each.share for each in found)
    weight = total * limits.attention_saving
    if not found or weight < limits.listed:
        return ()
    first = max(found, key=lambda each: each.share)
    how = "written by hand" if first.kind == "hand_written" else "in the unfused fallback of scaled_dot_product_attention"
    rows = [
        percent("attention, share of wall time", total),
        count("times per step", sum(each.per_step for each in found)),
        Evidence("scores (batch, heads, queries, keys)", " × ".join(str(size) for size in first.shape)),
        percent("of it a fused kernel saves at least", limits.attention_saving),
    ]
    if first.reason:
        rows.append(Evidence("why no fused kernel", first.reason))
    return (
        claim(
            "attention_kernel",
            "Fwd",
            signals.computed_on,
            weight,
            limits,
            at_most=total,
            phases=BOTH,
            summary=f"attention {how} takes {shown(total)} of the time{at(first.location)}",
            evidence=rows,
            location=first.location or signals.hottest("Fwd"),
            knobs=OF_REASON.get(first.reason, ()) if first.kind != "hand_written" else (),
        ),
    )


def recompute(signals: Signals, limits: Thresholds) -> tuple[Claim, ...]:
    """Work of the network that is done twice, or for nothing: activations again in backward though memory would hold them (T17), modules
    with inputs that they had in the same step, gradients that nobody takes. The first abstains where memory is in short supply.
    """
    return (*_checkpointed(signals, limits), *_called_again(signals, limits), *_in_vain(signals, limits))


def _in_vain(signals: Signals, limits: Thresholds) -> tuple[Claim, ...]:
    found = signals.summary.in_vain
    share = sum(each.share for each in found)
    if share < limits.listed:
        return ()
    first = found[0]
    nobody = "are thrown away before their optimizer steps" if first.held else "no optimizer takes"
    return (
        claim(
            "recompute",
            "Bwd",
            signals.computed_on,
            share,
            limits,
            summary=f"backward goes through modules whose gradients {nobody}, for {shown(share)} of the time{at(first.location)}",
            evidence=(
                percent("their backward, estimated share of wall time", share),
                count("calls that record for it, per step", sum(each.per_step for each in found)),
            ),
            location=first.location,
        ),
    )


def _called_again(signals: Signals, limits: Thresholds) -> tuple[Claim, ...]:
    found = signals.summary.forward_repeats
    share = sum(each.share for each in found)
    if share < limits.listed:
        return ()
    first = found[0]
    return (
        claim(
            "recompute",
            "Fwd",
            signals.computed_on,
            share,
            limits,
            phases=("Fwd", "Bwd"),
            summary=f"modules are called again with inputs that they had in the same step, with an equal result: {shown(share)} of the time"
            + at(first.location),
            evidence=(
                percent("repeated calls, share of wall time with their backward", share),
                count("repeated calls per step", sum(each.per_step for each in found)),
            ),
            location=first.location,
        ),
    )


def frozen_network(signals: Signals, limits: Thresholds) -> tuple[Claim, ...]:
    """A network that nobody trains is asked again for rows that it has answered: a teacher, or a backbone in front of a trained head.

    Abstains where its inputs could not be looked at, as on a device. In evaluations it is a part of these.
    """
    claims = []
    for phase in ("Fwd", "Eval"):
        if any(work.during == "operators" and signals.repeated_phase[work.location] == phase for work in signals.repeated):
            continue  # whole batches come again: told by `repeated_work`
        found = [each for each in signals.summary.frozen_repeats if each.phase == phase]
        share = sum(each.share for each in found)
        if share < limits.listed:
            continue
        first = found[0]
        claims.append(
            claim(
                "repeated_work",
                phase,
                signals.computed_on,
                share,
                limits,
                summary="a network that nobody trains answers rows that it answered before, for "
                f"{shown(share)} of the time{at(first.location)}",
                evidence=(
                    percent("estimated share of wall time", share),
                    percent("rows that came again, of the later half looked at", first.again),
                    count("rows looked at in it", first.rows),
                ),
                location=first.location,
                inside="evaluation" if phase == "Eval" else None,
            )
        )
    return tuple(claims)


def _checkpointed(signals: Signals, limits: Thresholds) -> tuple[Claim, ...]:
    found, used = signals.summary.recompute, memory_used(signals)
    share = sum(each.share for each in found)
    if share < limits.listed or (used is not None and used > limits.recompute_room):
        return ()
    first = max(found, key=lambda each: each.share)
    return (
        claim(
            "recompute",
            "Bwd",
            signals.computed_on,
            share,
            limits,
            summary=f"forward work is done again in backward for {shown(share)} of the time{at(first.location)}"
            + (f", with {shown(used)} of the memory used" if used is not None else ""),
            evidence=(
                percent("recomputing, share of wall time", share),
                count("checkpointed calls per step", sum(each.per_step for each in found)),
                Evidence("memory used", "not measured") if used is None else percent("memory used", used),
            ),
            location=first.location,
            knobs=("recompute_off",),
        ),
    )
