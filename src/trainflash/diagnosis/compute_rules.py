"""Rules about the computing itself: optimizer, padding, small_microbatch, attention_kernel, recompute, recompilation, shape_instability."""

from __future__ import annotations

from trainflash.diagnosis.census import fixed_costs, mean_operator_us, thin_costs
from trainflash.diagnosis.claims import Claim, at, claim, count, milliseconds, percent, shown
from trainflash.diagnosis.lines import hottest, lines_in
from trainflash.diagnosis.memory import memory_used
from trainflash.diagnosis.signals import Signals
from trainflash.diagnosis.thresholds import Thresholds
from trainflash.schema import Attention, Evidence, Location, Updates

LAZY, LARGE = ("SGD", "Adagrad"), 500_000  # move looked up rows alone; elements of which a large table may be a part
FUSABLE = ("Adam", "AdamW", "SGD", "Adagrad")
FOREACH = (*FUSABLE, "NAdam", "RAdam", "RMSprop", "Adadelta", "Adamax", "Rprop")
BOTH = ("Fwd", "Bwd")
WEIGHTS_USED = "the weights are used"  # of an attention, elsewhere than in it: no fused kernel hands them out


def optimizer(signals: Signals, limits: Thresholds) -> tuple[Claim, ...]:
    """The optimizer's update takes a large part of the step (T12). Ranked by what a fused update can save of it; none where it is fused."""
    share, updates = signals.share("Opt"), signals.summary.updates
    if share is None or share < limits.optimizer or (updates is not None and updates.fused):
        return ()
    rows = [percent("share of wall time", share), milliseconds("mean per step", signals.summary.phases["Opt"].mean_ms)]
    location = None
    if updates is not None:
        rows += _update_evidence(signals, updates)
        location = updates.location
    hot = hottest(lines_in(signals.summary, "Opt"))
    if updates is None or _by_hand(updates) or _adds_work(updates, hot):
        location = hot or location
    return (
        claim(
            "optimizer",
            "Opt",
            _bound_by(signals),
            share,
            limits,
            weight=share * limits.optimizer_saving,
            at_most=share,
            summary=f"the optimizer's update takes {shown(share)} of the time{at(location)}",
            evidence=rows,
            location=location,
            knobs=_update_knobs(updates),
        ),
    )


def padding(signals: Signals, limits: Thresholds) -> tuple[Claim, ...]:
    """Forward and backward work on padding. Abstains where inputs were not looked at."""
    padded, work, summary = signals.summary.padding_share, signals.fwd_bwd, signals.summary
    if padded is None or work is None or padded < limits.padding or padded * work < limits.dominant:
        return ()
    share = padded * work
    rows = [percent("padding in the inputs", padded), percent("forward and backward, share of wall time", work)]
    common, knobs = summary.common_padding_share, ("pad_to_longest", "group_by_length")
    if summary.padded:  # of torch's own form, which a collate function of torch's own form can cut
        knobs = (knobs[0], "cut_common_padding", knobs[1])
    if common is not None:
        rows.append(percent("padding behind the longest sample of its batch, of all inputs", common))
        knobs = knobs if 2 * common >= padded else knobs[::-1]
    if summary.input_shapes is not None:
        rows.append(count("distinct input shapes", summary.input_shapes))
    return (
        claim(
            "padding",
            "Fwd",
            _bound_by(signals),
            share,
            limits,
            phases=BOTH,
            summary=f"{shown(padded)} of the inputs is padding, so that about {shown(share)} of the time is spent on it",
            evidence=rows,
            location=signals.samples_padded_at or signals.hottest("Fwd"),
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
            _bound_by(signals),
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


def attention_kernel(signals: Signals, limits: Thresholds) -> tuple[Claim, ...]:
    """Attention that writes the whole matrix of scores: by hand, or because `scaled_dot_product_attention` fell back (T14).

    Not where the weights are used elsewhere, as by a pointer network: no fused kernel hands them out.
    """
    large = [each for each in signals.summary.attention if len(each.shape) >= 1 and each.shape[-1] >= limits.attention_keys]
    found = [each for each in large if each.reason != WEIGHTS_USED]
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
            _bound_by(signals),
            weight,
            limits,
            at_most=total,
            phases=BOTH,
            summary=f"attention {how} takes {shown(total)} of the time{at(first.location)}",
            evidence=rows,
            location=first.location or signals.hottest("Fwd"),
            knobs=_for_attention(first),
        ),
    )


