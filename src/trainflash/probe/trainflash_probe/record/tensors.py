"""Fingerprints of tensors that change nothing: no random state, no gradient, no bit of the training.

Hashes are BLAKE2b over the raw bytes; a sketch is a random projection whose signs come from private generators, so that the
L2 distance of two weight vectors can be estimated from two short lists of numbers.
"""

from __future__ import annotations

import ctypes
import hashlib
import sys

from ..objects import held_in, is_a, is_tensor
from .values import dense, everywhere, held, hollow, pieces, scattered

ROW_BYTES = 8
SKETCH = 128  # buckets: the L2 norm of a difference is estimated within about √(2/128) = 12 %
IGNORED = -100  # the class index that torch's losses leave out unless told another
_CHUNK = 1 << 18  # elements converted to float64 at once: they stay in the processor's caches
_DEPTH = 6
_ENTRIES = 1 << 20  # of one container
_MIX = (-7046029254386353131, -4658895280553007687)  # odd, with bits all over: they spread each value over 64 bits
_SALT = 0x2545F4914F6CDD1D  # stands for 0 where zeros count


def torch_module():
    """The program's own torch; it is imported already when a recorder exists."""
    return sys.modules["torch"]


def leaves(obj, name="", depth=0):
    """`(name, tensor)` of every tensor in nested lists, tuples, mappings and dataclasses, in a fixed order, by no code of the program's.

    Those without values in memory are left out.
    """
    if is_tensor(obj):
        if not hollow(obj):
            yield name, obj
    elif depth < _DEPTH:
        for key, value in _children(obj):
            yield from leaves(value, f"{name}.{key}" if name else str(key), depth + 1)


def _children(obj):
    found = held_in(obj, _ENTRIES) or []
    if not is_a(obj, list, tuple):
        return sorted(found, key=lambda item: item[0])
    return [(at, value) for at, (_, value) in enumerate(found)]


class Raw:
    """The bytes of a tensor: `view` is valid as long as this object lives. `tensor` holds them."""

    def __init__(self, tensor):
        with torch_module().no_grad():
            self.tensor = dense(tensor).resolve_conj().resolve_neg().cpu().contiguous()
        size = self.tensor.numel() * self.tensor.element_size()
        address = self.tensor.data_ptr()
        if size and not address:
            raise ValueError("its values lie elsewhere")
        self.view = memoryview((ctypes.c_char * size).from_address(address)).cast("B") if size else memoryview(b"")


def describe(tensor):
    """Data type and shape of one sample (without the leading dimension), such as `float32[3,32,32]`."""
    kind = str(tensor.dtype).replace("torch.", "")
    return f"{kind}[{','.join(str(int(n)) for n in tensor.shape[1:])}]"


def digest(tensors):
    """One hash of the types, shapes and bytes of `tensors`, in order."""
    total = hashlib.blake2b(digest_size=16)
    for tensor in tensors:
        total.update(f"{tensor.dtype}{tuple(tensor.shape)}".encode())
        for piece in pieces(tensor):
            raw = Raw(piece)  # keeps a copy alive while its bytes are read
            total.update(raw.view)
    return total.hexdigest()


def rows(tensors, trim=False, ignored=None):
    """One hash a sample over all `tensors` that share the leading dimension of the first; one hash in all if it has none.

    With `trim` without the zeros at the end of each sample's tensors, along each of their dimensions, nor the index that losses leave out:
    a padded sample is the same however far it is padded. With `ignored` without that whole number at the end, and nothing else.
    """
    lead = tensors[0].shape[0] if tensors and tensors[0].dim() and not scattered(tensors[0]) else 0
    if not lead:
        return [bytes.fromhex(digest(tensors))[:ROW_BYTES]] if tensors else []
    along = [tensor for tensor in tensors if tensor.dim() and tensor.shape[0] == lead and not scattered(tensor)]
    hashes = [hashlib.blake2b(digest_size=ROW_BYTES) for _ in range(lead)]
    for tensor in along:
        raw = Raw(tensor)
        width = len(raw.view) // lead
        padding = _whole(tensor, IGNORED if trim else ignored)
        several = trim and tensor.dim() > 2 and not tensor.is_quantized
        for index, row in enumerate(hashes):
            kept = Raw(_unpadded(raw.tensor[index])) if several else None
            part = bytes(raw.view[index * width : (index + 1) * width] if kept is None else kept.view)
            if padding:
                part = _without_end(part, padding)
            row.update(part.rstrip(b"\0") + b"\1" if trim else part)
    return [row.digest() for row in hashes]


def _unpadded(sample):
    """`sample` without what only zeros, or only the index that losses leave out, fill at the end of a dimension."""
    torch = torch_module()
    with torch.no_grad():
        for fill in (IGNORED, 0) if sample.dtype in (torch.int32, torch.int64) else (0,):
            for dim in range(sample.dim()):
                if sample.shape[dim] and bool((sample.select(dim, -1) == fill).all()):
                    held = (sample != fill).movedim(dim, 0).flatten(1).any(1).nonzero()
                    sample = sample.narrow(dim, 0, int(held[-1]) + 1 if len(held) else 0)
    return sample


def _without_end(part, padding):
    length = len(part)
    while part.endswith(padding, 0, length):
        length -= len(padding)
    return part[:length]


