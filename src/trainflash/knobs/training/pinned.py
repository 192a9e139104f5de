"""Whether batches can be pinned: they lie in host memory, and are what torch's loader knows how to pin.

What it knows: tensors, containers of them, and objects with a method `pin_memory`; anything else is left as it is:
https://docs.pytorch.org/docs/stable/data.html#memory-pinning.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from trainflash.knobs.project import Project
from trainflash.knobs.reading import callees, library_settings
from trainflash.knobs.reading.expressions import UNKNOWN, literal, refuse, short
from trainflash.knobs.reading.python_source import PythonFile, descendants, dotted, keyword, positional
from trainflash.knobs.training import loading

FORMATS = ("set_format", "with_format")  # of the datasets library, which put rows where they say
OF_TRAINERS = ("train_dataset", "eval_dataset", "data_collator")


def check(project: Project, file: PythonFile, call: cst.Call) -> None:
    """Raises `UsageError` where the loader that `call` makes may give batches that cannot be pinned, or are left as they are."""
    _on_host(project)
    collate = keyword(call, "collate_fn") or positional(call, loading.COLLATE_AT)
    if collate is not None:
        _collates(project, file, collate.value)


def shared(project: Project, call: cst.Call, device: object) -> None:
    """The same for all other loaders that do not say themselves whether they pin."""
    for file in project.parsed("DataLoader"):
        for other in file.calls:
            if other is call or file.full_name(other.func) not in loading.LOADERS:
                continue
            own = keyword(other, "pin_memory")
            if own is None or literal(own.value) is UNKNOWN:
                loading.check(project, file, other, "pin_memory", device)
                check(project, file, other)


def of_trainer(project: Project) -> None:
    """The same for the loaders that a trainer of a library makes."""
    _on_host(project)
    for file in project.parsed("Trainer"):
        for call in file.calls:
            given = [keyword(call, name) for name in OF_TRAINERS] if callees.called_name(call).endswith("Trainer") else []
            for arg in (each for each in given if each is not None):
                _placed(project, file, arg.value)
                if arg.keyword is not None and arg.keyword.value == OF_TRAINERS[-1]:
                    _collates(project, file, arg.value)


def _on_host(project: Project) -> None:
    for file in project.parsed():
        for call in file.calls:
            target = keyword(call, "device") if callees.method_name(call) in FORMATS else None
            if library_settings.full_name(project, file, call.func) == "torch.set_default_device":
                target = positional(call, 0) or keyword(call, "device")
            if target is not None and "cpu" not in file.text(target):
                raise refuse(f"{file.location(call)}: `{short(file.text(call))}` may make tensors on the device, which are not pinned")


def _placed(project: Project, file: PythonFile, node: cst.BaseExpression) -> None:
    moved = loading.on_device(project, file, node)
    if moved is not None:
        raise refuse(f"{moved}: batches may lie on the device, where nothing is pinned")


def _collates(project: Project, file: PythonFile, node: cst.BaseExpression) -> None:
    """A collate function leaves batches in host memory, and does not return objects that torch would not look into."""
    _placed(project, file, node)
    for where, function in _functions(project, file, node):
        _placed(project, where, function.body)  # type: ignore[arg-type]
        for each in descendants(function.body, cst.Return):
            made = each.value if isinstance(each.value, cst.Call) else None  # type: ignore[attr-defined]
            owner = _opaque(project, dotted(made.func)) if made is not None else None
            if owner is not None:
                raise refuse(f"{where.location(each)}: a {owner} has no method pin_memory, so its tensors would stay as they are")


def _functions(project: Project, file: PythonFile, node: cst.BaseExpression) -> Iterator[callees.Function]:
    """The function that makes batches: by its name, with some arguments bound, or what an object of a class does when it is called."""
    if isinstance(node, cst.Call):
        if file.full_name(node.func) == "functools.partial" and node.args:
            yield from _functions(project, file, node.args[0].value)
            return
        name = callees.called_name(node)
        for where in project.parsed(f"class {name}"):
            yield from (
                (where, each)
                for each in where.functions
                if each.name.value == "__call__" and (owner := where.class_of(each)) is not None and owner.name.value == name
            )
    elif isinstance(node, (cst.Name, cst.Attribute)):
        yield from callees.behind(project, file, node)


def _opaque(project: Project, name: str | None) -> str | None:
    """The name of a class of the program's that is derived from nothing and cannot pin itself; None for anything else."""
    last = (name or "").rpartition(".")[2]
    for file in project.parsed(f"class {last}") if last else ():
        for node in file.nodes:
            if isinstance(node, cst.ClassDef) and node.name.value == last and not node.bases:
                methods = {each.name.value for each in descendants(node, cst.FunctionDef)}  # type: ignore[attr-defined]
                return None if "pin_memory" in methods else last
    return None
