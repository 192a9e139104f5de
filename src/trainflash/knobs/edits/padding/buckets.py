"""Samples of like length in one batch, for a loader that pads to the longest sample: a sampler around the one that makes its batches.

That is the loader's own batch sampler, or one of the sampler and batch size that it is given, or that it would make itself: so the order
begins with the very permutation that the program drew before. Each sample stays in each pass as often as it was there.
"""

from __future__ import annotations

import libcst as cst

from trainflash.knobs.edits import imports
from trainflash.knobs.edits.batches.batching import loader_is_only_iterated
from trainflash.knobs.edits.batches.collating import LOADER
from trainflash.knobs.edits.padding import only_shuffles
from trainflash.knobs.edits.statements import above_in_module, argument
from trainflash.knobs.edits.which_call import the_call
from trainflash.knobs.kinds import LengthBatches
from trainflash.knobs.reading.expressions import free_name, literal, refuse, short
from trainflash.knobs.reading.python_source import PythonFile, descendants, has_splat, keyword, positional
from trainflash.knobs.scene import Scene, Target
from trainflash.knobs.splices import Splice
from trainflash.knobs.training import worker_state
from trainflash.schema import LoaderFacts

NAME, SAMPLES = "LengthBatches", "samples"
LONGEST_READ_S = 10.0  # own: reading all samples once must take no longer
CLASS = '''\
class {name}:
    """The batches of `batches`, 50 at a time, with samples of like length in each, in any order."""

    def __init__(self, batches, dataset):
        self.batches = batches
        self.sizes = [self.size(dataset[index]) for index in range(len(dataset))]

    @staticmethod
    def size(sample):
        """How much there is of a sample, which grows with its length."""
        if isinstance(sample, dict):
            sample = list(sample.values())
        parts = sample if isinstance(sample, (tuple, list)) else [sample]
        sized = [part for part in parts if hasattr(part, "__len__")]
        sizes = [part.nbytes if hasattr(part, "nbytes") else len(part) for part in sized]
        return sum(sizes) if sizes else len(parts)

    def __len__(self):
        return len(self.batches)

    def __iter__(self):
        batches = iter(self.batches)
        while piece := [list(batch) for batch in {islice}(batches, 50)]:
            generator = {torch}Generator().manual_seed(int(piece[0][0]))
            drawn = iter(sorted((index for batch in piece for index in batch), key=self.sizes.__getitem__))
            alike = [list({islice}(drawn, len(batch))) for batch in piece]
            for at in {torch}randperm(len(alike), generator=generator).tolist():
                yield alike[at]


'''


def length_batches(edit: LengthBatches, scene: Scene) -> tuple[Target, ...]:
    """The training loader's call. Raises `UsageError` where its order is no mixed one, or reading all samples is no small matter."""
    file, call = the_call(LOADER, scene)
    here, loader = file.location(call), scene.facts.get("train_loader")
    _can_be_read(loader, here)
    if has_splat(call, "*") or has_splat(call, "**") or (file.full_name(call.func) or "") not in LOADER.calls:
        raise refuse(f"{here}: what else the loader is given cannot be told")
    data = positional(call, 0) or keyword(call, "dataset")
    if data is None or len([arg for arg in call.args if arg.keyword is None]) > 3:
        raise refuse(f"{here}: `{short(file.text(call))}` names no data set, or more by place than how it is shuffled")
    free_name(file, call, NAME)
    loader_is_only_iterated(scene)
    workers = keyword(call, "num_workers")
    if loader is None or loader.num_workers or (workers is not None and literal(workers.value) != 0):
        worker_state.leaves_nothing(scene.project, "workers would begin with what reading the lengths left there")
    for given in (keyword(call, "batch_sampler"), keyword(call, "sampler")):
        if given is not None:
            only_shuffles.check(scene.project, file, given.value)
    name, named = _named(file, call, data.value)
    batches, replaced, added = _batches(file, call, name)
    islice, more = imports.reach(file, "itertools", "islice")
    whole, most = imports.reach(file, "torch", "Generator")
    module = whole.removesuffix("Generator")
    if not module:
        raise refuse(f"{here}: torch has no name in {file.path}")
    text = CLASS.format(name=NAME, islice=islice, torch=module)
    passed = _exchanged(file, call, replaced, f"batch_sampler={NAME}({batches}, {name})", data, name)
    needed = dict.fromkeys((*added, *more, *most))
    splices = (*needed, above_in_module(file, call, text), *named, *passed)
    return (Target(here, None, lambda value: splices, f"the batches of the loader at {here}", "batches of like length"),)