OF_REASON = {"need_weights=True": ("attention_weights_off",), "fused kernels are switched off": ("fused_kernels_on",)}


def _for_attention(found: Attention) -> tuple[str, ...]:
    if found.kind == "hand_written":
        return ("fused_attention",)
    return OF_REASON.get(found.reason, ())


def recompute(signals: Signals, limits: Thresholds) -> tuple[Claim, ...]:
    """Forward work is done twice: activations again in backward though memory would hold them (T17), or modules with inputs that they had
    in the same step. The first abstains where memory is in short supply.
    """
    return (*_checkpointed(signals, limits), *_called_again(signals, limits))


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
            _bound_by(signals),
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
            _bound_by(signals),
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


def recompilation(signals: Signals, limits: Thresholds) -> tuple[Claim, ...]:
    """torch.compile compiles again while training, or gave up (T16); beside it shape_instability where shapes are the reason."""
    compiled, shapes = signals.summary.compilation, signals.summary.input_shapes
    if compiled is None:
        return ()
    again = compiled.steady >= 1 and compiled.share >= limits.listed
    if not again:
        return ()
    rows = [
        percent("compiling, share of wall time", compiled.share),
        count("compilations while training", compiled.steady),
        count("compilations in all", compiled.frames),
    ]
    if compiled.mean_ms is not None:
        rows.append(milliseconds("mean each", compiled.mean_ms))
    if compiled.limit_hit:
        rows.append(Evidence("recompile limit", "reached: the function runs uncompiled"))
    rows += [Evidence("reason", reason) for reason in compiled.reasons]
    made = claim(
        "recompilation",
        "Fwd",
        "host",
        compiled.share,
        limits,
        phases=(),
        summary=f"torch.compile works {shown(compiled.share)} of the time, {compiled.steady} times while training{at(compiled.location)}",
        evidence=rows,
        location=compiled.location,
    )
    if not compiled.by_shape:
        return (made,)
    evidence = [percent("compiling for new shapes, share of wall time", compiled.share), count("compilations", compiled.steady)]
    if shapes is not None:
        evidence.append(count("distinct input shapes", shapes))
    unstable = claim(
        "shape_instability",
        "Fwd",
        "host",
        compiled.share,
        limits,
        phases=(),
        summary="input shapes keep changing, and each new one is compiled again",
        evidence=evidence,
        location=signals.batches_made_at,
        inside="recompilation",
    )
    return (made, unstable)


def shape_instability(signals: Signals, limits: Thresholds) -> tuple[Claim, ...]:
    """Convolutions are prepared again for each new input shape: by cuDNN's search (T10; not yet proved on a GPU), on a CPU by oneDNN.

    `share` is what forward takes above its median; on a CPU what convolutions took longer than the same ones once more, in steps looked
    at, with as much more as is measured for backward. Other changing shapes cost little by themselves.
    """
    if not signals.on_gpu:
        return _set_up_again(signals, limits)
    numerics, shapes, fwd = signals.summary.numerics, signals.summary.input_shapes, signals.summary.phases.get("Fwd")
    if numerics is None or not numerics.cudnn_benchmark or not numerics.convolutions or shapes is None:
        return ()
    if shapes < limits.shapes_many or fwd is None or fwd.p50_ms is None or fwd.mean_ms <= 0:
        return ()
    share = fwd.share * max(0.0, 1 - fwd.p50_ms / fwd.mean_ms)
    if share < limits.listed:
        return ()
    return (
        claim(
            "shape_instability",
            "Fwd",
            "device",
            share,
            limits,
            summary=f"cudnn.benchmark tries all algorithms again for each of {shapes} input shapes, about {shown(share)} of the time",
            evidence=(
                count("distinct input shapes", shapes),
                Evidence("cudnn.benchmark", "on"),
                percent("forward above its median, share of wall time", share),
            ),
            location=signals.batches_made_at,
        ),
    )


