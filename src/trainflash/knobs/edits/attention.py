"""Attention written by hand, and the proof that `scaled_dot_product_attention` computes the same.

What is recognised: `dropout(softmax(q @ kᵀ · scale, mask)) @ v`, products also as `einsum`, spread over plain assignments of one block.
Every step between the first product and the last must be used exactly once, so that nothing else sees it. Anything unknown on the way is
refused: no guess.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import libcst as cst

from trainflash.knobs.edits import attention_einsum as einsum
from trainflash.knobs.edits import attention_masks as masks
from trainflash.knobs.edits import imports
from trainflash.knobs.edits.statements import whole_lines
from trainflash.knobs.kinds import FusedAttention
from trainflash.knobs.reading.expressions import literal, refuse
from trainflash.knobs.reading.python_source import PythonFile, descendants, dotted, keyword
from trainflash.knobs.scene import Scene, Target
from trainflash.knobs.splices import Splice
from trainflash.knobs.training import scales

PRODUCTS = ("torch.matmul", "torch.bmm")
SOFTMAX = ("torch.softmax", "torch.nn.functional.softmax")
DROPOUT = "torch.nn.functional.dropout"
HARMLESS = ("math.sqrt", "numpy.sqrt", "float", "int", "len")


@dataclass
class _Found:
    """What the steps said so far. `steps` are the assignments that the one call replaces."""

    file: PythonFile
    rank: int | None
    steps: list[cst.SimpleStatementLine] = field(default_factory=list)
    gone: list[cst.CSTNode] = field(default_factory=list)  # masks that one argument says as well
    causal: bool = False
    mask: str = ""
    dropout: str = ""
    scale: str | None = None
    query: str = ""
    key: str = ""


def fused_attention(edit: FusedAttention, scene: Scene) -> tuple[Target, ...]:
    """The product of weights and values. Raises `UsageError` with the step that is not understood."""
    seen = scene.facts.get("attention")
    place = scene.at or (seen.location if seen is not None and seen.kind == "hand_written" else None)
    if place is None or not scene.project.owns(place):
        raise refuse("the run saw no attention written by hand in this project's own source")
    file = scene.project.python(place.file)
    softmax = [call for call in file.calls if _softmax(file, call) is not None and _near(file, call, place.line)]
    if len(softmax) != 1:
        raise refuse(f"{place}: {'no' if not softmax else 'more than one'} softmax over the last dimension near this line")
    found = _Found(file, len(seen.shape) if seen is not None and seen.shape else None)
    product, value = _up(found, softmax[0])
    _down(found, _softmax(file, softmax[0]))  # type: ignore[arg-type]
    spelled, needed = imports.reach(file, "torch.nn.functional", "scaled_dot_product_attention")
    arguments = [found.query, found.key, value]
    arguments += [f"attn_mask={found.mask}"] if found.mask else []
    arguments += [f"dropout_p={found.dropout}"] if found.dropout else []
    arguments += ["is_causal=True"] if found.causal else []
    arguments += [f"scale={found.scale}"] if found.scale is not None else []
    start, end = file.span(product)
    call = f"{spelled}({', '.join(arguments)})"
    steps = [whole_lines(file, *file.span(step)) for step in {id(step): step for step in found.steps}.values()]
    splices = (*needed, *steps, Splice(file.path, start, end, call))
    _order(found, product)
    here = file.location(product)
    target = Target(here, None, lambda wanted: splices, f"attention at {here}", "scaled_dot_product_attention")
    if found.dropout:
        target = replace(target, risk="numerics", because="its dropout draws other random numbers")
    return (target,)


def _near(file: PythonFile, call: cst.Call, line: int) -> bool:
    around = next((up for up in file.ancestors(call) if isinstance(up, cst.SimpleStatementLine)), call)
    first, last = file.lines_of(around)
    return first <= line <= last


def _softmax(file: PythonFile, call: cst.Call) -> cst.BaseExpression | None:
    """The scores that `call` takes the softmax of over the last dimension; None when it does something else."""
    rest: list[cst.Arg] = list(call.args)
    if file.full_name(call.func) in SOFTMAX and rest:
        scores = rest.pop(0).value
    elif isinstance(call.func, cst.Attribute) and call.func.attr.value == "softmax" and "torch" not in (file.full_name(call.func) or ""):
        scores = call.func.value
    else:
        return None
    over_last = len(rest) == 1 and literal(rest[0].value) == -1 and (rest[0].keyword is None or rest[0].keyword.value == "dim")
    return scores if over_last else None


# Upwards: from the weights to their product with the values -----------------------------------------------------------------------


def _up(found: _Found, node: cst.BaseExpression) -> tuple[cst.BaseExpression, str]:
    """The product that uses the weights, and the source of the values."""
    file = found.file
    up = file.parent(node)
    if isinstance(up, cst.Arg):
        call = file.parent(up)
        assert isinstance(call, cst.Call)
        full = file.full_name(call.func) or ""
        if full == einsum.NAME:
            return call, _text(file, einsum.values(file, call, node))
        if full in PRODUCTS and len(call.args) == 2:
            if call.args[0] is not up:
                raise refuse(f"{file.location(call)}: the weights stand on the right of the product")
            return call, _text(file, call.args[1].value)
        if full == DROPOUT or isinstance(call.func, cst.Attribute) or full.startswith("self."):
            _drop(found, call, up)
            return _up(found, call)
    if isinstance(up, cst.BinaryOperation) and isinstance(up.operator, cst.MatrixMultiply) and up.left is node:
        return up, _text(file, up.right)
    call = file.parent(up) if isinstance(up, cst.Attribute) and up.attr.value in ("matmul", "bmm") else None
    if isinstance(call, cst.Call) and len(call.args) == 1:
        return call, _text(file, call.args[0].value)  # type: ignore[union-attr,return-value]
    name, line = _assigned_name(found, node)
    found.steps.append(line)
    return _up(found, _only_reader(found, name, line))


def _drop(found: _Found, call: cst.Call, arg: cst.Arg) -> None:
    file = found.file
    if call.args[0] is not arg or found.dropout:
        raise refuse(f"{file.location(call)}: `{file.text(call)}` is not understood as dropout")
    if file.full_name(call.func) == DROPOUT:
        chance = keyword(call, "p") or (call.args[1] if len(call.args) > 1 and call.args[1].keyword is None else None)
        training = keyword(call, "training")
        if chance is None or training is None or len(call.args) != 3:
            raise refuse(f"{file.location(call)}: `{file.text(call)}` does not say its p and training")
        found.dropout = f"{_text(file, chance.value)} if {file.text(training.value)} else 0.0"
        return
    name = dotted(call.func) or ""
    owner = next((up for up in file.ancestors(call) if isinstance(up, cst.ClassDef)), None)
    made = [
        node.value
        for node in (descendants(owner, cst.Assign) if owner is not None else ())
        if any(dotted(target.target) == name for target in node.targets)
    ]
    if len(call.args) != 1 or len(made) != 1 or not isinstance(made[0], cst.Call) or file.full_name(made[0].func) != "torch.nn.Dropout":
        raise refuse(f"{file.location(call)}: `{file.text(call.func)}` is not known to be a dropout")
    found.dropout = f"{name}.p if self.training else 0.0"


def _assigned_name(found: _Found, node: cst.BaseExpression) -> tuple[cst.Name, cst.SimpleStatementLine]:
    file = found.file
    assign = file.parent(node)
    line = file.parent(assign) if assign is not None else None
    if (
        not isinstance(assign, cst.Assign)
        or len(assign.targets) != 1
        or not isinstance(assign.targets[0].target, cst.Name)
        or not isinstance(line, cst.SimpleStatementLine)
        or len(line.body) != 1
    ):
        raise refuse(f"{file.location(node)}: `{file.text(node)}` is used in a way that is not understood")
    return assign.targets[0].target, line


def _only_reader(found: _Found, name: cst.Name, line: cst.SimpleStatementLine) -> cst.Name:
    """The one place that reads what `line` assigns, before the name is assigned again; steps that go as well, as a mask's, do not count."""
    file = found.file
    reads, following = _reads_after(file, name.value, line)
    reads = [read for read in reads if not any(file.inside(read, step) for step in found.gone)]
    if len(reads) != 1:
        raise refuse(f"{file.location(line)}: {name.value} is read {len(reads)} times, so it cannot go")
    if following is not None and not file.inside(reads[0], following) and file.span(reads[0])[0] > file.span(following)[0]:
        raise refuse(f"{file.location(line)}: {name.value} is assigned again before it is read")
    return reads[0]


