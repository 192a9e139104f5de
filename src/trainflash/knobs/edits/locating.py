"""Where each kind of edit can be made in a program: one table from kinds to the functions that find their places."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from trainflash.errors import UsageError
from trainflash.knobs import kinds as of
from trainflash.knobs.edits import calls, calls_gone, collecting, guards, other_choice, settings, sibling_calls
from trainflash.knobs.edits.attention import dimensions, fused, weights
from trainflash.knobs.edits.batches import batching, cut_batches
from trainflash.knobs.edits.batches import exchange as exchanging
from trainflash.knobs.edits.cadence import asked_first, intervals, later_reads, on_reading, seldom
from trainflash.knobs.edits.foreach import loops as foreach_loops
from trainflash.knobs.edits.formats import kept_layout, single_precision
from trainflash.knobs.edits.keeping import (
    drawn_weights,
    hoisting,
    kept_archives,
    kept_contents,
    kept_handles,
    kept_iterators,
    kept_links,
    kept_loaders,
    kept_pools,
    memoize,
)
from trainflash.knobs.edits.lists import (
    fft_convolution,
    joined_calls,
    joined_once,
    listed_fields,
    plain_numbers,
    searched_lists,
    stacked_arrays,
)
from trainflash.knobs.edits.mapped import rows as mapped_rows
from trainflash.knobs.edits.network import (
    compiled_blocks,
    counted_targets,
    evaluation,
    frozen_calls,
    own_optimizers,
    rerun,
    sparse_gradients,
    trained,
)
from trainflash.knobs.edits.padding import buckets, columns, longest, rounded
from trainflash.knobs.edits.padding import settings as padding_settings
from trainflash.knobs.edits.ranks import dealt_rows, joined_exchange, skip_sync
from trainflash.knobs.edits.waits import concurrent_reads, made_ahead, mapped_files, no_delay, saving
from trainflash.knobs.edits.watching import counters, log_guards, log_levels, profiles, watching_modes
from trainflash.knobs.reading.expressions import same
from trainflash.knobs.scene import Scene, Target
from trainflash.knobs.splices import Edit
from trainflash.knobs.surfaces import shell

FINDERS: dict[type, Callable[[Any, Scene], tuple[Target, ...]]] = {
    of.CallArgument: calls.call_argument,
    of.ReplaceCall: lambda edit, scene: (evaluation.replace_within if edit.at == "evaluation" else calls.replace_call)(edit, scene),
    of.SiblingCall: sibling_calls.sibling_call,
    of.InsertCall: settings.insert_call,
    of.AssignedAttribute: settings.assigned_attribute,
    of.Environment: shell.environment,
    of.RemoveCall: calls_gone.remove_call,
    of.ReleasedObjects: collecting.released_objects,
    of.CollectorSettings: collecting.collector_settings,
    of.HandedFunction: collecting.handed_function,
    of.UnwrapCall: calls_gone.unwrap_call,
    of.ModelStatement: trained.model_statement,
    of.CompiledBlocks: compiled_blocks.compiled_blocks,
    of.ForwardBlock: trained.forward_block,
    of.GuardSetting: guards.guard_setting,
    of.ShownProfile: profiles.shown_profile,
    of.UnheardLog: log_guards.unheard_log,
    of.LogLevel: log_levels.log_level,
    of.Seldom: seldom.seldom,
    of.AskedFirst: asked_first.asked_first,
    of.OnReading: on_reading.on_reading,
    of.DrawnWeights: drawn_weights.drawn_weights,
    of.FftConvolution: fft_convolution.fft_convolution,
    of.FrozenCall: frozen_calls.frozen_call,
    of.PlainNumbers: plain_numbers.plain_numbers,
    of.ForeachOperations: foreach_loops.foreach_operations,
    of.JoinedCalls: joined_calls.joined_calls,
    of.JoinedOnce: joined_once.joined_once,
    of.MadeAhead: made_ahead.made_ahead,
    of.MappedRows: mapped_rows.mapped_rows,
    of.OtherChoice: other_choice.other_choice,
    of.OwnCheckpoint: rerun.own_checkpoint,
    of.CountedOnce: counters.counted_once,
    of.WatchingMode: watching_modes.watching_mode,
    of.KeptLink: kept_links.kept_link,
    of.KeptArchive: kept_archives.kept_archive,
    of.KeptIterator: kept_iterators.kept_iterator,
    of.KeptLoader: kept_loaders.kept_loader,
    of.KeptHandle: kept_handles.kept_handle,
    of.KeptContents: kept_contents.kept_contents,
    of.KeptPool: kept_pools.kept_pool,
    of.KeptLayout: kept_layout.kept_layout,
    of.NoDelay: no_delay.no_delay,
    of.JoinedExchange: joined_exchange.joined_exchange,
    of.StackedArrays: stacked_arrays.stacked_arrays,
    of.MappedFile: mapped_files.mapped_file,
    of.DealtRows: dealt_rows.dealt_rows,
    of.OwnOptimizer: own_optimizers.own_optimizer,
    of.SinglePrecision: single_precision.single_precision,
    of.Memoize: memoize.memoize,
    of.Decorate: evaluation.decorate,
    of.Interval: intervals.interval,
    of.FusedAttention: fused.fused_attention,
    of.UnreadWeights: weights.unread_weights,
    of.FourDimensions: dimensions.four_dimensions,
    of.CountedTargets: counted_targets.counted_targets,
    of.ConcurrentReads: concurrent_reads.concurrent_reads,
    of.SearchedList: searched_lists.searched_list,
    of.SparseGradients: sparse_gradients.sparse_gradients,
    of.BatchedSampling: batching.batched_sampling,
    of.PadToLongest: longest.pad_to_longest,
    of.CommonPadding: columns.common_padding,
    of.ListedFields: listed_fields.listed_fields,
    of.LengthBatches: buckets.length_batches,
    of.PaddingSetting: padding_settings.padding_setting,
    of.RoundedWidth: rounded.rounded_width,
    of.DeferredRead: later_reads.deferred_read,
    of.Hoist: hoisting.hoist,
    of.Background: saving.background,
    of.SkipSync: skip_sync.skip_sync,
    of.Accumulation: exchanging.accumulation,
    of.DrawnBatch: exchanging.drawn_batch,
    of.CutBatch: cut_batches.cut_batch,
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