def _set_up_again(signals: Signals, limits: Thresholds) -> tuple[Claim, ...]:
    operators, shapes = signals.summary.operators, signals.summary.input_shapes
    fwd, work = signals.summary.phases.get("Fwd"), signals.fwd_bwd
    if operators is None or not operators.setup_ms or shapes is None or fwd is None or work is None:
        return ()
    share = min(work, fwd.share * operators.setup_ms / fwd.mean_ms * limits.setup_whole)
    if shapes < limits.shapes_many or share < limits.listed:
        return ()
    return (
        claim(
            "shape_instability",
            "Fwd",
            "host",
            share,
            limits,
            phases=BOTH,
            summary=f"convolutions are set up anew for input shapes that keep changing, about {shown(share)} of the time",
            evidence=(
                count("distinct input shapes", shapes),
                count("convolutions set up in a step, forward", operators.set_up or 0.0),
                milliseconds("what the same take less once more", operators.setup_ms),
            ),
            location=signals.samples_padded_at or signals.hottest("Data"),
            knobs=("rounded_width",),
        ),
    )


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
    own_forwards = forwards >= updates.backwards_per_step * max(1, signals.summary.steps)
    return loader is None and updates.backwards_per_step >= limits.micro_parts and own_forwards


def _by_hand(updates: Updates) -> bool:
    """An update of the owner's, whatever its name: it has none of the options of torch's optimizers."""
    return updates.fused is None and updates.foreach is None and updates.package != "torch"


def _adds_work(updates: Updates, hot: Location | None) -> bool:
    """Whether a class of the owner's over one of torch's does most of the work in code beside what it inherits."""
    owners = updates.location is not None and updates.location.function == f"{updates.optimizer}.__init__"
    return owners and hot is not None and hot.function != f"{updates.optimizer}.step"


def _update_evidence(signals: Signals, updates: Updates) -> list[Evidence]:
    how = "foreach" if updates.foreach else "one tensor after the other" if updates.foreach is False else "torch's default"
    how = "written by hand" if _by_hand(updates) else how
    rows = [Evidence("optimizer", f"{updates.optimizer}, {how}"), count("parameter tensors", updates.tensors)]
    operators = signals.summary.operators
    if operators is not None and operators.optimizer_per_step is not None:
        rows.append(count("operator calls in the optimizer, per step", operators.optimizer_per_step))
    if updates.zero_to_none is False:
        rows.append(Evidence("gradients between steps", "filled with zeros"))
    return rows


def _update_knobs(updates: Updates | None) -> tuple[str, ...]:
    if updates is None:
        return ("optimizer_foreach", "optimizer_fused")
    knobs = ["torch_optimizer", "foreach_operations"] if _by_hand(updates) else []
    if not _by_hand(updates):
        knobs += ["sparse_gradients"] if updates.optimizer in LAZY and updates.elements >= LARGE else []
        knobs += ["optimizer_foreach"] if updates.optimizer in FOREACH and not updates.foreach else []
        knobs += ["optimizer_fused"] if updates.optimizer in FUSABLE else []
    knobs += ["zero_grad_set_to_none"] if updates.zero_to_none is False else []
    return tuple(knobs)


def _bound_by(signals: Signals) -> str:
    return "device" if signals.on_gpu else "host"
