"""Samples with lists of numbers, of which torch's own collate function makes a tensor for each number: one tensor for the whole list.

The batch stays what it was, a list with a tensor for each number; only that they are made together, and taken apart as rows of one tensor.
"""

from __future__ import annotations

from trainflash.knobs.edits import imports
from trainflash.knobs.edits.batches.collating import LOADER, collate_with, own_collate
from trainflash.knobs.edits.statements import above_in_module
from trainflash.knobs.edits.which_call import the_call
from trainflash.knobs.kinds import ListedFields
from trainflash.knobs.reading.expressions import free_name, refuse
from trainflash.knobs.scene import Scene, Target

NAME = "collate_lists"
FUNCTION = '''\
def {name}(samples):
    """As default_collate joins samples, but with one tensor for a field that is a list of numbers in each of them."""
    first = samples[0]
    if type(first) is dict:
        return {{key: {name}([sample[key] for sample in samples]) for key in first}}
    if type(first) is tuple and len(set(map(len, samples))) == 1:
        return [{name}(field) for field in zip(*samples)]
    lists = all(type(sample) is list for sample in samples) and len(set(map(len, samples))) == 1
    kinds = set().union(*(map(type, sample) for sample in samples)) if lists else set()
    if kinds not in ({{float}}, {{int}}):
        return {collate}(samples)
    rows = {tensor}(samples, dtype={double} if kinds == {{float}} else None)
    return list(rows.t().contiguous())


'''


def listed_fields(edit: ListedFields, scene: Scene) -> tuple[Target, ...]:
    """The training loader's call. Raises `UsageError` where it joins samples in another way than torch's own."""
    file, call = the_call(LOADER, scene)
    here = file.location(call)
    if own_collate(scene, file, call) is not None:
        raise refuse(f"{here}: the loader is given a collate function of the program's own")
    free_name(file, call, NAME)
    collate, needed = imports.reach(file, "torch.utils.data", "default_collate")
    tensor, more = imports.reach(file, "torch", "tensor")
    double, most = imports.reach(file, "torch", "float64")
    text = FUNCTION.format(name=NAME, collate=collate, tensor=tensor, double=double)
    splices = (*dict.fromkeys((*needed, *more, *most)), above_in_module(file, call, text), collate_with(file, call, None, NAME))
    return (Target(here, None, lambda value: splices, f"collate_fn of the call at {here}", "one tensor for a list"),)
