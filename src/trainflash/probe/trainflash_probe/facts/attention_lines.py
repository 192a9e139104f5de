"""Where attention is asked for that does not run in a fused kernel: lines of the owner's, in one step."""

from __future__ import annotations

import functools
import inspect
import sys

from ..guard import swallow
from ..phases.loop import loop
from ..writer import fact
from . import weights
from .askers import asker
from .entry_points import EntryPoints

DROPPING = "dropout on a CPU"


class AttentionLines:
    """The owner's lines of softmax, exponentials and attention calls inside forward, during one step, and whose weights are used."""

    def __init__(self, torch) -> None:
        self._torch = torch
        self._rows: dict = {}  # (kind, place, shape, reason) -> calls
        self._points = EntryPoints(torch)
        self._nodes: list = []  # (row, node of the graph) of weights whose backward has not begun

    def begin(self) -> None:
        """Watch the entry points."""
        loop.on_backward.append(self.on_backward)
        torch = self._torch
        functional = torch.nn.functional
        for owner, name, kind in (
            (torch, "softmax", "softmax"),
            (functional, "softmax", "softmax"),
            (torch.Tensor, "softmax", "softmax"),
            *((owner, name, "exp") for owner in (torch, torch.Tensor) for name in ("exp", "exp_", "exp2")),
            (functional, "scaled_dot_product_attention", "sdpa"),
        ):
            self._points.watch(owner, name, functools.partial(self._noted, kind))
        self._points.watch(functional, "multi_head_attention_forward", self._noted_heads)

    def _noted(self, kind: str, original, args: tuple, kwargs: dict, caller) -> object:
        row = self._note(caller, lambda: (kind, *(_of_kernel if kind == "sdpa" else _of_weights)(args, kwargs)))
        made = original(*args, **kwargs)
        self._keep(row, made)
        return made

    def _noted_heads(self, original, args: tuple, kwargs: dict, caller) -> object:
        """What torch's own module calls, and what is called inside of it is not seen."""
        row = self._note(caller, lambda: _of_heads(original, args, kwargs))
        made = original(*args, **kwargs)
        self._keep(row, made[1])
        return made

    def _keep(self, row, weights: object) -> None:
        """Whether anything else uses these weights shows at the backward."""
        if row is not None and row[0] != "sdpa" and type(weights) is self._torch.Tensor and weights.grad_fn is not None:
            self._nodes.append((row, weights.grad_fn))

    def on_backward(self, tensors: tuple, grad_tensors: object) -> None:
        """The graph is whole: weights that go elsewhere than into the product with the values are told apart."""
        users = weights.consumers([tensor.grad_fn for tensor in tensors if tensor.grad_fn is not None]) if self._nodes else {}
        for row, node in [pair for pair in self._nodes if pair[1] in users]:
            if weights.used_elsewhere(node, users, row[0] == "exp"):
                self._rows[row] -= 1
                used = (*row[:3], weights.USED)
                self._rows[used] = self._rows.get(used, 0) + 1
        self._nodes = [pair for pair in self._nodes if pair[1] not in users]

    def _note(self, frame, asked):
        """The row of a call; `asked()` tells its kind, the scores' shape and why no fused kernel takes it. None outside a forward."""
        if not loop.in_fwd and loop.trained:  # a network of functions alone is never seen to begin
            return None
        try:
            place = asker(frame)
            kind, shape, reason = asked()
            key = (kind, None if place is None else tuple(place), tuple(shape), reason)
            self._rows[key] = self._rows.get(key, 0) + 1
            return key
        except Exception as error:
            swallow("attention", error)
            return None

    def end(self, step: int) -> None:
        """Put everything back, and write."""
        loop.remove(self.on_backward)
        self._nodes = []
        self._points.restore()
        fact("attention_lines", step=step - 1, rows=[[*key, calls] for key, calls in self._rows.items() if calls])


def _of_weights(args: tuple, kwargs: dict) -> tuple:
    return (args[0] if args else kwargs["input"]).shape, ""


def _of_heads(original, args: tuple, kwargs: dict) -> tuple:
    """Of `multi_head_attention_forward`, which hands out weights or asks a kernel."""
    bound = inspect.signature(original).bind(*args, **kwargs)
    bound.apply_defaults()
    given = bound.arguments
    query, key, fixed, heads = given["query"], given["key"], given["static_k"], given["num_heads"]
    batch, width = (query.shape[1] if query.dim() == 3 else 1), query.shape[-1] // heads
    keys = (key.shape[0] if fixed is None else fixed.shape[1]) + (given["bias_k"] is not None) + bool(given["add_zero_attn"])
    dropout = given["dropout_p"] if given["training"] else 0.0
    if given["need_weights"]:  # without them a CPU has no kernel that drops
        dropping = dropout > 0 and query.device.type == "cpu"
        return "softmax", (batch * heads, query.shape[0], keys), DROPPING if dropping else "need_weights"
    return "sdpa", (batch, heads, query.shape[0], keys), _reasons(query, (4, width, width), given["attn_mask"], dropout)


def _of_kernel(args: tuple, kwargs: dict) -> tuple:
    """Of `scaled_dot_product_attention`."""
    names = ("query", "key", "value", "attn_mask", "dropout_p")
    given = {**{names[index]: value for index, value in enumerate(args[: len(names)])}, **kwargs}
    query, key, value = given["query"], given["key"], given["value"]
    sizes = (query.dim(), query.shape[-1], value.shape[-1])
    grouped = bool(given.get("enable_gqa"))
    return (*query.shape[:-1], key.shape[-2]), _reasons(query, sizes, given.get("attn_mask"), given.get("dropout_p") or 0.0, grouped)


def _reasons(query, sizes: tuple, mask, dropout: float, grouped: bool = False) -> str:
    """`sizes`: dimensions, and width of a head in queries and in values."""
    native = sys.modules["torch"]._C
    dimensions, width, of_values = sizes
    on_cpu = query.device.type == "cpu"
    reasons = []
    if not (native._get_flash_sdp_enabled() or native._get_mem_efficient_sdp_enabled()):
        reasons.append("fused kernels are switched off")
    if dimensions != 4:
        reasons.append(f"{dimensions} dimensions, not 4")
    if mask is not None and mask.requires_grad:
        reasons.append("the mask needs a gradient")
    if on_cpu and dropout > 0:
        reasons.append(DROPPING)
    if width != of_values:
        reasons.append("values have another head dimension than queries")
    if query.device.type == "cuda" and width > 256:
        reasons.append(f"head dimension {width}")
    if query.dtype.itemsize == 8 or not query.dtype.is_floating_point:
        reasons.append(f"dtype {str(query.dtype).replace('torch.', '')}")
    if grouped and on_cpu:
        reasons.append("grouped heads")
    return "; ".join(reasons)
