"""Samples of like length in one batch: a batch sampler in place of batch size and shuffling, for a loader that pads to the longest sample.

The order begins with the permutation that the loader's own sampler would draw, by a seed from the same stream. Each sample stays in each
pass once.
"""

from __future__ import annotations

import libcst as cst

from trainflash.knobs.edits import imports
from trainflash.knobs.edits.batching import loader_is_only_iterated
from trainflash.knobs.edits.collating import LOADER
from trainflash.knobs.edits.statements import above_in_module, argument
from trainflash.knobs.edits.which_call import the_call
from trainflash.knobs.kinds import LengthBatches
from trainflash.knobs.reading.expressions import literal, refuse, short
from trainflash.knobs.reading.python_source import PythonFile, descendants, has_splat, keyword, positional
from trainflash.knobs.scene import Scene, Target
from trainflash.knobs.splices import Splice
from trainflash.schema import LoaderFacts

NAME, SAMPLES = "LengthBatches", "samples"
APART = ("sampler", "batch_sampler", "generator")  # what orders samples in another way
LONGEST_READ_S = 10.0  # own: reading all samples once must take no longer
CLASS = '''\
class {name}({sampler}):
    """Batches of samples of like length: a new order for each pass, sorted in pieces of 50 batches, the batches in any order."""

    def __init__(self, dataset, batch_size, drop_last=False):
        self.sizes = [self.size(dataset[index]) for index in range(len(dataset))]
        self.batch_size, self.drop_last = batch_size, drop_last

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
        whole, rest = divmod(len(self.sizes), self.batch_size)
        return whole + (rest > 0 and not self.drop_last)

    def __iter__(self):
        seed = int({torch}empty((), dtype={torch}int64).random_().item())
        generator = {torch}Generator().manual_seed(seed)
        order = {torch}randperm(len(self.sizes), generator=generator).tolist()
        size, piece = self.batch_size, 50 * self.batch_size
        for at in range(0, len(order), piece):
            order[at : at + piece] = sorted(order[at : at + piece], key=self.sizes.__getitem__)
        batches = [order[at : at + size] for at in range(0, len(order), size)][: len(self)]
        for at in {torch}randperm(len(batches), generator=generator).tolist():
            yield batches[at]


'''


def length_batches(edit: LengthBatches, scene: Scene) -> tuple[Target, ...]:
    """The training loader's call. Raises `UsageError` where its order is not a shuffled one of its own, or reading all samples is no small
    matter."""
    file, call = the_call(LOADER, scene)
    here, loader = file.location(call), scene.facts.get("train_loader")
    _can_be_read(loader, here)
    if has_splat(call, "*") or has_splat(call, "**") or (file.full_name(call.func) or "") not in LOADER.calls:
        raise refuse(f"{here}: what else the loader is given cannot be told")
    apart = next((name for name in APART if keyword(call, name) is not None), None)
    if apart is not None:
        raise refuse(f"{here}: the loader is given a {apart} of its own")
    plain = [arg for arg in call.args if arg.keyword is None]
    data, size = positional(call, 0) or keyword(call, "dataset"), positional(call, 1) or keyword(call, "batch_size")
    shuffle = positional(call, 2) or keyword(call, "shuffle")
    if len(plain) > 3 or data is None or size is None or shuffle is None or literal(shuffle.value) is not True:
        raise refuse(f"{here}: `{short(file.text(call))}` is not written as a data set, a batch size and shuffle=True")
    if any(isinstance(node, cst.Name) and node.value == NAME for node in file.nodes):
        raise refuse(f"{here}: the name {NAME} means something else in {file.path}")
    loader_is_only_iterated(scene)
    drop = keyword(call, "drop_last")
    name, named = _named(file, call, data.value)
    given = [name, file.text(size.value), *([f"drop_last={file.text(drop.value)}"] if drop is not None else [])]
    sampler, needed = imports.reach(file, "torch.utils.data", "Sampler")
    whole, more = imports.reach(file, "torch", "int64")
    module = whole.removesuffix("int64")
    if not module:
        raise refuse(f"{here}: torch has no name in {file.path}")
    text = CLASS.format(name=NAME, sampler=sampler, torch=module)
    replaced = [arg for arg in (size, shuffle, drop) if arg is not None]
    passed = _exchanged(file, call, replaced, f"batch_sampler={NAME}({', '.join(given)})", data, name)
    added = (*needed, *(each for each in more if each not in needed), above_in_module(file, call, text))
    splices = (*added, *named, *passed)
    return (Target(here, None, lambda value: splices, f"the batches of the loader at {here}", "batches of like length"),)


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
