"""Where each kind of edit can be made in a program: one table from kinds to the functions that find their places."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from trainflash.knobs import kinds as of
from trainflash.knobs.edits import calls, calls_gone, settings
from trainflash.knobs.edits.batches import exchange as exchanging
from trainflash.knobs.edits.cadence import asked_first, intervals, seldom
from trainflash.knobs.edits.keeping import (
    hoisting,
    memoize,
)
from trainflash.knobs.edits.network import (
    trained,
)
from trainflash.knobs.edits.padding import longest
from trainflash.knobs.edits.padding import settings as padding_settings
from trainflash.knobs.scene import Scene, Target
from trainflash.knobs.surfaces import shell

FINDERS: dict[type, Callable[[Any, Scene], tuple[Target, ...]]] = {
    of.CallArgument: calls.call_argument,
    of.ReplaceCall: calls.replace_call,
    of.InsertCall: settings.insert_call,
    of.AssignedAttribute: settings.assigned_attribute,
    of.Environment: shell.environment,
    of.RemoveCall: calls_gone.remove_call,
    of.UnwrapCall: calls_gone.unwrap_call,
    of.ModelStatement: trained.model_statement,
    of.ForwardBlock: trained.forward_block,
    of.Seldom: seldom.seldom,
    of.AskedFirst: asked_first.asked_first,
    of.Memoize: memoize.memoize,
    of.Interval: intervals.interval,
    of.PadToLongest: longest.pad_to_longest,
    of.PaddingSetting: padding_settings.padding_setting,
    of.Hoist: hoisting.hoist,
    of.Accumulation: exchanging.accumulation,
    of.DrawnBatch: exchanging.drawn_batch,
}


def locate(edit: Any, scene: Scene) -> tuple[Target, ...]:
    """The places of `edit`. Raises `UsageError` with the reason when there is none."""
    if isinstance(edit, of.Exchange):
        exchanging.of_means(scene, ())
        return exchanging.exchange(locate(edit.more, scene)[0], locate(edit.less, scene)[0])
    return FINDERS[type(edit)](edit, scene)
