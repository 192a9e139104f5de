"""Attention written by hand, and the proof that `scaled_dot_product_attention` computes the same.

What is recognised: `dropout(softmax(q @ kᵀ · scale + bias, mask)) @ v`, products also as `einsum`, the softmax also written out, over plain
assignments of one block. Every step between the first product and the last must be used exactly once, so that nothing else sees it.
Anything unknown on the way is refused: no guess. For tensors of three dimensions torch has no fused kernel: they get one more in front.
"""

from __future__ import annotations

from dataclasses import replace

import libcst as cst

from trainflash.knobs.edits import imports
from trainflash.knobs.edits.attention import einsum, scores, softmax
from trainflash.knobs.edits.attention.chain import Chain, atom, stores
from trainflash.knobs.edits.attention.place import attention_place
from trainflash.knobs.edits.statements import whole_lines
from trainflash.knobs.kinds import FusedAttention
from trainflash.knobs.reading.expressions import made_as, refuse
from trainflash.knobs.reading.python_source import descendants, dotted, keyword
from trainflash.knobs.scene import Scene, Target
from trainflash.knobs.splices import Splice
from trainflash.schema import Location

DROPOUT = "torch.nn.functional.dropout"


def fused_attention(edit: FusedAttention, scene: Scene) -> tuple[Target, ...]:
    """The product of weights and values. Raises `UsageError` with the step that is not understood."""
    seen = scene.facts.get("attention")
    file, place = attention_place(scene, "the run saw no attention written by hand in this project's own source", "hand_written")
    chain = Chain(file, len(seen.shape) if seen is not None and seen.shape else None)
    weights = _weights(chain, place)
    product, value, turned = _up(chain, weights)
    scores.follow(chain, weights)
    scores.settle(chain)
    spelled, needed = imports.reach(file, "torch.nn.functional", "scaled_dot_product_attention")
    query = atom(chain.query) if chain.factor else chain.query
    arguments = [chain.raised(each) for each in (query + chain.factor, chain.key, value)]
    arguments += [f"attn_mask={chain.mask}"] if chain.mask else []
    arguments += [f"dropout_p={chain.dropout}"] if chain.dropout else []
    arguments += ["is_causal=True"] if chain.causal else []
    arguments += [f"scale={chain.scale}"] if chain.scale is not None else []
    start, end = file.span(product)
    call = f"{spelled}({', '.join(arguments)}){'[0]' if chain.flat else ''}{turned}"
    steps = [whole_lines(file, *file.span(step)) for step in {id(step): step for step in chain.steps}.values()]
    splices = (*needed, *steps, Splice(file.path, start, end, call))
    _order(chain, product)
    here = file.location(product)
    target = Target(here, None, lambda wanted: splices, f"attention at {here}", "scaled_dot_product_attention")
    if chain.added and not chain.causal:
        target = replace(target, risk="numerics", because="a place that is hidden whole, if there is one, would pass on its gradient")
    if chain.dropout:
        target = replace(target, risk="numerics", because="its dropout draws other random numbers")
    return (target,)


def _weights(chain: Chain, place: Location) -> cst.BaseExpression:
    """The softmax of the statement at `place`, or else the only one of the function around it."""
    file = chain.file
    found = softmax.softmaxes(file, file.module, chain.rank)
    here = [node for node in found if file.covers(file.statement(node) or node, place.line)]
    around = {function for node in found if (function := file.function_around(node)) is not None and file.covers(function, place.line)}
    if not here:
        innermost = max(around, key=lambda function: file.span(function)[0], default=None)
        here = [node for node in found if innermost is not None and file.function_around(node) is innermost]
    if len(here) != 1:
        raise refuse(f"{place}: {'no' if not here else 'more than one'} softmax over the last dimension near this line")
    return here[0]


# From the weights up to their product with the values -----------------------------------------------------------------------------


def _up(chain: Chain, node: cst.BaseExpression) -> tuple[cst.BaseExpression, str, str]:
    """The product that uses the weights, the source of the values, and what turns the result's dimensions."""
    file = chain.file
    up = file.parent(node)
    if isinstance(up, cst.Arg):
        call = file.parent(up)
        assert isinstance(call, cst.Call)
        full = file.full_name(call.func) or ""
        if full == einsum.NAME:
            (values, turned), back = einsum.values(file, call, node)
            return call, chain.turned(values, turned), back
        if full in scores.PRODUCTS and len(call.args) == 2:
            if call.args[0] is not up:
                raise refuse(f"{file.location(call)}: the weights stand on the right of the product")
            return call, chain.text(call.args[1].value), ""
        if full == DROPOUT or isinstance(call.func, cst.Attribute) or full.startswith("self."):
            _drop(chain, call, up)
            return _up(chain, call)
    if isinstance(up, cst.BinaryOperation) and isinstance(up.operator, cst.MatrixMultiply) and up.left is node:
        return up, chain.text(up.right), ""
    call = file.parent(up) if isinstance(up, cst.Attribute) and up.attr.value in ("matmul", "bmm") else None
    if isinstance(call, cst.Call) and len(call.args) == 1:
        return call, chain.text(call.args[0].value), ""
    name, line = chain.assigned_name(node)
    chain.steps.append(line)
    return _up(chain, chain.only_reader(name, line))


def _drop(chain: Chain, call: cst.Call, arg: cst.Arg) -> None:
    file = chain.file
    if call.args[0] is not arg or chain.dropout:
        raise refuse(f"{file.location(call)}: `{file.text(call)}` is not understood as dropout")
    if file.full_name(call.func) == DROPOUT:
        chance = keyword(call, "p") or (call.args[1] if len(call.args) > 1 and call.args[1].keyword is None else None)
        training = keyword(call, "training")
        if chance is None or training is None or len(call.args) != 3:
            raise refuse(f"{file.location(call)}: `{file.text(call)}` does not say its p and training")
        chain.dropout = f"{chain.text(chance.value)} if {file.text(training.value)} else 0.0"
        return
    made = made_as(file, call.func)
    if len(call.args) != 1 or made is None or file.full_name(made.func) != "torch.nn.Dropout":
        raise refuse(f"{file.location(call)}: `{file.text(call.func)}` is not known to be a dropout")
    chain.dropout = f"{dotted(call.func)}.p if self.training else 0.0"


def _order(chain: Chain, product: cst.BaseExpression) -> None:
    """All steps stand in one block, and nothing between them assigns what they read."""
    file = chain.file
    last = next(up for up in file.ancestors(product) if isinstance(up, cst.SimpleStatementLine))
    body = list(getattr(file.parent(last), "body", ()))
    if any(step not in body for step in chain.steps):
        raise refuse(f"{file.location(product)}: its steps stand in different blocks")
    first = min([body.index(step) for step in chain.steps], default=body.index(last))
    read = {node.value for step in chain.steps for node in descendants(step, cst.Name) if not stores(file, node)}
    for line in body[first : body.index(last)]:
        if line in chain.steps:
            continue
        stored = {node.value for node in descendants(line, cst.Name) if stores(file, node)}
        if stored & read or not isinstance(line, cst.SimpleStatementLine):
            raise refuse(f"{file.location(line)}: stands between the steps and may change what they read")
