"""Counts the operations of one step with torch's own counter, and looks at the model. Imports torch: only for a process that trains."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode

from trainflash.gate.measure import flops
from trainflash.gate.measure.flops import Work

_aten = torch.ops.aten
_PRODUCTS_OF_ACTIVATIONS = ("bmm", "baddbmm", "_scaled_dot_product", "_flash_attention", "_efficient_attention", "flex_attention")
_WITH_DTYPE = {_aten.mm.default: 0, _aten.addmm.default: 1, _aten.bmm.default: 0, _aten.convolution.default: 0}


def size(model: torch.nn.Module) -> Work:
    """Parameters of the model: all, those outside embeddings, those that are factors of a matrix product. Shared ones count once.

    None of them for a model whose parameters are flat shards.
    """
    if any(type(part).__name__ == "FullyShardedDataParallel" for part in model.modules()):
        return Work()  # its flat shards do not say what belongs to what
    lookups: dict[int, torch.Tensor] = {}
    elsewhere: set[int] = set()
    for module in model.modules():
        of_module = {id(parameter): parameter for parameter in module.parameters(recurse=False)}
        if isinstance(module, (torch.nn.Embedding, torch.nn.EmbeddingBag)):
            lookups |= of_module
        else:
            elsewhere |= of_module.keys()
    parameters = list(model.parameters())
    multiplying = [
        each for each in parameters if each.dim() >= 2 and each.shape[0] > 1 and (id(each) not in lookups or id(each) in elsewhere)
    ]
    return Work(
        parameters=sum(each.numel() for each in parameters),
        non_embedding=sum(each.numel() for each in parameters if id(each) not in lookups),
        multiplying=sum(each.numel() for each in multiplying),
    )


def count(forward: Callable[[], Any], backward: Callable[[Any], None]) -> tuple[float, float, str | None]:
    """(operations of forward and backward, of them products of activations in the forward, number format of most products)."""
    types = _ProductTypes()
    with _counter() as ahead, types:
        loss = forward()
    with _counter() as back:
        backward(loss)
    in_forward = ahead.get_flop_counts().get("Global", {})
    attention = sum(done for operator, done in in_forward.items() if _is_of_activations(str(operator)))
    return float(ahead.get_total_flops() + back.get_total_flops()), float(attention), types.most()


def _is_of_activations(operator: str) -> bool:
    return any(operator.rpartition("aten.")[2].startswith(name) for name in _PRODUCTS_OF_ACTIVATIONS)


def _counter() -> FlopCounterMode:
    """torch's counter, with the processor's fused attention, which it does not know."""
    mapping = {}
    forward = getattr(_aten, "_scaled_dot_product_flash_attention_for_cpu", None)
    if forward is not None:
        mapping[forward] = lambda query, key, value, *rest, out_shape=None, **more: int(flops.attention(query, key, value))
    backward = getattr(_aten, "_scaled_dot_product_flash_attention_for_cpu_backward", None)
    if backward is not None:
        mapping[backward] = lambda grad, query, key, value, *rest, out_shape=None, **more: int(2.5 * flops.attention(query, key, value))
    return FlopCounterMode(display=False, custom_mapping=mapping)


class _ProductTypes(TorchDispatchMode):
    """Notes the number format of each product's first factor, weighed by its elements."""

    def __init__(self) -> None:
        super().__init__()
        self._elements: Counter[str] = Counter()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        at = _WITH_DTYPE.get(func)
        if at is not None:
            self._elements[str(args[at].dtype).replace("torch.", "")] += args[at].numel()
        return func(*args, **(kwargs or {}))

    def most(self) -> str | None:
        """The commonest format; "tfloat32" for float32 that CUDA multiplies by TF32."""
        found = next((name for name, _ in self._elements.most_common(1)), None)
        return "tfloat32" if found == "float32" and torch.cuda.is_initialized() and _allows_tf32() else found


def _allows_tf32() -> bool:
    try:
        return torch.get_float32_matmul_precision() != "highest"
    except RuntimeError:  # old and new switches were mixed: torch does not say
        return False
