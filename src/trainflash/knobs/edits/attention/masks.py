"""Masks of attention that hide what comes later, and what they are filled with."""

from __future__ import annotations

import libcst as cst

from trainflash.knobs.reading.expressions import given_to, literal
from trainflash.knobs.reading.python_source import PythonFile, descendants, dotted, keyword, positional, string_value
from trainflash.knobs.training import scales

LOW = -1e4  # exp(-1e4) is 0 in every format; a float16 holds it
SWALLOWS = -1e9  # own: beside it scores up to 32 are lost in float32's rounding, so that a row hidden whole has equal weights


def is_causal(file: PythonFile, node: cst.BaseExpression, scores: str | None = None, *, boolean: bool = False) -> bool:
    """`torch.ones(n, n, dtype=torch.bool).triu(1)` or `torch.triu(torch.ones(n, n, …), diagonal=1)`: all above the diagonal.

    Or what `torch.tril(torch.ones(n, n)) == 0` leaves out. Of a square, or of the last two dimensions of the expression `scores`; with
    `boolean` also known to hold truth values, since numbers are added.
    """
    seen = left_out(node)
    return _hides_later(file, node, scores, boolean) if seen is None else _shows_earlier(file, seen, scores)


def _hides_later(file: PythonFile, node: cst.BaseExpression, scores: str | None, boolean: bool) -> bool:
    kind, inner, rest, truth = _triangle(file, _flat(node))
    above = kind == "triu" and len(rest) == 1 and literal(rest[0].value) == 1
    return above and (truth or not boolean) and _square_of_ones(file, inner, scores)


def _shows_earlier(file: PythonFile, node: cst.BaseExpression, scores: str | None) -> bool:
    """Whether an expression is 0 or False in exactly what comes later: `torch.tril(torch.ones(n, n))`, the diagonal shown."""
    kind, inner, rest, _ = _triangle(file, _flat(node))
    below = kind == "tril" and (not rest or (len(rest) == 1 and literal(rest[0].value) == 0))
    return below and _square_of_ones(file, inner, scores)


def _square_of_ones(file: PythonFile, inner: cst.BaseExpression, scores: str | None) -> bool:
    if not isinstance(inner, cst.Call):
        return False
    if file.full_name(inner.func) == "torch.ones_like" and inner.args and file.text(inner.args[0].value) == scores:
        return True
    if file.full_name(inner.func) != "torch.ones":
        return False
    sizes = [file.text(arg.value) for arg in inner.args if arg.keyword is None]
    if len(sizes) == 1 and isinstance(inner.args[0].value, (cst.Tuple, cst.List)):
        sizes = [file.text(element.value) for element in inner.args[0].value.elements]
    if len(sizes) == 1:
        return sizes[0] in (f"{scores}.shape[-2:]", f"{scores}.size()[-2:]")
    return len(sizes) == 2 and sizes[0] == sizes[1] and sizes[0] != "1"


def left_out(node: cst.BaseExpression) -> cst.BaseExpression | None:
    """What is 0 or False where `node` is true: `seen` of `seen == 0`, `~seen` and `seen.logical_not()`; None for anything else."""
    if isinstance(node, cst.Comparison) and len(node.comparisons) == 1:
        compared = node.comparisons[0]
        return node.left if isinstance(compared.operator, cst.Equal) and literal(compared.comparator) in (0, False) else None
    if isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.BitInvert):
        return node.expression
    inverted = isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute) and node.func.attr.value == "logical_not"
    return node.func.value if inverted and not node.args else None  # type: ignore[union-attr]


def _flat(node: cst.BaseExpression) -> cst.BaseExpression:
    """Without the dimensions of one that a mask is given for batch and heads: `mask` of `mask.view(1, 1, n, n)`."""
    while isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute):
        sizes = [literal(arg.value) for arg in node.args]
        viewed = node.func.attr.value in ("view", "reshape") and len(sizes) > 2 and all(size == 1 for size in sizes[:-2])
        if not viewed and not (node.func.attr.value == "unsqueeze" and sizes == [0]):
            break
        node = node.func.value
    return node


