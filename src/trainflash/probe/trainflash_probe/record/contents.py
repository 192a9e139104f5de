"""What a saved object holds: names, types and hashes of its tensors, and the plain values that move while the program trains.

None of the owner's code runs for this: modules and optimizers are read as pickle reads them, not by their `state_dict`, whose hooks may
draw random numbers.
"""

from __future__ import annotations

import hashlib
import sys
from collections import deque
from collections.abc import Mapping

from . import projected, tensors
from .state import IMPLEMENTATION
from .tensors import torch_module

_DEPTH = 8
_MOST_GROUPS = 400
_MOST_NUMBERS = 1_000_000  # in lists of one checkpoint
_GENERATOR_BYTES = (5056, 16)  # what `torch.get_rng_state` and `torch.cuda.get_rng_state` return


def checkpoint(obj, live):
    """Keys, types, shapes and hashes of all tensors and plain values in a saved object.

    `live` is `{digest: data pointer}` of the weights in training: `current` of them are saved as they are now, `aliases` share their
    memory. `exact` is a hash of what is no floating-point tensor; `scaled` are signed sums of all others, each at its own scale, so that
    those of two objects are as far apart as their tensors are, relatively. `undrawn`, beside states of torch's generators, is a hash of all
    other tensors. `values` are numbers in lists and arrays, by the name of the list: `[hash, how many, norm]`, with a sketch of arrays;
    `counts` are the integers beside them, such as an epoch.
    """
    torch = torch_module()
    plain = stateful(obj)
    found = list(tensors.leaves(plain))
    names = [f"{name}:{str(tensor.dtype).replace('torch.', '')}{list(tensor.shape)}" for name, tensor in found]
    keys = sorted(names + [f"{key}:{type(value).__name__}" for key, value in _scalars(plain)])
    ordered = [tensor for _, tensor in sorted(found, key=lambda item: item[0])]
    floating = [tensor for _, tensor in found if tensor.is_floating_point()]
    drawn = any(_of_generator(tensor) for tensor in ordered)
    plain_values = sorted(f"{key}={value!r}" for key, value in _scalars(plain) if isinstance(value, (bool, int, float, str)))
    pointers = set(live.values())
    numbers = _Numbers()
    numbers.take(plain)
    with torch.no_grad():
        each = [tensors.digest([tensor]) for tensor in ordered] if live or drawn else []
        saved = set(each)
        return {
            "keys": hashlib.blake2b("\n".join(keys).encode(), digest_size=8).hexdigest(),
            "names": keys[:400],
            "tensors": len(found),
            "digest": tensors.digest(ordered),
            "bytes": sum(int(tensor.numel()) * tensor.element_size() for _, tensor in found),
            "aliases": sum(1 for _, tensor in found if tensor.numel() and tensor.data_ptr() in pointers),
            "current": sum(digest in saved for digest in live),
            "live": len(live),
            "scalars": hashlib.blake2b("\n".join(plain_values).encode(), digest_size=8).hexdigest(),
            "norm": sum(tensors.squares(tensor) for tensor in floating) ** 0.5,
            "sketch": tensors.sketch(floating),
            "exact": tensors.digest([tensor for tensor in ordered if not tensor.is_floating_point()]),
            "scaled": projected.scaled([tensor for tensor in ordered if tensor.is_floating_point()]),
            **({"undrawn": _joined(digest for digest, tensor in zip(each, ordered) if not _of_generator(tensor))} if drawn else {}),
            **numbers.found(),
        }


def _joined(digests):
    return hashlib.blake2b("".join(digests).encode(), digest_size=16).hexdigest()


def _of_generator(tensor):
    """Whether a tensor has the form of a state of torch's generator on the host, or on a CUDA device."""
    return str(tensor.dtype) == "torch.uint8" and tensor.dim() == 1 and tensor.numel() in _GENERATOR_BYTES


def stateful(obj, depth=0):
    """`obj` with modules and optimizers in it replaced by dictionaries of what they hold, named as `state_dict` names it.

    What a checkpoint says of the checkpoints before it, Lightning's `ModelCheckpoint`, is left out: fewer saves make it another one.
    """
    torch = torch_module()
    if isinstance(obj, torch.nn.Module):
        return dict(_held(obj))
    if isinstance(obj, torch.optim.Optimizer):
        return _of_optimizer(obj)
    if isinstance(obj, dict) and depth < 4:
        return {key: stateful(value, depth + 1) for key, value in obj.items() if not _of_saves(value)}
    return obj


