"""From the weights of attention written by hand down to its queries and keys: masks, the scale and the first product."""

from __future__ import annotations

import re
from typing import Any

import libcst as cst

from trainflash.knobs.edits.attention import einsum, masks, softmax
from trainflash.knobs.edits.attention.chain import Chain, alone, wide_mask
from trainflash.knobs.reading.expressions import literal, refuse
from trainflash.knobs.reading.python_source import PythonFile, descendants, dotted, sole
from trainflash.knobs.training import scales

PRODUCTS = ("torch.matmul", "torch.bmm")
HARMLESS = ("math.sqrt", "numpy.sqrt", "float", "int", "len")


def follow(chain: Chain, weights: cst.BaseExpression) -> None:
    """Read everything below a softmax into `chain`. Raises `UsageError` with the step that is not understood."""
    if isinstance(weights, cst.Call):
        _down(chain, softmax.softmax_of(chain.file, weights, chain.rank))  # type: ignore[arg-type]
    else:
        _down(chain, softmax.exponent(chain, weights))  # type: ignore[arg-type]


# Masks, what is added, the scale --------------------------------------------------------------------------------------------------


def _down(chain: Chain, node: cst.BaseExpression) -> None:
    if isinstance(node, cst.Name):
        _named(chain, node)
    elif isinstance(node, cst.BinaryOperation) and isinstance(node.operator, (cst.Multiply, cst.Divide)):
        scores, factor = node.left, node.right
        if isinstance(node.operator, cst.Multiply) and not _is_scores(chain, scores) and _is_scores(chain, factor):
            scores, factor = factor, scores
        _scaled(chain, node, factor, isinstance(node.operator, cst.Divide))
        _down(chain, scores)
    elif _hides(chain, node):
        _down(chain, _hiding(chain, node))
    elif isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute) and _factor(node) is not None:
        _scaled(chain, node, _factor(node), node.func.attr.value == "div")  # type: ignore[arg-type]
        _down(chain, node.func.value)
    else:
        _first_product(chain, node)


def _named(chain: Chain, node: cst.Name, before: list[Any] | None = None) -> None:
    """What a name holds: by a plain assignment, by one such as `+=`, or by a step that a condition guards."""
    line = chain.stored_last(node, before)
    small = sole(line)
    if isinstance(line, cst.If):
        _guarded(chain, node, line)
    elif isinstance(small, cst.AugAssign) and isinstance(small.target, cst.Name):
        if chain.only_reader(small.target, line) is not node:
            raise refuse(f"{chain.file.location(line)}: {node.value} is read elsewhere, so it cannot go")
        chain.steps.append(line)
        _combined(chain, small)
        _named(chain, small.target, chain.block_before(line))
    else:
        line, value = chain.definition(node, before)
        chain.steps.append(line)
        _down(chain, value)


def _combined(chain: Chain, small: cst.AugAssign) -> None:
    """`scores += bias`, `scores *= scale` and their opposites."""
    if isinstance(small.operator, (cst.MultiplyAssign, cst.DivideAssign)):
        _scaled(chain, small, small.value, isinstance(small.operator, cst.DivideAssign))
    elif isinstance(small.operator, (cst.AddAssign, cst.SubtractAssign)):
        _biased(chain, small, small.value, isinstance(small.operator, cst.SubtractAssign))
    else:
        raise refuse(f"{chain.file.location(small)}: `{chain.file.text(small)}` is not understood")


def _guarded(chain: Chain, node: cst.Name, guard: cst.If) -> None:
    """`if mask is not None: scores = scores.masked_fill(mask, low)`, or one that adds: what hides or is added is None otherwise."""
    file, here = chain.file, chain.file.location(guard)
    small, name = sole(alone(guard)), node.value
    if guard.orelse is not None or isinstance(file.parent(guard), cst.If) or chain.test is not None or chain.fill or chain.bias:
        raise refuse(f"{here}: whether something is hidden depends on more than one condition")
    if any(isinstance(each, (cst.Call, cst.NamedExpr)) or dotted(each) == name for each in descendants(guard.test, cst.BaseExpression)):
        raise refuse(f"{here}: `{file.text(guard.test)}` may not mean the same at another place")
    if chain.only_reader(node, guard) is not node:
        raise refuse(f"{here}: {name} is read elsewhere, so it cannot go")
    before = chain.block_before(guard)
    if (
        isinstance(small, cst.AugAssign)
        and dotted(small.target) == name
        and isinstance(small.operator, (cst.AddAssign, cst.SubtractAssign))
    ):
        _combined(chain, small)
        scores: cst.BaseExpression = small.target
    elif isinstance(small, cst.Assign) and len(small.targets) == 1 and dotted(small.targets[0].target) == name:
        scores = _hiding(chain, small.value)
    else:
        raise refuse(f"{here}: what it does to {name} is not understood as a mask")
    if not isinstance(scores, cst.Name) or scores.value != name or chain.causal:
        raise refuse(f"{here}: `{file.text(small)}` does more than hide or add")
    chain.test = guard.test
    chain.steps.append(guard)
    _named(chain, scores, before)