def _triangle(file: PythonFile, node: cst.BaseExpression) -> tuple[str, cst.BaseExpression, list[cst.Arg], bool]:
    """Of a triangle its kind ("": it is none), what it is cut from, what else is said, and whether it is known to hold truth values."""
    truth = False
    if isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute) and node.func.attr.value == "bool" and not node.args:
        truth, node = True, node.func.value
    if not isinstance(node, cst.Call) or not isinstance(node.func, cst.Attribute) or node.func.attr.value not in ("triu", "tril"):
        return "", node, [], truth
    if file.full_name(node.func) in ("torch.triu", "torch.tril") and node.args:
        inner, rest = node.args[0].value, list(node.args[1:])
    else:
        inner, rest = node.func.value, list(node.args)
    kind = keyword(inner, "dtype") if isinstance(inner, cst.Call) else None
    cast = isinstance(inner, cst.Call) and isinstance(inner.func, cst.Attribute) and inner.func.attr.value == "bool" and not inner.args
    truth = truth or cast or (kind is not None and file.full_name(kind.value) in ("torch.bool", "bool"))
    return node.func.attr.value, inner.func.value if cast else inner, rest, truth  # type: ignore[union-attr]


def corner_of_causal(file: PythonFile, mask: cst.BaseExpression, *, boolean: bool = False) -> bool:
    """`self.future[:t, :t]` of a buffer that is causal: the same square corner is causal too, for scores of that size; or all of it.

    Also `self.past[:, :, :t, :t] == 0` of one that holds what may be seen.
    """
    seen = left_out(mask)
    mask = mask if seen is None else seen
    cuts = [part.slice for part in mask.slice] if isinstance(mask, cst.Subscript) else []
    while len(cuts) > 2 and isinstance(cuts[0], cst.Slice) and cuts[0].lower is None and cuts[0].upper is None and cuts[0].step is None:
        cuts = cuts[1:]
    plain = [cut for cut in cuts if isinstance(cut, cst.Slice) and cut.lower is None and cut.upper is not None and cut.step is None]
    square = len(plain) == len(cuts) == 2 and file.text(plain[0].upper) == file.text(plain[1].upper)  # type: ignore[arg-type]
    owner = file.class_around(mask)
    name = dotted(mask.value if isinstance(mask, cst.Subscript) else mask) or ""
    if owner is None or not name.startswith("self.") or not (square or isinstance(mask, cst.Attribute)):
        return False
    made = [call for call in descendants(owner, cst.Call) if _buffers(call, name.removeprefix("self."))]
    values = [given.value for call in made if (given := positional(call, 1) or keyword(call, "tensor")) is not None]
    values += given_to(owner, name)
    return (
        len(values) == 1
        and (is_causal(file, values[0], boolean=boolean) if seen is None else _shows_earlier(file, values[0], None))
        and not scales.touched_elsewhere(file, name.removeprefix("self."), 1)
    )


def _buffers(call: cst.Call, name: str) -> bool:
    first = positional(call, 0) or keyword(call, "name")
    return dotted(call.func) == "self.register_buffer" and first is not None and string_value(first.value) == name


def very_low(file: PythonFile, node: cst.BaseExpression) -> bool:
    """So low that a weight is zero beside one that is not hidden: -1e4 or below, or the lowest of a format."""
    if isinstance(node, cst.Attribute) and node.attr.value == "min" and isinstance(node.value, cst.Call):
        return file.full_name(node.value.func) == "torch.finfo"
    value = literal(node)
    return isinstance(value, (int, float)) and not isinstance(value, bool) and value <= LOW


def swallows(file: PythonFile, node: cst.BaseExpression) -> bool:
    """So low that a score added to it is lost: what is filled with it, and what it is added to, are the same."""
    value = literal(node)
    return very_low(file, node) and (not isinstance(value, (int, float)) or value <= SWALLOWS)


def minus_infinity(file: PythonFile, node: cst.BaseExpression) -> bool:
    if isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.Minus):
        inner = node.expression
        return file.full_name(inner) in ("math.inf", "torch.inf", "numpy.inf") or _endless(inner, "")
    return _endless(node, "-")


def _endless(node: cst.BaseExpression, sign: str) -> bool:
    """`float("inf")`, with the sign in front."""
    called = isinstance(node, cst.Call) and dotted(node.func) == "float" and len(node.args) == 1
    text = string_value(node.args[0].value) if called else None  # type: ignore[attr-defined]
    return text is not None and text.strip().lower() in (f"{sign}inf", f"{sign}infinity")
