"""What surrounds one update: modes of the modules, settings of the optimizer, random streams, autograd graphs, weights."""

from __future__ import annotations

import hashlib
import os
import random
import sys

from . import projected, tensors, values
from .tensors import torch_module
from .values import hollow, local

_WAYS_APART = 1 << 24  # seeds of two ways to nudge: no model has so many parameters
_GRAPH_LIMIT = 200_000  # nodes of one backward that are looked at
_COUNT_LIMIT = 50_000_000  # elements that are copied to count how many of them one update changes
# How the arithmetic is done, not what is computed; a change of these shows in the losses if it matters.
IMPLEMENTATION = {"params", "foreach", "fused", "capturable", "differentiable", "initial_lr", "param_names"}


def plain_name(name):
    """A class or parameter name without what compilers and data-parallel wrappers put around it."""
    return name.replace("_orig_mod.", "").replace("_fsdp_wrapped_module.", "").removeprefix("module.")


def mode(module):
    """`[class, training, dropouts in training mode, sum of their p, normalizations in training mode]` of a root module."""
    torch = torch_module()
    dropout, norm = torch.nn.modules.dropout._DropoutNd, torch.nn.modules.batchnorm._NormBase
    inner = getattr(module, "_orig_mod", module)
    dropouts, chance, norms = 0, 0.0, 0
    for part in inner.modules():
        if part.training and isinstance(part, dropout):
            dropouts += 1
            chance += float(part.p)
        elif part.training and isinstance(part, norm):
            norms += 1
    return [type(inner).__name__, bool(inner.training), dropouts, round(chance, 9), norms]


def autocast(device):
    """The autocast type in force for `device`, or "" when it is off."""
    torch = torch_module()
    try:
        return str(torch.get_autocast_dtype(device)) if torch.is_autocast_enabled(device) else ""
    except (TypeError, RuntimeError, AttributeError):
        return "unknown"


def settings(optimizer):
    """Per parameter group: every number that decides about the update (learning rate, weight decay, momentum, …)."""
    groups = []
    for group in optimizer.param_groups:
        plain = {key: _number(value) for key, value in sorted(group.items()) if key not in IMPLEMENTATION}
        plain = {key: value for key, value in plain.items() if value is not None}
        plain["values"] = sum(int(parameter.numel()) for parameter in group["params"])
        groups.append(plain)
    return groups


def _number(value):
    if isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, (tuple, list)):
        return [_number(item) for item in value]
    if isinstance(value, torch_module().Tensor):
        return float(value) if value.numel() == 1 else None
    return float(value) if isinstance(value, float) else None


def parameters(optimizer, modules=()):
    """All parameters of an optimizer, in the order of the first module that has them all, however they are grouped; else of the groups."""
    found = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    for module in modules:
        places = {id(parameter): place for place, parameter in enumerate(module.parameters())}
        if all(id(parameter) in places for parameter in found):
            return sorted(found, key=lambda parameter: places[id(parameter)])
    return found


def gradients(optimizer, parameters_):
    """`(L2 norm in float64 of all gradients, parameters with a gradient, their elements, their signed sums)`; scale undone."""
    found = [(number, parameter.grad) for number, parameter in enumerate(parameters_) if parameter.grad is not None]
    scale = getattr(optimizer, "grad_scale", None)  # a fused optimizer unscales inside its kernel
    scale = 1.0 if scale is None else float(scale)
    if any(values.scattered(grad) for _, grad in found):
        total, sums = sum(tensors.squares(grad) for _, grad in found), None
    else:
        total, sums = projected.projected(found)
    elements = sum(int(grad.numel()) for _, grad in found)
    return total**0.5 / scale, len(found), elements, sums and projected.packed([each / scale for each in sums])


class Before:
    """The parameters just before an update, to see afterwards which of them it changed and how many values."""

    def __init__(self, parameters_):
        self._parameters = parameters_
        small = sum(int(parameter.numel()) for parameter in self._parameters) <= _COUNT_LIMIT
        self._copies = [local(parameter).clone() for parameter in self._parameters] if small else None
        self._digests = None if small else [tensors.digest([parameter]) for parameter in self._parameters]

    def changed(self):
        """`(indices of changed parameters, changed values or None when there are too many to count)`."""
        if self._copies is None:
            now = [tensors.digest([parameter]) for parameter in self._parameters]
            return [index for index, old in enumerate(self._digests) if old != now[index]], None
        counts = [int((old != local(self._parameters[index])).sum()) for index, old in enumerate(self._copies)]
        return [index for index, count in enumerate(counts) if count], sum(counts)


