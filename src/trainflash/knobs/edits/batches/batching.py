"""One index for a whole batch, instead of one for each of its samples."""

from __future__ import annotations

import re

import libcst as cst

from trainflash.knobs.edits import imports
from trainflash.knobs.edits.batches.collating import LOADER
from trainflash.knobs.edits.which_call import the_call
from trainflash.knobs.kinds import BatchedSampling
from trainflash.knobs.reading import callees
from trainflash.knobs.reading.expressions import literal, refuse, value_of
from trainflash.knobs.reading.python_source import PythonFile, descendants, dotted, has_splat, keyword, positional, string_value
from trainflash.knobs.scene import Scene, Target
from trainflash.knobs.splices import Splice

TENSORS = "torch.utils.data.TensorDataset"
OWN = ("batch_size", "shuffle", "drop_last", "generator")
OTHERS = ("num_workers", "pin_memory", "persistent_workers", "prefetch_factor", "worker_init_fn", "multiprocessing_context", "timeout")
READS = ("batch_size", "sampler", "batch_sampler", "drop_last")  # attributes of a loader that would mean something else
REMADE = ("prepare", "prepare_data_loader", "fit", "setup_dataloaders")  # calls that build the loader anew from those attributes
REMAKERS = {"accelerate", "catalyst", "composer", "fastai", "lightning", "lightning_fabric", "pytorch_lightning", "skorch", "transformers"}
CONFIGS = re.compile(
    r"(arg|cfg|conf|config|opt|opts|option|hp|hparam|param|flag|setting|trial|sweep)s?$|^self$|^cls$"
)  # what holds options
PARTED = {
    "load",
    "tolist",
    "split",
    "chunk",
    "unbind",
    "tensor_split",
    "array_split",
    "hsplit",
    "vsplit",
    "nonzero",
    "where",
    "max",
    "min",
    "sort",
    "topk",
    "unique",
    "meshgrid",
    "loadtxt",
}  # may give several, or what is no array
NUMBERS = {"arange", "empty", "eye", "geomspace", "identity", "linspace", "logspace", "ones", "zeros"}  # of NumPy, without a dtype
DEEPEST = 6  # own: chains of names that are followed to a tensor


def batched_sampling(edit: BatchedSampling, scene: Scene) -> tuple[Target, ...]:
    """The training loader's call. Raises `UsageError` where its items are not provably plain reads of tensors."""
    file, call = the_call(LOADER, scene)
    here = file.location(call)
    given = {arg.keyword.value: arg for arg in call.args if arg.keyword is not None}
    strange = sorted(set(given) - {*OWN, *OTHERS, "dataset"})
    if strange or has_splat(call, "*") or has_splat(call, "**"):
        raise refuse(f"{here}: the loader is also given {strange[0] if strange else 'unpacked arguments'}")
    if (file.full_name(call.func) or "") not in LOADER.calls:
        raise refuse(f"{here}: `{file.text(call.func)}` is a loader of its own, which may not take a sampler")
    data = positional(call, 0) or given.get("dataset")
    size = given.get("batch_size") or positional(call, 1)
    if data is None or size is None or positional(call, 2) is not None:
        raise refuse(f"{here}: the loader's arguments are not written as dataset, batch_size and keywords")
    shuffle = literal(given["shuffle"].value) if "shuffle" in given else False
    if not isinstance(shuffle, bool):
        raise refuse(f"{here}: whether it shuffles is not written as True or False")
    loader_is_only_iterated(scene)
    length = _items_are_reads(scene, file, call, data.value)
    drop = file.text(given["drop_last"].value) if "drop_last" in given else "False"
    sampler, first = imports.reach(file, "torch.utils.data", "RandomSampler" if shuffle else "SequentialSampler")
    batches, second = imports.reach(file, "torch.utils.data", "BatchSampler")
    generator = f", generator={file.text(given['generator'].value)}" if shuffle and "generator" in given else ""
    made = f"sampler={batches}({sampler}({length}{generator}), {file.text(size.value)}, {drop})"
    splices = [*first, *second]
    taken = [given[name] for name in ("shuffle", "drop_last") if name in given]
    start, end = file.span(size.value)
    own = "batch_size=None" if size.keyword is None and size is not positional(call, 1) else "None"
    splices.append(Splice(file.path, start, end, own if not taken else "None"))
    if taken:
        a, b = _argument(file, taken[0])
        splices.append(Splice(file.path, a, b, made))
        splices += [_without(file, call, arg) for arg in taken[1:]]
    else:
        after = file.outer_span(size.value)[1]
        splices.append(Splice(file.path, after, after, f", {made}"))
    return (Target(here, None, lambda value: tuple(splices), f"the loader at {here}", "whole batches by one index"),)


def _argument(file: PythonFile, arg: cst.Arg) -> tuple[int, int]:
    """Bytes of an argument without the comma behind it."""
    return file.span(arg.keyword or arg.value)[0], file.outer_span(arg.value)[1]


def _without(file: PythonFile, call: cst.Call, arg: cst.Arg) -> Splice:
    """Takes `arg` away with the comma in front of it."""
    before = call.args[list(call.args).index(arg) - 1]
    return Splice(file.path, file.outer_span(before.value)[1], file.outer_span(arg.value)[1], "")