def _of_saves(value):
    return isinstance(value, dict) and "best_model_path" in value and "dirpath" in value


def _held(module, prefix="", depth=0):
    temporary = getattr(module, "_non_persistent_buffers_set", ())
    for name, parameter in module._parameters.items():
        if parameter is not None:
            yield prefix + name, parameter
    for name, buffer in module._buffers.items():
        if buffer is not None and name not in temporary:
            yield prefix + name, buffer
    for name, part in module._modules.items():
        if part is not None and depth < 100:
            yield from _held(part, f"{prefix}{name}.", depth + 1)


def _of_optimizer(optimizer):
    places = {id(each): index for index, each in enumerate(each for group in optimizer.param_groups for each in group["params"])}
    groups = [{**group, "params": ()} for group in optimizer.param_groups]
    return {"state": {places.get(id(key), str(key)): dict(value) for key, value in optimizer.state.items()}, "param_groups": groups}


def _scalars(obj, name="", depth=0):
    if isinstance(obj, dict) and depth < 4:
        for key, value in obj.items():
            yield from _scalars(value, f"{name}.{key}" if name else str(key), depth + 1)
    elif not isinstance(obj, torch_module().Tensor):
        yield name, obj


class _Numbers:
    """Numbers of a saved object, gathered by the list or array that holds them."""

    def __init__(self):
        self._numpy = sys.modules.get("numpy")
        self._groups: dict = {}  # name -> [hash, how many, sum of squares, its arrays of floating-point numbers]
        self._counts: dict = {}
        self._left = _MOST_NUMBERS

    def found(self):
        groups = {
            name: [total.hexdigest(), many, squares**0.5, *([tensors.sketch(arrays)] if arrays else [])]
            for name, (total, many, squares, arrays) in self._groups.items()
        }
        return {"values": groups, "counts": self._counts}

    def take(self, obj, name="", listed=False, depth=0):
        if isinstance(obj, Mapping):
            for key, value in obj.items() if depth < _DEPTH else ():
                if listed and key in IMPLEMENTATION:
                    continue
                if listed and _is_number(value):
                    self._add(name, f"{key}={value!r}", value)
                else:
                    self.take(value, f"{name}.{key}" if name else str(key), listed, depth + 1)
        elif isinstance(obj, (list, tuple, deque)):
            self._list(obj, name, depth)
        elif self._numpy is not None and isinstance(obj, (self._numpy.ndarray, self._numpy.generic)):
            self._array(name, obj)
        elif _is_number(obj) and listed:
            self._add(name, repr(obj), obj)
        elif isinstance(obj, int) and not isinstance(obj, bool) and len(self._counts) < _MOST_GROUPS:
            self._counts[name] = int(obj)

    def _list(self, items, name, depth):
        if items and all(isinstance(item, Mapping) and "params" in item for item in items):
            for text in sorted({_settings(group) for group in items}):  # however the parameters are grouped
                self._add(name, text, 0)
            return
        for value in items if depth < _DEPTH else ():
            if self._left <= 0:
                return
            self.take(value, name, True, depth + 1)

    def _array(self, name, array):
        if array.dtype.kind not in "biufc":
            return
        values = self._numpy.ascontiguousarray(array)
        group = self._group(name)
        if group is not None:
            group[0].update(f"{array.dtype.str}{array.shape}".encode())
            group[0].update(values.tobytes())
            group[1] += int(values.size)
            if array.dtype.kind in "fc":
                with self._numpy.errstate(all="ignore"):
                    group[2] += float((abs(values).astype("float64") ** 2).sum())
            if array.dtype.kind == "f":
                group[3].append(torch_module().from_numpy(values.astype("float64")))

    def _add(self, name, text, value):
        self._left -= 1
        group = self._group(name)
        if group is not None:
            group[0].update(f"{text},".encode())
            group[1] += 1
            size = 0.0 if isinstance(value, int) else float(abs(value))
            group[2] += size * size

    def _group(self, name):
        if name not in self._groups and len(self._groups) >= _MOST_GROUPS:
            return None
        return self._groups.setdefault(name, [hashlib.blake2b(digest_size=8), 0, 0.0, []])


def _settings(group):
    plain = {key: value for key, value in group.items() if key not in IMPLEMENTATION}
    return repr([(key, value) for key, value in sorted(plain.items()) if _is_number(value) or isinstance(value, (list, tuple))])


def _is_number(value):
    return isinstance(value, (bool, int, float, complex))
