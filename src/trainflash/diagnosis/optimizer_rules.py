"""The rule about the optimizer's update."""

from __future__ import annotations

from trainflash.diagnosis.claims import Claim, at, claim, count, milliseconds, percent, shown
from trainflash.diagnosis.lines import hottest, lines_in
from trainflash.diagnosis.signals import Signals
from trainflash.diagnosis.thresholds import Thresholds
from trainflash.schema import Evidence, Location, Updates

LAZY, LARGE = ("SGD", "Adagrad"), 500_000  # move looked up rows alone; elements of which a large table may be a part
FUSABLE = ("Adam", "AdamW", "SGD", "Adagrad")
FOREACH = (*FUSABLE, "NAdam", "RAdam", "RMSprop", "Adadelta", "Adamax", "Rprop")


def optimizer(signals: Signals, limits: Thresholds) -> tuple[Claim, ...]:
    """The optimizer's update takes a part of the step (T12). Ranked by what a fused update can save of it; none where it is fused."""
    share, updates = signals.share("Opt"), signals.summary.updates
    if share is None or (updates is not None and updates.fused):
        return ()
    fusable = updates is not None and "optimizer_fused" in _update_knobs(updates)
    if share < limits.optimizer and not (fusable and share * limits.optimizer_saving >= limits.listed):
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
            signals.computed_on,
            share,
            limits,
            weight=share * limits.optimizer_saving,
            at_most=share,
            summary=f"the optimizer's update takes {shown(share)} of the time{at(location)}",
            evidence=rows,
            location=location,
            knobs=_update_knobs(updates),
            leads=share >= limits.optimizer,
        ),
    )


def whole_tables(signals: Signals, limits: Thresholds) -> tuple[Claim, ...]:
    """Backward fills gradients as large as the lookup tables, of which an optimizer that could leave the other rows alone takes a few.

    `share` is what the census of operators shows of it. Abstains without the census, or where the optimizer moves all rows anyway.
    """
    operators, updates, backward = signals.summary.operators, signals.summary.updates, signals.share("Bwd")
    if operators is None or operators.table_share is None or updates is None or backward is None or operators.step_ms <= 0:
        return ()
    share = min(backward, operators.table_share * operators.op_ms / operators.step_ms)
    if share < limits.dominant or not _lazy(updates):
        return ()
    return (
        claim(
            "optimizer",
            "Bwd",
            signals.computed_on,
            share,
            limits,
            summary=f"backward fills gradients of whole lookup tables for {shown(share)} of the time, of which a batch looks up few rows",
            evidence=(
                percent("operator time in gradients of whole lookup tables", operators.table_share),
                Evidence("optimizer", f"{updates.optimizer}, which can leave rows alone that were not looked up"),
                count("elements that it updates", updates.elements),
            ),
            location=updates.location,
        ),
    )


def _lazy(updates: Updates) -> bool:
    return updates.optimizer in LAZY and updates.elements >= LARGE and not _by_hand(updates)


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
    knobs = []
    if not _by_hand(updates):
        knobs += ["optimizer_foreach"] if updates.optimizer in FOREACH and not updates.foreach else []
        knobs += ["optimizer_fused"] if updates.optimizer in FUSABLE else []
    return tuple(knobs)