def _hides(chain: Chain, node: cst.BaseExpression) -> bool:
    if isinstance(node, cst.BinaryOperation):
        return isinstance(node.operator, (cst.Add, cst.Subtract))
    if not isinstance(node, cst.Call):
        return False
    filled = isinstance(node.func, cst.Attribute) and node.func.attr.value == "masked_fill"
    return filled or (chain.file.full_name(node.func) == "torch.where" and len(node.args) == 3)


def _hiding(chain: Chain, node: cst.BaseExpression) -> cst.BaseExpression:
    """The scores that `node` hides something of, or adds something to. Raises `UsageError` where it does anything else."""
    if chain.factor:
        raise refuse(f"{chain.file.location(node)}: what is hidden or added here is scaled by a tensor afterwards")
    if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, (cst.Add, cst.Subtract)):
        return _added(chain, node)
    if isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute) and node.func.attr.value == "masked_fill":
        if len(node.args) != 2:
            raise refuse(f"{chain.file.location(node)}: `{chain.file.text(node)}` is not understood as a mask")
        _masked(chain, node, node.func.value, node.args[0].value, node.args[1].value)
        return node.func.value
    if isinstance(node, cst.Call) and chain.file.full_name(node.func) == "torch.where" and len(node.args) == 3:
        return _chosen(chain, node)
    raise refuse(f"{chain.file.location(node)}: `{chain.file.text(node)}` is not understood as a mask")


def _factor(node: cst.Call) -> cst.BaseExpression | None:
    named = isinstance(node.func, cst.Attribute) and node.func.attr.value in ("mul", "div")
    return node.args[0].value if named and len(node.args) == 1 and node.args[0].keyword is None else None


def _is_scores(chain: Chain, node: cst.BaseExpression | None, depth: int = 0) -> bool:
    """Whether `node` was made from a product of matrices, as scores are."""
    if node is None or depth > 12:
        return False
    if isinstance(node, cst.Name):
        return _is_scores(chain, softmax.peek(chain, node) or _outside(chain, node), depth + 1)
    if isinstance(node, cst.BinaryOperation):
        if isinstance(node.operator, cst.MatrixMultiply):
            return True
        return any(_is_scores(chain, side, depth + 1) for side in (node.left, node.right))
    if not isinstance(node, cst.Call):
        return False
    if chain.file.full_name(node.func) in (*PRODUCTS, einsum.NAME):
        return True
    named = node.func.attr.value if isinstance(node.func, cst.Attribute) else ""
    if named in ("matmul", "bmm"):
        return True
    return named in ("masked_fill", "mul", "div") and _is_scores(chain, node.func.value, depth + 1)  # type: ignore[attr-defined]


def _outside(chain: Chain, node: cst.Name) -> cst.BaseExpression | None:
    """What the name of a step that a condition guards was given in front of the condition."""
    guard = next((up for up in chain.file.ancestors(node) if isinstance(up, cst.If)), None)
    return softmax.peek(chain, node, chain.block_before(guard)) if guard is not None else None


def _scaled(chain: Chain, node: cst.CSTNode, factor: cst.BaseExpression, divides: bool) -> None:
    file = chain.file
    if chain.scale is not None:
        raise refuse(f"{file.location(node)}: the scores are scaled twice")
    if chain.rank == 4 and scales.one_for_each_head(file, factor):
        chain.factor = f" / {chain.operand(factor)}" if divides else f" * {chain.operand(factor)}"
        chain.scale = "1.0"
        return
    if any(isinstance(call, cst.Call) and not _harmless(file, call) for call in descendants(factor, cst.Call)):
        raise refuse(f"{file.location(node)}: the scale `{file.text(factor)}` is not known to be a number")
    if (other := scales.tensor(file, factor, 0)) is not None:
        raise refuse(f"{file.location(other)}: the scale `{file.text(factor)}` is a tensor, which the kernel does not take")
    chain.scale = f"1 / {chain.operand(factor)}" if divides else chain.text(factor)


def _harmless(file: PythonFile, call: cst.Call) -> bool:
    return file.full_name(call.func) in HARMLESS or (isinstance(call.func, cst.Attribute) and call.func.attr.value == "size")


