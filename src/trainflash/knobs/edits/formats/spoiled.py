"""What float32 is known to spoil: numbers that it cannot hold, whole numbers in tables, and what a file gives in a format nobody knows."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator

import libcst as cst

from trainflash.knobs.project import Project
from trainflash.knobs.reading import callees
from trainflash.knobs.reading.expressions import given_to, is_name, literal, refuse, short
from trainflash.knobs.reading.python_source import PythonFile, descendants, dotted, keyword, positional

# What loses its meaning in float32: see Golub and Van Loan, Matrix Computations, on factorizations of nearly singular matrices, and
# https://docs.pytorch.org/docs/stable/generated/torch.autograd.gradcheck.gradcheck.html.
NEEDS = {"LBFGS", "gradcheck", "gradgradcheck", "cholesky", "cholesky_ex", "cholesky_solve", "eigh", "eigvalsh", "eig", "eigvals", "svd"}
NEEDS |= {"svdvals", "inv", "inverse", "pinv", "lstsq", "slogdet", "logdet", "det", "matrix_exp", "odeint", "odeint_adjoint"}
WIDE = {"torch.complex128", "torch.cdouble"}
CLOCKS = re.compile(r"(?i)(clock|timestamp|unix|datetime|julian|mjd|time_ns|seconds)")
LARGEST, SMALLEST = 3.4028234663852886e38, 1.1754943508222875e-38  # of float32 in full precision, IEEE 754
TO_ONE = 2.0**-24  # 1 less than that is 1 in float32
WHOLE = 2**24  # whole numbers above are not all told apart
INTEGERS = {"long", "int", "torch.long", "torch.int64", "torch.int", "torch.int32", "torch.LongTensor"}


def needs_no_digits(project: Project) -> None:
    """Raises `UsageError` where the program computes something that float32 is known to spoil, or uses numbers that it cannot hold."""
    for file in project.parsed():
        for call in file.calls:
            full = file.full_name(call.func) or (call.func.attr.value if isinstance(call.func, cst.Attribute) else "")
            if full.split(".")[-1] in NEEDS or full.startswith(("scipy.optimize.", "gpytorch.", "botorch.")):
                raise refuse(f"{file.location(call)}: `{file.text(call.func)}` may need the digits of float64")
            _no_column_of_numbers(file, call)
        for node in file.nodes:
            if isinstance(node, (cst.Attribute, cst.Name)) and file.full_name(node) in WIDE:
                raise refuse(f"{file.location(node)}: complex numbers of double precision")
            if isinstance(node, (cst.Float, cst.Integer)) and _lost(file, node):
                raise refuse(f"{file.location(node)}: `{file.text(node)}` is no number that float32 holds as it is")


def no_clock(file: PythonFile, node: cst.CSTNode) -> None:
    """Raises `UsageError` where the line of `node` says that it is about a time."""
    line = next((up for up in (node, *file.ancestors(node)) if isinstance(up, (cst.SimpleStatementLine, cst.FunctionDef))), None)
    if isinstance(line, cst.SimpleStatementLine) and (seen := CLOCKS.search(file.text(line))):
        raise refuse(f"{file.location(node)}: `{seen[0]}` may be a time, whose seconds float32 does not tell apart")


def _lost(file: PythonFile, node: cst.Float | cst.Integer) -> bool:
    """Whether a number that is written out becomes another one beside tensors in float32: too large, too small, or gone beside 1."""
    value, up = abs(literal(node)), file.parent(node)
    if isinstance(node, cst.Float) and not SMALLEST <= value <= LARGEST and value != 0:
        return _computed_with(file, node)
    near_one = isinstance(up, cst.BinaryOperation) and up.right is node and isinstance(up.operator, (cst.Add, cst.Subtract))
    if near_one and 0 < value <= TO_ONE and literal(up.left) == 1:  # type: ignore[union-attr]
        return True
    whole = WHOLE < value <= LARGEST and value == int(value) and struct.unpack("f", struct.pack("f", value))[0] != value
    return whole and any(isinstance(each, cst.Call) and _makes_fractions(file, each) for each in file.ancestors(node))


def _makes_fractions(file: PythonFile, call: cst.Call) -> bool:
    """Whether a call makes a tensor or an array of what is written out, with a point somewhere, or of no type of its own."""
    makes = file.full_name(call.func) in ("torch.tensor", "torch.as_tensor", "numpy.array", "numpy.asarray")
    return makes and (any(True for _ in descendants(call, cst.Float)) or keyword(call, "dtype") is not None)


def _computed_with(file: PythonFile, node: cst.BaseExpression) -> bool:
    """Whether a number is more than something to begin with or to compare to: `best = 1e99`, `if loss < best`."""
    up = file.parent(node)
    if isinstance(up, cst.UnaryOperation):
        return _computed_with(file, up)
    if isinstance(up, (cst.Comparison, cst.ComparisonTarget)):
        return False
    if not isinstance(up, cst.Assign) or len(up.targets) != 1 or not isinstance(up.targets[0].target, cst.Name):
        return True
    owner, name = file.function_around(node) or file.module, up.targets[0].target.value
    reads = [each for each in descendants(owner, cst.Name) if each.value == name and is_name(file, each)]  # type: ignore[attr-defined,arg-type]
    return not all(isinstance(file.parent(each), (cst.AssignTarget, cst.Comparison, cst.ComparisonTarget)) for each in reads)


def _no_column_of_numbers(file: PythonFile, call: cst.Call) -> None:
    """Raises `UsageError` where a column of a table becomes whole numbers: as numbers of samples they need more digits than float32 has."""
    if not isinstance(call.func, cst.Attribute):
        return
    told = [file.full_name(arg.value) for arg in call.args] if call.func.attr.value in ("to", "type") else [call.func.attr.value]
    if not set(told) & INTEGERS:
        return
    function, base = file.function_around(call) or file.module, call.func.value
    for value in (base, *(given_to(function, base.value) if isinstance(base, cst.Name) else ())):
        if isinstance(value, cst.Subscript) and len(value.slice) > 1:
            raise refuse(f"{file.location(call)}: float32 does not tell all whole numbers of `{short(file.text(value))}` apart")


# Edges that are not edited ---------------------------------------------------------------------------------------------------------


def called_everywhere(file: PythonFile, names: tuple[str, ...]) -> None:
    """Raises `UsageError` where a function of `names` is handed on, as in `map(torch.tensor, parts)`: what it is given cannot be told."""
    for node in file.nodes:
        if not isinstance(node, (cst.Attribute, cst.Name)) or file.full_name(node) not in names:
            continue
        up = file.parent(node)
        if isinstance(up, (cst.ImportAlias, cst.Attribute)) or (isinstance(up, cst.Call) and up.func is node):
            continue
        raise refuse(f"{file.location(node)}: what `{file.text(node)}` is given where it is handed on cannot be told")


def loaded(file: PythonFile, converted) -> None:
    """Raises `UsageError` where tensors that a file holds may be float64, unless all of them are converted, or loaded into a network."""
    for call in file.calls:
        if file.full_name(call.func) not in ("torch.load", "safetensors.torch.load_file"):
            continue
        up = file.parent(call)
        uses: Iterator[cst.CSTNode] | list[cst.CSTNode] = [call]
        if isinstance(up, cst.Assign) and len(up.targets) == 1 and (name := dotted(up.targets[0].target)) is not None:
            owner = (file.class_around(call) if name.startswith("self.") else file.function_around(call)) or file.module
            uses = [each for each in descendants(owner, (cst.Name, cst.Attribute)) if dotted(each) == name]
            uses = [each for each in uses if not isinstance(file.parent(each), (cst.AssignTarget, cst.Attribute)) or _calls(file, each)]
        for use in uses:
            whole = use
            while isinstance(around := file.parent(whole), (cst.Subscript, cst.Attribute, cst.Call)) and _reached(file, whole, around):
                whole = around
            if not converted(file, whole) and not _number(file, whole):
                raise refuse(f"{file.location(call)}: whether `{short(file.text(call))}` holds float64 is not known")


def _calls(file: PythonFile, node: cst.CSTNode) -> bool:
    up = file.parent(node)
    return isinstance(up, cst.Attribute) and isinstance(file.parent(up), cst.Call)


def _reached(file: PythonFile, node: cst.CSTNode, around: cst.CSTNode) -> bool:
    """Whether `around` takes a part of what was loaded: `x["model"]`, `x.get("model")`, `x.pop("model")`."""
    if isinstance(around, cst.Subscript):
        return around.value is node
    if isinstance(around, cst.Attribute):
        return around.value is node and around.attr.value in ("get", "pop")
    return around.func is node and callees.called_name(around) in ("get", "pop")


def _number(file: PythonFile, node: cst.CSTNode) -> bool:
    """Whether what is taken is one number, such as an epoch's: it is added to another, or made one of Python's."""
    up = file.parent(node)
    call = file.parent(up) if isinstance(up, cst.Arg) else None
    plain = isinstance(call, cst.Call) and positional(call, 0) is up and dotted(call.func) in ("int", "float", "len", "print", "range")
    counted = isinstance(up, cst.BinaryOperation) and isinstance(literal(up.right), int)
    return plain or counted
