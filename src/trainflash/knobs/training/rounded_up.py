"""What a smaller multiple of a collator's would change beside the padding: draws, formats that need theirs, batches of a fixed width."""

from __future__ import annotations

import libcst as cst

from trainflash.errors import UsageError
from trainflash.knobs.project import Project
from trainflash.knobs.reading import writes
from trainflash.knobs.reading.expressions import literal, refuse, short
from trainflash.knobs.reading.python_source import PythonFile, keyword, positional
from trainflash.knobs.reading.sources import Resolver
from trainflash.knobs.scene import Target

MULTIPLE = "pad_to_multiple_of"
PADDING = {
    "DataCollatorWithPadding": 1,
    "DataCollatorForTokenClassification": 1,
    "DataCollatorForMultipleChoice": 1,
    "DataCollatorForSeq2Seq": 2,
}
DRAWS = "DataCollatorForLanguageModeling"  # which tokens to mask: transformers/data/data_collator.py, torch_mask_tokens
LONGEST = (True, "longest")
EIGHT_BITS = "fp8"  # whose products need multiples of 16: https://huggingface.co/docs/accelerate/usage_guides/low_precision_training


def check(project: Project, calls: tuple[str, ...], file: PythonFile, call: cst.Call, resolver: Resolver) -> None:
    """Raises `UsageError` where the program shows that the multiple has to stay, or decides nothing."""
    others = [
        (where, each)
        for where in project.parsed("DataCollator")
        for each in where.calls
        if where.full_name(each.func) in calls and each is not call
    ]
    for where, each in others:
        raise refuse(f"{where.location(each)}: this collator may be the one that pads the training batches")
    for where, value in writes.to_key(project, (MULTIPLE,)):
        raise refuse(f"{where.location(value)}: {MULTIPLE} is assigned again here, so the value in the call may not count")
    for where in project.parsed(EIGHT_BITS):
        raise refuse(f"{where.path}: {EIGHT_BITS} needs multiples of its own")
    if any(EIGHT_BITS in word for word in project.arguments):
        raise refuse(f"the command asks for {EIGHT_BITS}, which needs multiples of its own")
    name = (file.full_name(call.func) or "").rpartition(".")[2]
    try:
        padding = resolver.unseen().argument(file, call, "padding", PADDING.get(name))
    except UsageError:
        raise refuse(f"{file.location(call)}: how `{short(file.text(call))}` pads is not known") from None
    if padding is not None and padding.value not in LONGEST:
        raise refuse(f"{padding.shown} is {padding.value!r}: batches are not padded to their longest sample")


def whole(file: PythonFile, call: cst.Call, target: Target) -> Target:
    """`target` with what it may change; raises `UsageError` where no multiple stands there."""
    if not isinstance(target.current, int) or isinstance(target.current, bool):
        raise refuse(f"{target.where} is {target.current!r}: nothing is rounded up")
    masks = keyword(call, "mlm") or positional(call, 1)
    if (file.full_name(call.func) or "").rpartition(".")[2] != DRAWS or (masks is not None and literal(masks.value) is False):
        return target
    return Target(
        target.location, target.current, target.write, target.where, risk="order", because="which tokens are masked is drawn for the width"
    )