def _reads_after(file: PythonFile, name: str, line: cst.SimpleStatementLine) -> tuple[list[cst.Name], cst.CSTNode | None]:
    block = file.parent(line)
    body = list(getattr(block, "body", ()))
    function = file.function_around(line)
    reads: list[cst.Name] = []
    for statement in body[body.index(line) + 1 :]:
        reads += [node for node in descendants(statement, cst.Name) if node.value == name and not _stores(file, node)]
        if any(node.value == name and _stores(file, node) for node in descendants(statement, cst.Name)):
            return reads, statement
    elsewhere = [
        node
        for node in (descendants(function, cst.Name) if function is not None else ())
        if node.value == name and not any(file.inside(node, statement) for statement in body)
    ]
    if elsewhere:
        raise refuse(f"{file.location(elsewhere[0])}: {name} is used outside the block")
    return reads, None


def _stores(file: PythonFile, node: cst.Name) -> bool:
    return isinstance(file.parent(node), (cst.AssignTarget, cst.AnnAssign, cst.AugAssign, cst.Param))


# Downwards: from the scores to queries and keys -----------------------------------------------------------------------------------


def _down(found: _Found, node: cst.BaseExpression) -> None:
    file = found.file
    if isinstance(node, cst.Name):
        line, value = _definition(found, node)
        found.steps.append(line)
        _down(found, value)
    elif isinstance(node, cst.BinaryOperation) and isinstance(node.operator, (cst.Multiply, cst.Divide)) and not _is_product(file, node):
        if found.scale is not None:
            raise refuse(f"{file.location(node)}: the scores are scaled twice")
        factor = node.right
        if any(isinstance(call, cst.Call) and not _harmless(file, call) for call in descendants(factor, cst.Call)):
            raise refuse(f"{file.location(node)}: the scale `{file.text(factor)}` is not known to be a number")
        if (other := scales.tensor(file, factor, 0)) is not None:
            raise refuse(f"{file.location(other)}: the scale `{file.text(factor)}` is a tensor, which the kernel does not take")
        text = _text(file, factor)
        atom = isinstance(factor, (cst.Name, cst.Attribute, cst.Call, cst.Integer, cst.Float, cst.Subscript))
        found.scale = (f"1 / {text}" if atom else f"1 / ({text})") if isinstance(node.operator, cst.Divide) else text
        _down(found, node.left)
    elif isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute) and node.func.attr.value == "masked_fill":
        _masked(found, node)
        _down(found, node.func.value)
    else:
        _first_product(found, node)


