"""From the weights of attention written by hand down to its queries and keys: the softmax, masks, the scale and the first product."""

from __future__ import annotations

import re

import libcst as cst

from trainflash.knobs.edits.attention import einsum, masks
from trainflash.knobs.edits.attention.chain import Chain, made_as
from trainflash.knobs.reading.expressions import literal, refuse
from trainflash.knobs.reading.python_source import PythonFile, descendants, dotted, keyword, sole
from trainflash.knobs.training import scales

PRODUCTS = ("torch.matmul", "torch.bmm")
SOFTMAX = ("torch.softmax", "torch.nn.functional.softmax")
HARMLESS = ("math.sqrt", "numpy.sqrt", "float", "int", "len")


def softmaxes(file: PythonFile, around: cst.CSTNode, rank: int | None) -> list[cst.BaseExpression]:
    """What in `around` gives weights that sum to one over the last dimension: torch's softmax, or a division by the sum."""
    called = [call for call in descendants(around, cst.Call) if _softmax(file, call, rank) is not None]
    return [*called, *(node for node in descendants(around, cst.BinaryOperation) if _normalised(file, node, rank))]


def follow(chain: Chain, weights: cst.BaseExpression) -> None:
    """Read everything below a softmax into `chain`. Raises `UsageError` with the step that is not understood."""
    if isinstance(weights, cst.Call):
        _down(chain, _softmax(chain.file, weights, chain.rank))  # type: ignore[arg-type]
    else:
        _down(chain, _exponent(chain, weights))  # type: ignore[arg-type]


# The softmax ----------------------------------------------------------------------------------------------------------------------


def _softmax(file: PythonFile, call: cst.Call, rank: int | None) -> cst.BaseExpression | None:
    """The scores that `call` takes the softmax of over the last dimension; None when it does something else."""
    rest: list[cst.Arg] = list(call.args)
    made = made_as(file, call)
    if file.full_name(call.func) in SOFTMAX and rest:
        scores = rest.pop(0).value
    elif made is not None and len(rest) == 1 and file.full_name(made.func) == "torch.nn.Softmax":
        scores, rest = rest[0].value, list(made.args)
    elif isinstance(call.func, cst.Attribute) and call.func.attr.value == "softmax" and "torch" not in (file.full_name(call.func) or ""):
        scores = call.func.value
    else:
        return None
    return scores if len(rest) == 1 and _last(rest, rank) else None


def _last(given: list[cst.Arg], rank: int | None) -> bool:
    """Whether the first argument, or `dim`, is the last dimension."""
    dim = next((arg for arg in given if arg.keyword is not None and arg.keyword.value == "dim"), given[0] if given else None)
    named = dim is None or dim.keyword is None or dim.keyword.value == "dim"
    return dim is not None and named and literal(dim.value) in {-1, -1 if rank is None else rank - 1}


def _reduced(file: PythonFile, node: cst.BaseExpression, names: tuple[str, ...], rank: int | None) -> cst.BaseExpression | None:
    """What `node` reduces over the last dimension, keeping it; None when it does something else."""
    if not isinstance(node, cst.Call) or not isinstance(node.func, cst.Attribute) or node.func.attr.value not in names:
        return None
    of, given = _subject(file, node)
    kept = keyword(node, "keepdim") or (given[1] if len(given) > 1 and given[1].keyword is None else None)
    return of if len(given) == 2 and _last(given, rank) and kept is not None and literal(kept.value) is True else None


def _subject(file: PythonFile, call: cst.Call) -> tuple[cst.BaseExpression, list[cst.Arg]]:
    """The tensor that a function of torch or a method works on, and the other arguments."""
    assert isinstance(call.func, cst.Attribute)
    of_torch = (file.full_name(call.func) or "").startswith("torch.") and call.args
    return (call.args[0].value, list(call.args[1:])) if of_torch else (call.func.value, list(call.args))