def buffers(module) -> list:
    """The buffers that belong to the module's state, each once. Others (`persistent=False`: masks, tables) are made by its code."""
    found: dict = {}
    for part in module.modules():
        for name, buffer in part._buffers.items():
            if buffer is not None and name not in part._non_persistent_buffers_set:
                found.setdefault(id(buffer), buffer)
    return list(found.values())


def weights(parameters_, buffers):
    """Hash, norm and sketch of weights, and of floating-point buffers (running statistics)."""
    floating = [buffer for buffer in buffers if buffer.is_floating_point()]
    sums = [tensors.squares(parameter) for parameter in parameters_]
    return {
        "digest": tensors.digest(list(parameters_) + list(buffers)),
        "norm": sum(sums) ** 0.5,
        "sketch": tensors.sketch(parameters_),
        "types": sorted({str(parameter.dtype).replace("torch.", "") for parameter in parameters_}),
        "values": sum(int(parameter.numel()) for parameter in parameters_),
        "buffer_norm": sum(tensors.squares(buffer) for buffer in floating) ** 0.5,
        "buffer_sketch": tensors.sketch(floating) if floating else [],
    }


def random_streams():
    """A short hash of each global random stream's state; reading it draws nothing."""
    torch = torch_module()
    found = {
        "torch": tensors.digest([torch.get_rng_state()]),
        "python": hashlib.blake2b(repr(random.getstate()).encode(), digest_size=8).hexdigest(),
    }
    numpy = sys.modules.get("numpy")
    if numpy is not None and hasattr(numpy, "random"):
        state = numpy.random.get_state()
        found["numpy"] = hashlib.blake2b(state[1].tobytes() + repr(state[2:]).encode(), digest_size=8).hexdigest()
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        found["cuda"] = tensors.digest([torch.cuda.get_rng_state()])
    return found


def graph_marker():
    """A number that grows with every autograd node made on this thread: nodes made later have larger ones. None without gradients."""
    torch = torch_module()
    if not torch.is_grad_enabled() or torch.is_inference_mode_enabled():
        return None
    return (torch.zeros(1, device="cpu", requires_grad=True) * 1).grad_fn._sequence_nr()


def graph_numbers(roots):
    """Sequence numbers of the autograd nodes that `roots` depend on; None when the graph is too large to walk."""
    waiting = [root.grad_fn for root in roots if getattr(root, "grad_fn", None) is not None]
    seen, numbers = set(waiting), []
    while waiting:
        node = waiting.pop()
        numbers.append(node._sequence_nr())
        for following, _ in node.next_functions:
            if following is not None and following not in seen:
                seen.add(following)
                waiting.append(following)
        if len(seen) > _GRAPH_LIMIT:
            return None
    return numbers


class EvaluatedElsewhere:
    """What evaluations see with TRAINFLASH_NUDGE=evaluations: weights that are moved while a network answers without gradients.

    The training stays as it is, to the bit, so that a figure of the program's that moves comes from its evaluations.
    """

    def __init__(self):
        self._kept = []  # (parameter, its values)

    def begin(self, module):
        self.end()  # a forward that failed has told of no end
        for parameter in module.parameters():
            if parameter.requires_grad and _can_move(parameter):
                self._kept.append((parameter.data, parameter.detach().clone()))
        for index, (data, _) in enumerate(self._kept):
            data.mul_(1 + _step(data, index, torch_module().bfloat16))

    def end(self):
        while self._kept:
            data, values = self._kept.pop()
            data.copy_(values)


def _can_move(parameter):
    return parameter.is_floating_point() and parameter.layout is torch_module().strided and not hollow(parameter)


def _step(parameter, index, dtype, way=1):
    """About one unit in the last place of `dtype`, up or down for each number, the same way each time."""
    torch = torch_module()
    private = torch.Generator(device="cpu")
    private.manual_seed(0xD06E + index + _WAYS_APART * (way - 1))
    signs = torch.randint(0, 2, tuple(parameter.shape), generator=private, dtype=torch.int8) * 2 - 1
    return torch.finfo(dtype).eps * signs.to(parameter.device, parameter.dtype)


def nudge(module, done):
    """Change every floating-point weight of `module` by about one unit in the last place, up or down, the same way each time; another way
    for each number that TRAINFLASH_NUDGE is.

    `done` holds the ids of parameters that were nudged before: a graph may have saved them.
    """
    torch = torch_module()
    wanted = os.environ.get("TRAINFLASH_NUDGE", "")
    kind = torch.bfloat16 if wanted == "bfloat16" else None
    way = int(wanted) if wanted.isdigit() else 1
    with torch.no_grad():
        for index, parameter in enumerate(module.parameters()):
            if id(parameter) not in done and _can_move(parameter):
                done.add(id(parameter))
                parameter.mul_(1 + _step(parameter, index, kind or parameter.dtype, way))