def _batches(file: PythonFile, call: cst.Call, data: str) -> tuple[str, list[cst.Arg], tuple[Splice, ...]]:
    """The sampler that makes the loader's batches, written out; the arguments that go for it; what is imported."""
    own, sampler = keyword(call, "batch_sampler"), keyword(call, "sampler")
    if own is not None:
        return file.text(own.value), [own], ()
    size, shuffle = positional(call, 1) or keyword(call, "batch_size"), positional(call, 2) or keyword(call, "shuffle")
    drop, generator = keyword(call, "drop_last"), keyword(call, "generator")
    mixed = shuffle is not None and literal(shuffle.value) is True
    if size is None or not (mixed or sampler is not None) or (sampler is not None and shuffle is not None):
        raise refuse(f"{file.location(call)}: `{short(file.text(call))}` is not written as a batch size with shuffle=True or a sampler")
    made, needed = imports.reach(file, "torch.utils.data", "BatchSampler")
    more: tuple[Splice, ...] = ()
    if sampler is not None:
        drawn = file.text(sampler.value)
    else:
        random, more = imports.reach(file, "torch.utils.data", "RandomSampler")
        drawn = f"{random}({data}{f', generator={file.text(generator.value)}' if generator is not None else ''})"
    text = f"{made}({drawn}, {file.text(size.value)}, {file.text(drop.value) if drop is not None else False})"
    return text, [arg for arg in (size, shuffle, sampler, drop) if arg is not None], (*needed, *more)


def _can_be_read(loader: LoaderFacts | None, here: object) -> None:
    if loader is None or loader.dataset_len is None or loader.iterable:
        raise refuse(f"{here}: the data set has no known length")
    if loader.draws:
        raise refuse(f"{here}: making a sample draws random numbers, so its length is another one each time")
    each = loader.getitem_ms.mean_ms / loader.batch_size if loader.getitem_ms is not None and loader.batch_size else 0.0
    if each * loader.dataset_len > 1000 * LONGEST_READ_S:
        raise refuse(f"{here}: reading all {loader.dataset_len} samples for their lengths takes {each * loader.dataset_len / 1000:.0f} s")


def _named(file: PythonFile, call: cst.Call, data: cst.BaseExpression) -> tuple[str, tuple[Splice, ...]]:
    """A name for the data set: its own, or that of a new line in front of the statement, where the call makes it."""
    if isinstance(data, (cst.Name, cst.Attribute)):
        return file.text(data), ()
    statement = file.statement(call)
    around = file.function_around(call) or file.module
    taken = any(name.value == SAMPLES for name in descendants(around, cst.Name))  # type: ignore[attr-defined]
    if statement is None or taken or any(isinstance(up, (cst.BaseComp, cst.Lambda, cst.IfExp)) for up in file.ancestors(call)):
        raise refuse(f"{file.location(call)}: the data set is made in the call, and would be made once more")
    start = file.span(statement)[0]
    return SAMPLES, (Splice(file.path, start, start, f"{SAMPLES} = {file.text(data)}{file.newline}{file.indent(statement)}"),)


def _exchanged(file: PythonFile, call: cst.Call, replaced: list[cst.Arg], text: str, data: cst.Arg, name: str) -> list[Splice]:
    """The arguments `replaced` away, and `text` as a keyword in front of the others; the data set by its name."""
    left = [arg for arg in call.args if all(arg is not each for each in replaced)]
    start, end = file.span(call.args[0])[0], file.outer_span(call.args[-1].value)[1]
    lines = file.lines_of(call.args[-1])[0] > file.lines_of(call.func)[1]
    between = f",{file.newline}{file.indent(call.args[-1])}" if lines else ", "
    texts = [name if arg is data and arg.keyword is None else argument(file, arg) for arg in left]
    at = next((number for number, arg in enumerate(left) if arg.keyword is not None and arg is not data), len(left))
    return [Splice(file.path, start, end, between.join([*texts[:at], text, *texts[at:]]))]
