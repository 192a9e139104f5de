"""Padding by a tokenizer before batches are made, where a collator of Hugging Face's pads each batch anyway: the first one can go."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from trainflash.errors import UsageError
from trainflash.knobs.project import Project
from trainflash.knobs.reading import callees, derived, sources
from trainflash.knobs.reading.expressions import given_to, literal, refuse, same, short
from trainflash.knobs.reading.origins import Source
from trainflash.knobs.reading.python_source import PythonFile, dotted, keyword, positional, string_value
from trainflash.knobs.scene import Scene
from trainflash.knobs.training import loading, masked, padding

COLLATORS = ("transformers.DataCollatorWithPadding", "transformers.data.data_collator.DataCollatorWithPadding")
TRAINERS = ("transformers.Trainer", "transformers.Seq2SeqTrainer")
TOKENIZERS = ("tokenizer", "processing_class")  # with one of these a Trainer pads by DataCollatorWithPadding
PADDED = ("max_length", "longest", True)
FIELDS = {"input_ids", "attention_mask", "token_type_ids", "offset_mapping", "special_tokens_mask"}  # as long as the tokens
PER_TOKEN = ("return_offsets_mapping", "return_special_tokens_mask", "return_overflowing_tokens")
MODULE = "torch.nn.Module"


def unpadded(scene: Scene) -> Iterator[tuple[PythonFile, cst.Call, Source]]:
    """Calls of a tokenizer whose padding can go, with where it is typed. Raises `UsageError` with the reason where it cannot."""
    project = scene.project
    found = list(_padding_calls(project))
    if not found:
        raise refuse("no call of a tokenizer pads to max_length, in the collate function or in front of it, and no setting says so")
    _each_batch_is_padded(project, *found[0][:2])
    for file, call, _ in found:
        _as_rows(file, call)
    _looked_at(project)
    masked.leaves_out(project)
    networks = derived.classes(project, (MODULE,))
    for file, call, _ in found:
        width, function = keyword(call, "max_length"), file.function_around(call)
        if networks and (width is None or not isinstance(function, cst.FunctionDef)):
            raise refuse(f"{file.location(call)}: whether {networks[0][1].name.value} takes rows of another width is not known")
        if networks and width is not None and isinstance(function, cst.FunctionDef):
            padding.network_of_any_width(scene, file, function, width.value)
    yield from found


def _padding_calls(project: Project) -> Iterator[tuple[PythonFile, cst.Call, Source]]:
    for file in project.parsed("padding"):
        for call in file.calls:
            arg = keyword(call, "padding")
            own = any(True for _ in callees.meant(project, file, call)) and "token" not in file.text(call.func).lower()
            if arg is None or own or (file.full_name(call.func) or "").split(".")[0] in ("torch", "numpy"):
                continue
            if (file.full_name(call.func) or "").split(".")[-1].startswith("DataCollator"):
                continue
            source = _typed(project, file, call)
            if source is not None and any(same(source.value, each) for each in PADDED):
                yield file, call, source


def _typed(project: Project, file: PythonFile, call: cst.Call) -> Source | None:
    try:
        return sources.Resolver(project).argument(file, call, "padding", None)
    except UsageError:
        return None


def _each_batch_is_padded(project: Project, where: PythonFile, pads: cst.Call) -> None:
    """Raises `UsageError`, which names the call that `pads`, unless all that makes batches pads each one to its longest sample."""
    told = f"{where.location(pads)}: `padding` of `{short(where.text(pads.func))}`"
    trainers = {*TRAINERS, *(owner.name.value for _, owner in derived.classes(project, TRAINERS))}
    makers = 0
    for file in project.parsed():
        for call in file.calls:
            full = file.full_name(call.func) or ""
            trainer = full in trainers or full.split(".")[-1] in trainers - set(TRAINERS)
            if not trainer and full not in loading.LOADERS:
                continue
            makers += 1
            given = keyword(call, "data_collator") if trainer else keyword(call, "collate_fn") or positional(call, loading.COLLATE_AT)
            default = given is None and trainer and any(keyword(call, name) is not None for name in TOKENIZERS)
            if not default and (given is None or not _pads(file, given.value)):
                raise refuse(f"{told} may go only where each batch is padded again, and {file.location(call)} does not show that it is")
    if not makers:
        raise refuse(f"{told}: what makes batches of it is not known")


def _pads(file: PythonFile, node: cst.BaseExpression) -> bool:
    """Whether a collator pads to the longest sample of each batch: transformers' own, as it comes or asked for that."""
    if isinstance(node, cst.Name):
        values = [value for around in (file.function_around(node), file.module) if around for value in given_to(around, node.value)]
        return len(values) == 1 and not isinstance(values[0], cst.Name) and _pads(file, values[0])
    if not isinstance(node, cst.Call) or file.full_name(node.func) not in COLLATORS:
        return False
    asked = keyword(node, "padding") or positional(node, 1)
    return asked is None or literal(asked.value) in (True, "longest")


def _as_rows(file: PythonFile, call: cst.Call) -> None:
    """Raises `UsageError` where the call makes one tensor of rows that would be of unequal length, or more fields of their length."""
    here, function = file.location(call), file.function_around(call)
    one = isinstance(function, cst.FunctionDef) and function.name.value == "__getitem__"
    if keyword(call, "return_tensors") is not None and not one:
        raise refuse(f"{here}: the call makes tensors, for which its rows must be of one length")
    for name in PER_TOKEN:
        if keyword(call, name) is not None:
            raise refuse(f"{here}: {name} gives more fields of the rows' length, which the collator does not pad")


def _looked_at(project: Project) -> None:
    """Raises `UsageError` where the program itself reads what a tokenizer gives, which may count on its length."""
    for file in project.parsed():
        for node in file.nodes:
            index = node.slice[0].slice if isinstance(node, cst.Subscript) else None
            key = string_value(index.value) if isinstance(index, cst.Index) else None
            name = node.attr.value if isinstance(node, cst.Attribute) else key
            function = file.function_around(node) if name in FIELDS else None
            if name in FIELDS and (function is None or function.name.value != "forward") and not _handed_on(file, node, name):
                raise refuse(f"{file.location(node)}: `{short(file.text(node))}` may count on rows of one length")
        for call in file.calls:
            if (dotted(call.func) or "").split(".")[-1] == "word_ids":
                raise refuse(f"{file.location(call)}: labels of single tokens would be of another length")


def _handed_on(file: PythonFile, node: cst.CSTNode, name: str) -> bool:
    """Whether a field becomes the field of that name of one sample: `{"input_ids": torch.tensor(rows["input_ids"][i])}`."""
    function, up = file.function_around(node), file.parent(node)
    if isinstance(up, cst.Subscript) and up.value is node and isinstance(index := up.slice[0].slice, cst.Index):
        node, up = (up, file.parent(up)) if isinstance(index.value, cst.Name) else (node, None)
    if isinstance(up, cst.Arg) and isinstance(call := file.parent(up), cst.Call) and len(call.args) == 1:
        node, up = (call, file.parent(call)) if file.full_name(call.func) in ("torch.tensor", "torch.as_tensor", "list") else (node, None)
    sample = function is not None and function.name.value == "__getitem__"
    return sample and isinstance(up, cst.DictElement) and up.value is node and string_value(up.key) == name
