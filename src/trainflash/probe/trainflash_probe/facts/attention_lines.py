"""Where attention is asked for that does not run in a fused kernel: lines of the owner's, in one step."""

from __future__ import annotations

import functools
import sys

from ..guard import swallow
from ..phases.loop import loop
from ..writer import fact
from . import weights
from .askers import asker
from .entry_points import EntryPoints


class AttentionLines:
    """The owner's lines of softmax, exponentials and attention calls inside forward, during one step, and whose weights are used."""

    def __init__(self, torch) -> None:
        self._torch = torch
        self._rows: dict = {}  # (kind, place, shape, reason) -> calls
        self._points = EntryPoints(torch)
        self._nodes: list = []  # (row, node of the graph) of weights whose backward has not begun

    def begin(self) -> None:
        """Wrap the entry points."""
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

    def _noted(self, kind: str, original, args: tuple, kwargs: dict, caller) -> object:
        row = None
        if loop.in_fwd or not loop.trained:  # a network of functions alone is never seen to begin
            try:
                row = self._note(kind, caller, args, kwargs)
            except Exception as error:
                swallow("attention", error)
        made = original(*args, **kwargs)
        if row is not None and kind != "sdpa" and type(made) is self._torch.Tensor and made.grad_fn is not None:
            self._nodes.append((row, made.grad_fn))
        return made

    def on_backward(self, tensors: tuple, grad_tensors: object) -> None:
        """The graph is whole: weights that go elsewhere than into the product with the values are told apart."""
        users = weights.consumers([tensor.grad_fn for tensor in tensors if tensor.grad_fn is not None]) if self._nodes else {}
        for row, node in [pair for pair in self._nodes if pair[1] in users]:
            if weights.used_elsewhere(node, users, row[0] == "exp"):
                self._rows[row] -= 1
                used = (*row[:3], weights.USED)
                self._rows[used] = self._rows.get(used, 0) + 1
        self._nodes = [pair for pair in self._nodes if pair[1] not in users]

    def _note(self, kind: str, frame, args: tuple, kwargs: dict) -> tuple:
        names: list = []
        place = asker(frame, names.append)
        reason = "need_weights" if "multi_head_attention_forward" in names else ""
        if kind != "sdpa":
            shape = list((args[0] if args else kwargs["input"]).shape)
        else:
            shape, reason = _scores_and_reason(args, kwargs)
        key = (kind, None if place is None else tuple(place), tuple(shape), reason)
        self._rows[key] = self._rows.get(key, 0) + 1
        return key

    def end(self, step: int) -> None:
        """Put everything back, and write."""
        loop.remove(self.on_backward)
        self._nodes = []
        self._points.restore()
        fact("attention_lines", step=step - 1, rows=[[*key, calls] for key, calls in self._rows.items() if calls])


def _scores_and_reason(args: tuple, kwargs: dict):
    _C = sys.modules["torch"]._C
    names = ("query", "key", "value", "attn_mask", "dropout_p")
    given = {**{names[index]: value for index, value in enumerate(args[: len(names)])}, **kwargs}
    query, key, value = given["query"], given["key"], given["value"]
    mask, dropout = given.get("attn_mask"), given.get("dropout_p") or 0.0
    shape = [*query.shape[:-1], key.shape[-2]]
    reasons = []
    if not (_C._get_flash_sdp_enabled() or _C._get_mem_efficient_sdp_enabled()):
        reasons.append("fused kernels are switched off")
    if query.dim() != 4:
        reasons.append(f"{query.dim()} dimensions, not 4")
    if mask is not None and mask.requires_grad:
        reasons.append("the mask needs a gradient")
    if query.device.type == "cpu" and dropout > 0:
        reasons.append("dropout on a CPU")
    if query.shape[-1] != value.shape[-1]:
        reasons.append("values have another head dimension than queries")
    if query.device.type == "cuda" and query.shape[-1] > 256:
        reasons.append(f"head dimension {query.shape[-1]}")
    if query.dtype.itemsize == 8 or not query.dtype.is_floating_point:
        reasons.append(f"dtype {str(query.dtype).replace('torch.', '')}")
    if given.get("enable_gqa") and query.device.type == "cpu":
        reasons.append("grouped heads")
    return shape, "; ".join(reasons)