def _harmless(file: PythonFile, call: cst.Call) -> bool:
    return file.full_name(call.func) in HARMLESS or (isinstance(call.func, cst.Attribute) and call.func.attr.value == "size")


def _is_product(file: PythonFile, node: cst.BaseExpression) -> bool:
    return isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.MatrixMultiply)


def _definition(found: _Found, node: cst.Name) -> tuple[cst.SimpleStatementLine, cst.BaseExpression]:
    """The assignment in front of `node` in its block, read by nothing else."""
    file = found.file
    here = next(up for up in file.ancestors(node) if isinstance(up, cst.SimpleStatementLine))
    block = file.parent(here)
    body = list(getattr(block, "body", ()))
    for line in reversed(body[: body.index(here)]):
        if not any(each.value == node.value and _stores(file, each) for each in descendants(line, cst.Name)):
            continue
        small = line.body[0] if isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1 else None
        if not isinstance(small, cst.Assign) or len(small.targets) != 1 or not isinstance(small.targets[0].target, cst.Name):
            break
        if _only_reader(found, small.targets[0].target, line) is not node:
            break
        return line, small.value
    raise refuse(f"{file.location(node)}: what {node.value} holds here is not one plain assignment above")


def _masked(found: _Found, call: cst.Call) -> None:
    file = found.file
    if found.mask or found.causal or len(call.args) != 2:
        raise refuse(f"{file.location(call)}: `{file.text(call)}` is a second mask, or not understood")
    endless = masks.minus_infinity(file, call.args[1].value)
    if not endless and (found.scale is not None or not masks.very_low(file, call.args[1].value)):  # what is scaled afterwards is not as low
        raise refuse(f"{file.location(call)}: `{file.text(call)}` does not fill with minus infinity")
    mask, scores = call.args[0].value, file.text(call.func.value)  # type: ignore[attr-defined]
    if isinstance(mask, cst.Name):
        local = [each for each in _block_before(file, call) if _assigns(each, mask.value)]
        if len(local) == 1 and masks.is_causal(file, local[0].body[0].value, scores) and _only_reader_is(found, local[0], mask):
            found.causal = True
            found.gone += [local[0], *call.args]
            found.steps.append(local[0])
            return
    elif masks.is_causal(file, mask, scores) or masks.corner_of_causal(file, mask):
        found.causal = True
        found.gone += call.args
        return
    if not endless:  # a row that is hidden whole has equal weights with it, and none that are numbers with minus infinity
        raise refuse(f"{file.location(call)}: `{file.text(call)}` does not fill with minus infinity; its mask is not known to be causal")
    if isinstance(mask, cst.Comparison) and len(mask.comparisons) == 1 and isinstance(mask.comparisons[0].operator, cst.Equal):
        left, right = _text(file, mask.left), _text(file, mask.comparisons[0].comparator)
        found.mask = f"{left} != {right}"
        return
    if isinstance(mask, cst.UnaryOperation) and isinstance(mask.operator, cst.BitInvert):
        found.mask = _text(file, mask.expression)  # it is boolean, as what is filled by must be
        return
    text = _text(file, mask)
    found.mask = f"~{text}" if isinstance(mask, (cst.Name, cst.Attribute, cst.Subscript, cst.Call)) else f"~({text})"


