"""Targets that the program computes itself, such as a teacher's answers: what tells whether two of them differ by rounding alone.

Float targets are kept as random signed sums of their values, which tell how far two lists of targets are apart in all and depend on the
place of every value; the same of their values compressed, in which what is small shows beside what is large. All else must be equal.
"""

from __future__ import annotations

import hashlib
import random
import struct

from . import projected, tensors

_LARGEST = 1e35  # divided by the knee still finite as float32; larger values, such as those that masks put in, are told by the plain sums
_KNEE = 1e-2  # smaller values are compressed no more: rounding moves what lies near 0 by much of itself
_UPDATES_APART = 1009  # odd: no two updates sum with the same signs, so that what cancels out in one shows in the next


def look(given, update):
    """What is kept of the targets `given` in one call: a hash of what must be equal, and sums of the values and of their compressed form.

    `update`: how many were made before. The sums are None where no target is of floats.
    """
    exact = hashlib.blake2b(digest_size=tensors.ROW_BYTES)
    floats = []
    for tensor in map(tensors.as_single, given):
        if tensor.is_floating_point() and tensor.layout is tensors.torch_module().strided:
            exact.update(f"{tensor.dtype}{tuple(tensor.shape)}".encode())
            floats.append(tensor)
        else:
            exact.update(tensors.digest([tensor]).encode())
    numbered = [(update * _UPDATES_APART + index, tensor) for index, tensor in enumerate(floats)]
    return exact.digest(), [projected.projected(numbered), projected.projected(numbered, _compressed)] if floats else None


def together(looks):
    """`[hash, sums]` of all calls of an update, in hexadecimal; None where one could not be looked at, or none was given floats.

    The sums are doubles: of the values and then of their compressed form the sum of squares, then the signed sums.
    """
    if None in looks or not any(sums for _, sums in looks):
        return None
    total = [[0.0] * (projected.WIDTH + 1) for _ in range(2)]
    for index, (_, sums) in enumerate(looks):
        for each, (squares, signed) in zip(total, sums or ()):
            each[0] += squares
            each[1:] = [before + more for before, more in zip(each[1:], _turned(signed, index))]
    plain = struct.pack(f"<{2 * (projected.WIDTH + 1)}d", *total[0], *total[1])
    return [tensors.ordered([exact for exact, _ in looks]), plain.hex()]


def _compressed(part):
    """Signed logarithms of 1 + 100 times the values, in single precision: faster, and by far nearer than what is asked of them."""
    single = part.float()
    return single.abs().clamp_(max=_LARGEST).div_(_KNEE).log1p_().copysign_(single).double()


def _turned(signed, index):
    """The sums of one call with places and signs of its own, so that targets that change places between two calls show."""
    signs = random.Random(index).getrandbits(projected.WIDTH)
    return [-value if signs >> at & 1 else value for at, value in enumerate(signed[index % len(signed) :] + signed[: index % len(signed)])]
