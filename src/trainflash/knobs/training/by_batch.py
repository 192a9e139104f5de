"""What an evaluation does once for each batch, so that larger batches give something else."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from trainflash.knobs.effects import harmless
from trainflash.knobs.project import Project
from trainflash.knobs.reading import callees
from trainflash.knobs.reading.expressions import refuse, short
from trainflash.knobs.reading.python_source import LOOPS, PythonFile, descendants

FILES = {"save", "savez", "savez_compressed", "savetxt", "dump", "to_csv", "to_parquet", "imwrite", "imsave", "savefig", "save_image"}
FILES |= {"write_text", "write_bytes", "write_png", "write_jpeg", "save_pretrained"}
MESSAGES = {"print", "debug", "info", "warning", "add_scalar", "add_scalars", "add_image", "add_images", "add_histogram"}
TURNED = {"t", "T", "mT", "transpose", "adjoint", "H"}
COUNTED = {"arange", "eye"}


def nothing(project: Project, file: PythonFile, loop: cst.For) -> None:
    """Raises `UsageError` where the loop over the batches writes or tells once for each, compares the samples of one, or skips some."""
    for node in descendants(loop.body, (cst.Call, cst.Continue)):
        inner = any(True for up in _within(file, node, loop) if isinstance(up, LOOPS))
        if isinstance(node, cst.Call) and not inner and _writes(file, node):
            raise refuse(f"{file.location(node)}: `{short(file.text(node))}` happens once for each batch, and there would be fewer")
        if isinstance(node, cst.Continue) and not inner and _measured(file, node, loop):
            raise refuse(f"{file.location(node)}: batches of some size are left out, and others would be")
    for where, part in _parts(project, file, loop):
        for node in descendants(part, (cst.Call, cst.BinaryOperation)):
            if _across(node):
                raise refuse(f"{where.location(node)}: `{short(where.text(node))}` compares the samples of one batch with each other")


def _writes(file: PythonFile, call: cst.Call) -> bool:
    name = callees.called_name(call)
    if name == "open":
        return not harmless.opens_to_read(call)
    of_wandb = (file.full_name(call.func) or "") in ("wandb.log", "mlflow.log_metric", "mlflow.log_metrics")
    return of_wandb or name in FILES or (name in MESSAGES and isinstance(file.parent(call), cst.Expr))


def _measured(file: PythonFile, node: cst.CSTNode, loop: cst.For) -> bool:
    """Whether the size of the batch decides that it is skipped."""
    tests = [up.test for up in _within(file, node, loop) if isinstance(up, cst.If)]
    return any(word in file.text(test) for test in tests for word in ("len(", ".shape", ".size("))


def _parts(project: Project, file: PythonFile, loop: cst.For) -> Iterator[tuple[PythonFile, cst.CSTNode]]:
    """The loop, and what the functions do that it calls by their names; networks are called without one."""
    yield file, loop.body
    for call in descendants(loop.body, cst.Call):
        for where, function in callees.meant(project, file, call):  # type: ignore[arg-type]
            if isinstance(call.func, cst.Name) and function.name.value not in (*callees.CONSTRUCTORS, "forward"):  # type: ignore[attr-defined]
                yield where, function.body


def _across(node: cst.CSTNode) -> bool:
    """Whether each sample meets each other: `a @ b.t()`, or as many places as the batch has samples."""
    if isinstance(node, cst.BinaryOperation):
        return isinstance(node.operator, cst.MatrixMultiply) and _turned(node.right)
    assert isinstance(node, cst.Call)
    name, values = callees.called_name(node), [arg.value for arg in node.args]
    if name in COUNTED and values:
        return _samples(values[0])
    if name in ("matmul", "mm") and values:
        return _turned(values[-1])
    return name == "cdist" and len(values) > 1


def _turned(node: cst.BaseExpression) -> bool:
    last = node.func if isinstance(node, cst.Call) else node
    return isinstance(last, cst.Attribute) and last.attr.value in TURNED


def _samples(node: cst.BaseExpression) -> bool:
    """`len(x)`, `x.size(0)`, `x.shape[0]`."""
    if isinstance(node, cst.Call):
        first = node.args[0].value if node.args else None
        name = callees.called_name(node)
        return name == "len" or (name == "size" and isinstance(first, cst.Integer) and first.value == "0")
    index = node.slice[0].slice if isinstance(node, cst.Subscript) else None
    shape = isinstance(node, cst.Subscript) and isinstance(node.value, cst.Attribute) and node.value.attr.value == "shape"
    return shape and isinstance(index, cst.Index) and isinstance(index.value, cst.Integer) and index.value.value == "0"


def _within(file: PythonFile, node: cst.CSTNode, loop: cst.For) -> Iterator[cst.CSTNode]:
    for up in file.ancestors(node):
        if up is loop:
            return
        yield up