def _only_reader_is(found: _Found, line: cst.SimpleStatementLine, mask: cst.Name) -> bool:
    reads, _ = _reads_after(found.file, mask.value, line)
    return reads == [mask]


def _block_before(file: PythonFile, node: cst.CSTNode) -> list[Any]:
    here = next(up for up in file.ancestors(node) if isinstance(up, cst.SimpleStatementLine))
    body = list(getattr(file.parent(here), "body", ()))
    return body[: body.index(here)]


def _assigns(line: Any, name: str) -> bool:
    small = line.body[0] if isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1 else None
    return isinstance(small, cst.Assign) and len(small.targets) == 1 and dotted(small.targets[0].target) == name


def _first_product(found: _Found, node: cst.BaseExpression) -> None:
    """`q @ kᵀ`, with the transposition of the last two dimensions, or a sum over the last dimension of both."""
    query, keys = _queries_and_keys(found, node)
    found.query, found.key = _text(found.file, query), _text(found.file, keys)
    found.scale = "1.0" if found.scale is None else found.scale
    if found.scale in [f"1 / math.sqrt({each}.{size})" for each in (found.query, found.key) for size in ("shape[-1]", "size(-1)")]:
        found.scale = None  # the default


def _queries_and_keys(found: _Found, node: cst.BaseExpression) -> tuple[cst.BaseExpression, cst.BaseExpression]:
    file = found.file
    if isinstance(node, cst.Call) and file.full_name(node.func) == einsum.NAME:
        return einsum.queries_and_keys(file, node)
    if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.MatrixMultiply):
        left, right = node.left, node.right
    elif isinstance(node, cst.Call) and file.full_name(node.func) in PRODUCTS and len(node.args) == 2:
        left, right = node.args[0].value, node.args[1].value
    elif isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute) and node.func.attr.value in ("matmul", "bmm") and node.args:
        left, right = node.func.value, node.args[0].value
    else:
        raise refuse(f"{file.location(node)}: `{file.text(node)}` is not a product of queries and keys")
    if isinstance(right, cst.Attribute) and right.attr.value == "mT":
        return left, right.value
    if isinstance(right, cst.Call) and isinstance(right.func, cst.Attribute) and right.func.attr.value == "transpose":
        last = {(-2, -1), (-1, -2)}
        if found.rank is not None:
            last |= {(found.rank - 2, found.rank - 1), (found.rank - 1, found.rank - 2)}
        if tuple(literal(arg.value) for arg in right.args) not in last:
            raise refuse(f"{file.location(right)}: `{file.text(right)}` is not known to swap the last two dimensions")
        return left, right.func.value
    raise refuse(f"{file.location(right)}: `{file.text(right)}` is not the transposed keys")


def _order(found: _Found, product: cst.BaseExpression) -> None:
    """All steps stand in one block, and nothing between them assigns what they read."""
    file = found.file
    last = next(up for up in file.ancestors(product) if isinstance(up, cst.SimpleStatementLine))
    body = list(getattr(file.parent(last), "body", ()))
    if any(step not in body for step in found.steps):
        raise refuse(f"{file.location(product)}: its steps stand in different blocks")
    first = min([body.index(step) for step in found.steps], default=body.index(last))
    read = {node.value for step in found.steps for node in descendants(step, cst.Name) if not _stores(file, node)}
    for line in body[first : body.index(last)]:
        if line in found.steps:
            continue
        stored = {node.value for node in descendants(line, cst.Name) if _stores(file, node)}
        if stored & read or not isinstance(line, cst.SimpleStatementLine):
            raise refuse(f"{file.location(line)}: stands between the steps and may change what they read")


def _text(file: PythonFile, node: cst.BaseExpression) -> str:
    start, end = file.outer_span(node)
    return file.raw[start:end].decode("utf-8")