def _whole(tensor, number):
    """The bytes of a whole number in a tensor of such; None in any other tensor. Small types hold pictures and masks."""
    torch = torch_module()
    sizes = {torch.int32: 4, torch.int64: 8}
    return int(number).to_bytes(sizes[tensor.dtype], "little", signed=True) if number is not None and tensor.dtype in sizes else None


def as_single(target):
    """Targets of float64 as float32 has them: they stay the same targets in either format, which is judged by itself."""
    torch = torch_module()
    return target.to(torch.float32) if target.dtype == torch.float64 else target


def joined(hashes):
    """One row hash of several."""
    return hashlib.blake2b(b"".join(hashes), digest_size=ROW_BYTES).digest()


def multiset(hashes, start=0):
    """An order-insensitive sum of row hashes, modulo 2**64."""
    return (start + sum(int.from_bytes(row, "little") for row in hashes)) % (1 << 64)


def ordered(hashes):
    """An order-sensitive hash of row hashes."""
    return hashlib.blake2b(b"".join(hashes), digest_size=ROW_BYTES).hexdigest()


def total(hashes):
    """An order-insensitive sum of hashes that are numbers, modulo 2**64."""
    return sum(hashes) % (1 << 64)


def elements(tensors, zeros=False):
    """A hash of the single values of all `tensors`: the same in any layout and division, and without `zeros` however they are padded."""
    torch = torch_module()
    found = 0
    with torch.no_grad():
        for tensor in tensors:
            flat = _bits(held(tensor.int_repr() if tensor.is_quantized else tensor))
            for start in range(0, flat.numel(), _CHUNK):
                mixed = flat[start : start + _CHUNK].to(torch.int64)
                mixed = (mixed ^ _SALT if zeros else mixed) * _MIX[0]
                mixed ^= mixed >> 29
                mixed *= _MIX[1]
                mixed ^= mixed >> 32
                found += int(mixed.sum())
    return found % (1 << 64)


def _bits(flat):
    """Whole numbers as they are, all others by their bits."""
    torch = torch_module()
    if flat.dtype is torch.bool or not flat.is_floating_point():
        return flat
    return flat.contiguous().view({1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[flat.element_size()])


def moments(tensors):
    """Sum, sum of squares and position-weighted sum of all floating-point values: near each other if only rounding differs."""
    torch = torch_module()
    total = [0.0, 0.0, 0.0]
    with torch.no_grad():
        for tensor in tensors:
            if not tensor.is_floating_point() or tensor.layout is not torch.strided:
                continue
            flat = tensor.detach().reshape(-1)
            for start in range(0, flat.numel(), _CHUNK):
                part = flat[start : start + _CHUNK].to("cpu", torch.float64)
                ramp = torch.arange(start, start + part.numel(), dtype=torch.float64) / max(1, flat.numel())
                for index, values in enumerate((part, part * part, part * ramp)):
                    total[index] += float(values.sum())
    return total


def totals(tensors, scalars=False):
    """`[sum, sum of squares, how many]` of all floating-point values of tensors with a leading dimension: the same, up to rounding, however
    the samples are divided into batches. With `scalars` of those without one, which may each be a mean over its batch."""
    torch = torch_module()
    found = [0.0, 0.0, 0]
    with torch.no_grad():
        for tensor in tensors:
            if not tensor.is_floating_point() or bool(tensor.dim()) is scalars or tensor.layout is not torch.strided:
                continue
            flat = tensor.detach().reshape(-1)
            for start in range(0, flat.numel(), _CHUNK):
                part = flat[start : start + _CHUNK].to("cpu", torch.float64)
                found[0] += float(part.sum())
                found[1] += float((part * part).sum())
            found[2] += flat.numel()
    return found


def coarse(tensors):
    """`(values that bfloat16 holds exactly, all values)` of float32 tensors: rounded inputs are told by their bits, not by their type."""
    torch = torch_module()
    exact = total = 0
    with torch.no_grad():
        for tensor in tensors:
            if tensor.dtype is torch.float32 and tensor.layout is torch.strided:
                bits = tensor.detach().contiguous().view(torch.int32)
                exact += int((bits & 0xFFFF == 0).sum())
                total += int(tensor.numel())
    return exact, total


def squares(tensor):
    """Sum of squares in float64."""
    torch = torch_module()
    total = 0.0
    with torch.no_grad():
        flat = held(tensor)
        for start in range(0, flat.numel(), _CHUNK):
            part = flat[start : start + _CHUNK].to(torch.float64)
            total += float(torch.dot(part, part))
    return total


def sketch(tensors):
    """`SKETCH` random signed sums of all values. For two lists of equal shapes the norm of the difference of their sketches estimates
    the L2 norm of the difference of their values."""
    torch = torch_module()
    total = torch.zeros(SKETCH, dtype=torch.float64)
    with torch.no_grad():
        for index, tensor in enumerate(tensors):
            private = torch.Generator(device="cpu")
            private.manual_seed(0x7F1A + index)
            flat = everywhere(tensor)
            for start in range(0, flat.numel(), _CHUNK):
                part = flat[start : start + _CHUNK].to("cpu", torch.float64)
                signs = torch.randint(0, 2, (part.numel(),), generator=private, dtype=torch.int8).to(torch.float64) * 2 - 1
                padded = torch.zeros(-(-part.numel() // SKETCH) * SKETCH, dtype=torch.float64)
                padded[: part.numel()] = part * signs
                total += padded.view(-1, SKETCH).sum(0)
    return total.tolist()
