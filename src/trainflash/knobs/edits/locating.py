"""Where each kind of edit can be made in a program: one table from kinds to the functions that find their places."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from trainflash.errors import UsageError
from trainflash.knobs import kinds as of
from trainflash.knobs.edits import calls, calls_gone, collecting, guards, other_choice, settings
from trainflash.knobs.edits.attention import fused
from trainflash.knobs.edits.batches import exchange as exchanging
from trainflash.knobs.edits.cadence import asked_first, intervals, seldom
from trainflash.knobs.edits.formats import single_precision
from trainflash.knobs.edits.keeping import (
    hoisting,
    memoize,
)
from trainflash.knobs.edits.network import (
    evaluation,
    frozen_calls,
    trained,
)
from trainflash.knobs.edits.padding import longest
from trainflash.knobs.edits.padding import settings as padding_settings
from trainflash.knobs.edits.waits import saving
from trainflash.knobs.edits.watching import profiles
from trainflash.knobs.reading.expressions import same
from trainflash.knobs.scene import Scene, Target
from trainflash.knobs.splices import Edit
from trainflash.knobs.surfaces import shell

FINDERS: dict[type, Callable[[Any, Scene], tuple[Target, ...]]] = {
    of.CallArgument: calls.call_argument,
    of.ReplaceCall: lambda edit, scene: (evaluation.replace_within if edit.at == "evaluation" else calls.replace_call)(edit, scene),
    of.InsertCall: settings.insert_call,
    of.AssignedAttribute: settings.assigned_attribute,
    of.Environment: shell.environment,
    of.RemoveCall: calls_gone.remove_call,
    of.CollectorSettings: collecting.collector_settings,
    of.UnwrapCall: calls_gone.unwrap_call,
    of.ModelStatement: trained.model_statement,
    of.ForwardBlock: trained.forward_block,
    of.GuardSetting: guards.guard_setting,
    of.ShownProfile: profiles.shown_profile,
    of.Seldom: seldom.seldom,
    of.AskedFirst: asked_first.asked_first,
    of.FrozenCall: frozen_calls.frozen_call,
    of.OtherChoice: other_choice.other_choice,
    of.SinglePrecision: single_precision.single_precision,
    of.Memoize: memoize.memoize,
    of.Decorate: evaluation.decorate,
    of.Interval: intervals.interval,
    of.FusedAttention: fused.fused_attention,
    of.PadToLongest: longest.pad_to_longest,
    of.PaddingSetting: padding_settings.padding_setting,
    of.Hoist: hoisting.hoist,
    of.Background: saving.background,
    of.Accumulation: exchanging.accumulation,
    of.DrawnBatch: exchanging.drawn_batch,
}


def locate(edit: Any, scene: Scene) -> tuple[Target, ...]:
    """The places of `edit`. Raises `UsageError` with the reason when there is none."""
    if isinstance(edit, of.Together):
        return _together(edit, scene)
    if isinstance(edit, of.Exchange):
        exchanging.of_means(scene, ())
        try:
            return exchanging.exchange(locate(edit.more, scene)[0], locate(edit.less, scene)[0])
        except UsageError as bad:
            try:
                return exchanging.derived(edit, scene)
            except UsageError:
                raise bad from None
    return FINDERS[type(edit)](edit, scene)


def _together(edit: of.Together, scene: Scene) -> tuple[Target, ...]:
    """All edits as one target; a part that is so already is left out of it."""
    parts = [locate(each, scene)[0] for each in edit.edits]
    first = next((part for part in parts if part.current is not True), parts[0])

    def write(value: Any) -> tuple[Edit, ...]:
        return tuple(splice for part in parts if not same(part.current, value) for splice in part.write(value))

    return (Target(first.location, first.current, write, " and ".join(part.where for part in parts)),)