def _added(chain: Chain, node: cst.BinaryOperation) -> cst.BaseExpression:
    """The scores that a bias is added to, or taken from; the kernel takes it as its mask."""
    file = chain.file
    scores, bias = node.left, node.right
    if isinstance(node.operator, cst.Add) and not _is_scores(chain, scores):
        scores, bias = bias, scores
    if not _is_scores(chain, scores):
        raise refuse(f"{file.location(node)}: `{file.text(node)}` is not a product of queries and keys")
    _biased(chain, node, bias, isinstance(node.operator, cst.Subtract))
    return scores


def _biased(chain: Chain, node: cst.CSTNode, bias: cst.BaseExpression, taken: bool) -> None:
    file = chain.file
    if chain.bias:
        raise refuse(f"{file.location(node)}: `{file.text(node)}` adds a second time")
    if chain.scale is not None:
        raise refuse(f"{file.location(node)}: what `{file.text(node)}` adds is scaled afterwards, which the kernel does not do")
    chain.bias, chain.sign = bias, "-" if taken else ""


def _chosen(chain: Chain, call: cst.Call) -> cst.BaseExpression:
    """The scores in `torch.where(seen, scores, low)` and `torch.where(hidden, low, scores)`."""
    mask, one, other = (arg.value for arg in call.args)
    shown = _is_scores(chain, one)
    scores, low = (one, other) if shown else (other, one)
    if isinstance(low, cst.Call) and len(low.args) == 1 and _made_tensor(chain.file, low):
        low = low.args[0].value
    chain.shown = shown
    _masked(chain, call, scores, mask, low)
    return scores


def _made_tensor(file: PythonFile, call: cst.Call) -> bool:
    return file.full_name(call.func) == "torch.tensor" or (isinstance(call.func, cst.Attribute) and call.func.attr.value == "new_tensor")


def _masked(chain: Chain, call: cst.Call, of: cst.BaseExpression, mask: cst.BaseExpression, low: cst.BaseExpression) -> None:
    file, scores = chain.file, chain.file.text(of)
    if chain.fill:
        raise refuse(f"{file.location(call)}: `{file.text(call)}` is a second mask, or not understood")
    endless = masks.minus_infinity(file, low)
    after = chain.scale is not None or bool(chain.bias)  # what is scaled or raised afterwards is not as low
    if not endless and (after or not masks.very_low(file, low)):
        raise refuse(f"{file.location(call)}: `{file.text(call)}` does not fill with minus infinity")
    chain.fill = (mask, low)
    if isinstance(mask, cst.Name):
        local = [each for each in chain.block_before(call) if _assigns(each, mask.value)]
        if (
            len(local) == 1
            and not chain.shown
            and masks.is_causal(file, local[0].body[0].value, scores)
            and chain.reads_after(mask.value, local[0])[0] == [mask]
        ):
            chain.causal = local[0]
            chain.gone += [local[0], mask, low]
            return
    elif not chain.shown and (masks.is_causal(file, mask, scores) or masks.corner_of_causal(file, mask)):
        chain.causal = True
        chain.gone += [mask, low]
        return
    chain.added = not endless  # a row that is hidden whole has equal weights with it, and none that are numbers with minus infinity
    chain.gone.append(low)
    if chain.added and not masks.swallows(file, low):
        raise refuse(f"{file.location(call)}: `{file.text(call)}` does not fill with minus infinity; its mask is not known to be causal")


def _assigns(line: object, name: str) -> bool:
    small = sole(line)
    return isinstance(small, cst.Assign) and len(small.targets) == 1 and dotted(small.targets[0].target) == name


def settle(chain: Chain) -> None:
    """Say what is hidden and what is added as arguments of the one call, now that all steps are known."""
    if chain.test is not None and (chain.causal or (chain.fill is not None and chain.bias is not None)):
        raise refuse(f"{chain.file.location(chain.test)}: what is hidden depends on more than `{chain.file.text(chain.test)}`")
    _settle(chain)
    given = chain.mask
    chain.mask = wide_mask(chain.query, chain.key, given) if given and chain.flat else given
    if chain.test is not None:
        asked = "".join(chain.text(chain.test).split())
        chain.mask = chain.mask if asked == f"{chain.mask}isnotNone" else f"{chain.mask} if {chain.text(chain.test)} else None"


def _settle(chain: Chain) -> None:
    step = chain.causal if isinstance(chain.causal, cst.SimpleStatementLine) else None
    if chain.bias is None:
        chain.steps += [step] if step is not None else []
        if chain.fill is not None and not chain.causal:
            chain.mask = _as_bias(chain, *chain.fill) if chain.added else _opposite(chain, chain.fill[0])
        return
    chain.mask = chain.sign + (chain.operand(chain.bias) if chain.sign or chain.fill is not None else chain.text(chain.bias))
    if chain.fill is not None:
        mask, low = chain.fill
        scores = {name for each in chain.steps for name in _stored(each)}
        if chain.added or scores & {node.value for node in descendants(step or mask, cst.Name)}:
            raise refuse(f"{chain.file.location(mask)}: the mask `{chain.file.text(mask)}` is made from the scores, which go")
        added = f"({chain.mask})" if chain.sign else chain.mask
        hidden = f"~{chain.operand(mask)}" if chain.shown else chain.text(mask)
        chain.mask, chain.causal = f"{added}.masked_fill({hidden}, {chain.text(low)})", False