def _normalised(file: PythonFile, node: cst.BinaryOperation, rank: int | None) -> bool:
    """Whether `node` divides by its own sum."""
    if not isinstance(node.operator, cst.Divide) or not isinstance(node.left, cst.Name):
        return False
    summed = _reduced(file, node.right, ("sum",), rank)
    return isinstance(summed, cst.Name) and summed.value == node.left.value


def _exponent(chain: Chain, division: cst.BaseExpression) -> cst.BaseExpression:
    """The scores below `weights / weights.sum(…)`, where weights are `exp(scores)`, with or without their maximum taken away."""
    file = chain.file
    assert isinstance(division, cst.BinaryOperation) and isinstance(division.left, cst.Name)
    chain.gone.append(division.right)
    value = _held(chain, division.left)
    if isinstance(value, cst.Call) and file.full_name(value.func) == "torch.exp" and len(value.args) == 1:
        power = value.args[0].value
    elif isinstance(value, cst.Call) and isinstance(value.func, cst.Attribute) and value.func.attr.value == "exp" and not value.args:
        power = value.func.value
    else:
        raise refuse(f"{file.location(value)}: `{file.text(value)}` is not the exponential of scores")
    shifted = _held(chain, power) if isinstance(power, cst.Name) and _shift(chain, _peek(chain, power)) else power
    top = _shift(chain, shifted)
    if top is None:
        return power
    assert isinstance(shifted, cst.BinaryOperation)
    chain.gone.append(top)
    if isinstance(shifted.right, cst.Name):  # a step of its own, which goes too
        line = next(each for each in chain.block_before(shifted.right) if file.inside(top, each))
        if chain.reads_after(shifted.right.value, line)[0] != [shifted.right]:
            raise refuse(f"{file.location(line)}: {shifted.right.value} is read elsewhere, so it cannot go")
        chain.steps.append(line)
    return shifted.left


def _held(chain: Chain, name: cst.Name) -> cst.BaseExpression:
    """What `name` holds, whose assignment is a step."""
    line, value = chain.definition(name)
    chain.steps.append(line)
    return value


def _peek(chain: Chain, name: cst.Name) -> cst.BaseExpression | None:
    """What `name` was given last in its block, without asking who reads it."""
    for line in reversed(chain.block_before(name)):
        small = sole(line)
        if isinstance(small, cst.Assign) and any(dotted(target.target) == name.value for target in small.targets):
            return small.value if len(small.targets) == 1 else None
    return None


def _shift(chain: Chain, node: cst.BaseExpression | None) -> cst.BaseExpression | None:
    """The maximum over the last dimension that `node` takes away from the scores that it belongs to; None when it does something else."""
    if not isinstance(node, cst.BinaryOperation) or not isinstance(node.operator, cst.Subtract):
        return None
    top = _peek(chain, node.right) if isinstance(node.right, cst.Name) else node.right
    value = top
    if isinstance(value, cst.Call) and isinstance(value.func, cst.Attribute) and value.func.attr.value == "detach" and not value.args:
        value = value.func.value
    if (isinstance(value, cst.Attribute) and value.attr.value == "values") or (isinstance(value, cst.Subscript) and _first(value)):
        value = value.value
    if not isinstance(value, cst.Call) or not isinstance(value.func, cst.Attribute) or value.func.attr.value not in ("amax", "max"):
        return None
    of, given = _subject(chain.file, value)
    alike = not given or _reduced(chain.file, value, ("amax", "max"), chain.rank) is not None  # one number for all of a row
    return top if alike and chain.file.text(of) == chain.file.text(node.left) else None


def _first(node: cst.Subscript) -> bool:
    index = node.slice[0].slice
    return len(node.slice) == 1 and isinstance(index, cst.Index) and literal(index.value) == 0


# Masks, what is added, the scale --------------------------------------------------------------------------------------------------