def loader_is_only_iterated(scene: Scene) -> None:
    """Raises `UsageError` where the program reads of a loader what would be another value, or has it made anew."""
    project = scene.project
    library = any(name.split(".")[0] in REMAKERS for file in project.parsed() for name in file.imported.values())
    for file in project.parsed():
        for node in file.nodes:
            if isinstance(node, cst.Attribute) and node.attr.value in READS and not CONFIGS.search((dotted(node.value) or "").lower()):
                raise refuse(f"{file.location(node)}: the program reads `{file.text(node)}`, which would be another value")
            remade = library and isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute) and node.func.attr.value in REMADE
            if remade and not any(True for _ in callees.meant(project, file, node)):  # type: ignore[arg-type]
                raise refuse(f"{file.location(node)}: `{file.text(node.func)}` makes a loader of its own out of this one")


def _items_are_reads(scene: Scene, file: PythonFile, call: cst.Call, data: cst.BaseExpression) -> str:
    """An expression with the length of the data set; raises `UsageError` unless its items are plain reads of tensors."""
    loader = scene.facts.get("train_loader")
    made = value_of(file, data)
    if isinstance(made, cst.Call) and file.full_name(made.func) == TENSORS and (loader is None or loader.dataset == "TensorDataset"):
        if isinstance(data, cst.Name):
            return data.value
        if made.args and isinstance(made.args[0].value, cst.Name) and not made.args[0].star:
            return made.args[0].value.value
        raise refuse(f"{file.location(call)}: the data set has no name, so its length cannot be asked for")
    place = loader.dataset_location if loader is not None else None
    if not scene.project.owns(place):
        raise refuse(f"{file.location(call)}: the data set is neither a TensorDataset nor a class of this project")
    where = scene.project.python(place.file)  # type: ignore[union-attr]
    function = where.function_at(place)  # type: ignore[arg-type]
    owner = where.class_of(function) if function is not None else None
    if function is None or owner is None or function.name.value != "__getitem__":
        raise refuse(f"{place}: is no __getitem__")
    _only_reads(where, owner, function)
    if not isinstance(data, cst.Name):
        raise refuse(f"{file.location(call)}: the data set has no name, so its length cannot be asked for")
    return data.value


def _only_reads(file: PythonFile, owner: cst.ClassDef, function: cst.FunctionDef) -> None:
    index = function.params.params[1].name.value if len(function.params.params) == 2 else ""
    body = function.body.body
    only = body[0].body[0] if len(body) == 1 and isinstance(body[0], cst.SimpleStatementLine) else None
    if not isinstance(only, cst.Return) or only.value is None or not index:
        raise refuse(f"{file.location(function)}: does more than return what it reads")
    parts = [only.value]
    if isinstance(only.value, (cst.Tuple, cst.List, cst.Dict)):
        parts = [element.value for element in only.value.elements]
    for part in parts:
        plain = isinstance(part, cst.Subscript) and (dotted(part.value) or "").startswith("self.") and len(part.slice) == 1
        if not plain or file.text(part.slice[0]) != index or not _array(file, owner, part.value, 0):  # type: ignore[attr-defined]
            raise refuse(f"{file.location(part)}: `{file.text(part)}` is not known to be the read of a tensor")


def _of_numbers(file: PythonFile, owner: cst.ClassDef, call: cst.Call, depth: int) -> bool:
    """Whether an array of NumPy's holds numbers: texts and objects stay arrays where a loader makes a tuple, or a tensor of them."""
    full = file.full_name(call.func) or ""
    told = keyword(call, "dtype")
    if told is not None:
        return _numeric(file, told.value)
    if full.split(".")[-1] in NUMBERS or full.startswith("numpy.random."):
        return True
    given = [arg.value for arg in call.args if arg.keyword is None]
    parts = [each.value for value in given for each in (value.elements if isinstance(value, (cst.List, cst.Tuple)) else ())]
    return any(isinstance(each, cst.BaseNumber) or _array(file, owner, each, depth + 1) for each in (*given, *parts))


def _numeric(file: PythonFile, dtype: cst.BaseExpression) -> bool:
    said = string_value(dtype) or (file.full_name(dtype) or "").split(".")[-1]
    return said.startswith(("bool", "double", "float", "half", "int", "long", "single", "uint")) and said[-1:] != "_"


def _array(file: PythonFile, owner: cst.ClassDef, node: cst.BaseExpression, depth: int) -> bool:
    """Whether `node` is surely a tensor or an array: made by torch or numpy, or computed from one."""
    if depth > DEEPEST:
        return False
    if isinstance(node, cst.Call):
        full = file.full_name(node.func) or ""
        if full.split(".")[0] == "torch":
            return full.split(".")[-1] not in PARTED
        if full.split(".")[0] == "numpy":
            return full.split(".")[-1] not in PARTED and _of_numbers(file, owner, node, depth)
        if isinstance(node.func, cst.Attribute) and node.func.attr.value == "astype":
            return bool(node.args) and _numeric(file, node.args[0].value)
        inside = isinstance(node.func, cst.Attribute) and node.func.attr.value not in ("tolist", "item", "split", "chunk", "unbind")
        return inside and _array(file, owner, node.func.value, depth + 1)  # type: ignore[union-attr]
    if isinstance(node, (cst.BinaryOperation, cst.Comparison)):
        others = [node.right] if isinstance(node, cst.BinaryOperation) else [each.comparator for each in node.comparisons]
        return any(_array(file, owner, side, depth + 1) for side in (node.left, *others))
    if isinstance(node, cst.Subscript):
        return _array(file, owner, node.value, depth + 1)
    name = dotted(node)
    if name is None:
        return False
    stored = [
        assign.value
        for assign in descendants(owner, cst.Assign)
        if any(dotted(target.target) == name for target in assign.targets) and assign.value is not node
    ]
    return bool(stored) and all(_array(file, owner, value, depth + 1) for value in stored)