def _as_bias(chain: Chain, mask: cst.BaseExpression, low: cst.BaseExpression) -> str:
    """The number `low` where something is hidden, and zero elsewhere, in the format of the queries."""
    text = chain.text(low)
    for name in {name for each in chain.steps for name in _stored(each)}:
        text = re.sub(rf"\b{name}\b", chain.like, text)
    hidden = f"(~{chain.operand(mask)})" if chain.shown else chain.operand(mask)
    return f"{hidden}.to({chain.like}.dtype) * {text}"


def _stored(step: cst.SimpleStatementLine | cst.If) -> set[str]:
    small = sole(alone(step))
    if isinstance(small, cst.AugAssign):
        return {dotted(small.target) or ""}
    return {dotted(target.target) or "" for target in small.targets} if isinstance(small, cst.Assign) else set()


def _opposite(chain: Chain, mask: cst.BaseExpression) -> str:
    """What is seen, from what is hidden."""
    if chain.shown:
        return chain.text(mask)
    if isinstance(mask, cst.Comparison) and len(mask.comparisons) == 1 and isinstance(mask.comparisons[0].operator, cst.Equal):
        return f"{chain.text(mask.left)} != {chain.text(mask.comparisons[0].comparator)}"
    if isinstance(mask, cst.UnaryOperation) and isinstance(mask.operator, cst.BitInvert):
        return chain.text(mask.expression)  # it is boolean, as what is filled by must be
    return f"~{chain.operand(mask)}"


# Queries and keys -----------------------------------------------------------------------------------------------------------------


def _first_product(chain: Chain, node: cst.BaseExpression) -> None:
    """`q @ kᵀ`, or a sum over one letter of both."""
    file = chain.file
    if isinstance(node, cst.Call) and file.full_name(node.func) == einsum.NAME:
        (query, turned), (keys, turned_keys) = einsum.queries_and_keys(file, node)
        chain.query, chain.key = chain.turned(query, turned), chain.turned(keys, turned_keys)
    else:
        left, right = _operands(chain, node)
        query, keys = left, _transposed(chain, right)
        chain.query = chain.text(left)
        chain.key = chain.text(keys) if keys is not None else f"{chain.operand(right)}.transpose(-2, -1)"
    chain.like = chain.operand(query)
    sizes = [f"{each}.{size}" for each in (chain.text(query), chain.key) for size in ("shape[-1]", "size(-1)")]
    chain.scale = "1.0" if chain.scale is None else chain.scale
    usual = {form for size in sizes for form in (f"1 / math.sqrt({size})", f"1 / ({size} ** 0.5)", f"{size} ** -0.5")}
    if _bare(chain.scale) in set(map(_bare, usual)):
        chain.scale = None  # the default


def _bare(scale: str) -> str:
    """A scale without what its forms may differ in: `(1.0 / math.sqrt(d))` as `1/math.sqrtd`."""
    bare = "".join(each for each in scale if each not in "() ")
    return bare.replace("1.0/", "1/", 1)


def _operands(chain: Chain, node: cst.BaseExpression) -> tuple[cst.BaseExpression, cst.BaseExpression]:
    file = chain.file
    if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.MatrixMultiply):
        return node.left, node.right
    if isinstance(node, cst.Call) and file.full_name(node.func) in PRODUCTS and len(node.args) == 2:
        return node.args[0].value, node.args[1].value
    if isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute) and node.func.attr.value in ("matmul", "bmm") and node.args:
        return node.func.value, node.args[0].value
    raise refuse(f"{file.location(node)}: `{file.text(node)}` is not a product of queries and keys")


def _transposed(chain: Chain, node: cst.BaseExpression) -> cst.BaseExpression | None:
    """What `node` swaps the last two dimensions of; None where it does not say so."""
    file = chain.file
    if isinstance(node, cst.Attribute) and node.attr.value == "mT":
        return node.value
    if not isinstance(node, cst.Call) or not isinstance(node.func, cst.Attribute):
        return None
    of, given = softmax.subject(file, node)
    order = tuple(literal(arg.value) for arg in given)
    if node.func.attr.value == "permute":
        return of if order in ((0, 1, 3, 2), (0, 2, 1)) else None
    last = {(-2, -1), (-1, -2)}
    if chain.rank is not None:
        last |= {(chain.rank - 2, chain.rank - 1), (chain.rank - 1, chain.rank - 2)}
    return of if node.func.attr.value == "transpose" and order in last else None