def _down(chain: Chain, node: cst.BaseExpression) -> None:
    if isinstance(node, cst.Name):
        _down(chain, _held(chain, node))
    elif isinstance(node, cst.BinaryOperation) and isinstance(node.operator, (cst.Multiply, cst.Divide)):
        scores, factor = node.left, node.right
        if isinstance(node.operator, cst.Multiply) and not _is_scores(chain, scores) and _is_scores(chain, factor):
            scores, factor = factor, scores
        _scaled(chain, node, factor, isinstance(node.operator, cst.Divide))
        _down(chain, scores)
    elif isinstance(node, cst.BinaryOperation) and isinstance(node.operator, (cst.Add, cst.Subtract)):
        _down(chain, _added(chain, node))
    elif isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute) and node.func.attr.value == "masked_fill":
        if len(node.args) != 2:
            raise refuse(f"{chain.file.location(node)}: `{chain.file.text(node)}` is not understood as a mask")
        _masked(chain, node, node.func.value, node.args[0].value, node.args[1].value)
        _down(chain, node.func.value)
    elif isinstance(node, cst.Call) and chain.file.full_name(node.func) == "torch.where" and len(node.args) == 3:
        _down(chain, _chosen(chain, node))
    elif isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute) and _factor(node) is not None:
        _scaled(chain, node, _factor(node), node.func.attr.value == "div")  # type: ignore[arg-type]
        _down(chain, node.func.value)
    else:
        _first_product(chain, node)


def _factor(node: cst.Call) -> cst.BaseExpression | None:
    named = isinstance(node.func, cst.Attribute) and node.func.attr.value in ("mul", "div")
    return node.args[0].value if named and len(node.args) == 1 and node.args[0].keyword is None else None


def _is_scores(chain: Chain, node: cst.BaseExpression | None, depth: int = 0) -> bool:
    """Whether `node` was made from a product of matrices, as scores are."""
    if node is None or depth > 12:
        return False
    if isinstance(node, cst.Name):
        return _is_scores(chain, _peek(chain, node), depth + 1)
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


def _scaled(chain: Chain, node: cst.BaseExpression, factor: cst.BaseExpression, divides: bool) -> None:
    file = chain.file
    if chain.scale is not None:
        raise refuse(f"{file.location(node)}: the scores are scaled twice")
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
    if chain.bias:
        raise refuse(f"{file.location(node)}: `{file.text(node)}` adds a second time")
    if chain.scale is not None:
        raise refuse(f"{file.location(node)}: what `{file.text(node)}` adds is scaled afterwards, which the kernel does not do")
    chain.bias, chain.sign = bias, "-" if isinstance(node.operator, cst.Subtract) else ""
    return scores


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


def _stored(step: cst.SimpleStatementLine) -> set[str]:
    small = step.body[0]
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
        chain.query, chain.key = chain.text(query) + turned, chain.text(keys) + turned_keys
    else:
        left, right = _operands(chain, node)
        query, keys = left, _transposed(chain, right)
        chain.query = chain.text(left)
        chain.key = chain.text(keys) if keys is not None else f"{chain.operand(right)}.transpose(-2, -1)"
    chain.like = chain.text(query)
    sizes = [f"{each}.{size}" for each in (chain.text(query), chain.key) for size in ("shape[-1]", "size(-1)")]
    chain.scale = "1.0" if chain.scale is None else chain.scale
    if chain.scale in {form for size in sizes for form in (f"1 / math.sqrt({size})", f"1 / ({size} ** 0.5)", f"{size} ** -0.5")}:
        chain.scale = None  # the default


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
    of, given = _subject(file, node)
    order = tuple(literal(arg.value) for arg in given)
    if node.func.attr.value == "permute":
        return of if order in ((0, 1, 3, 2), (0, 2, 1)) else None
    last = {(-2, -1), (-1, -2)}
    if chain.rank is not None:
        last |= {(chain.rank - 2, chain.rank - 1), (chain.rank - 1, chain.rank - 2)}
    return of if node.func.attr.value == "transpose" and order in last else None
