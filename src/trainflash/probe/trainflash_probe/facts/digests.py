"""Digests of arguments and results, to tell equal from unequal without keeping either. Draws no randomness, copies no device memory."""

from __future__ import annotations

import hashlib
import marshal
import os
import sys
from pathlib import PurePath

from ..guard import let_through
from ..nested import memory_of, plain
from ..objects import is_a, is_tensor

MAX_BYTES = 4 << 20
MAX_RESULT = 64 << 20  # bytes of a result: a matrix that is made anew in each step may well be so large
LARGE = 1 << 20  # bytes of an array
SOME = 8192
MAX_ITEMS = 2000
MAX_DEPTH = 5
MAX_KEYS = 64  # parts of arguments that are containers of keys: to look through them takes tens of microseconds
MANY_ITEMS = 64  # a longer list of plain values is written in one go
MAX_LENGTH = 200_000  # of such a list


_NUMBERS = (bool, int, float, complex)
_KINDS = (*_NUMBERS, str, bytes, tuple, list, dict, PurePath)
_EXACTLY = {id(kind): kind for kind in _KINDS}


class _TooMuch(Exception):
    """The value is too large, too deep, or cannot be compared by its content."""


class Digest:
    """Content hash of one value; `hashable` is False as soon as a part could not be the key of a dict.

    `containers`: that holds for nothing but dictionaries, lists and arrays of numbers, whose few parts could be told apart.
    Tensors that nothing is learned from are keys by their identity, whatever they hold: `tensors` names them.
    """

    def __init__(self, most: int = MAX_BYTES) -> None:
        self._most = most
        self._hash = hashlib.blake2b(digest_size=10)
        self._items = 0
        self.bytes = 0
        self.hashable = True
        self.tensors: list = []
        self._beyond = False  # a part that is no key and no container of keys

    def hex(self) -> str:
        """20 hexadecimal digits."""
        return self._hash.hexdigest()

    @property
    def containers(self) -> bool:
        return not self.hashable and not self._beyond and not self.tensors and self._items <= MAX_KEYS

    def add(self, value: object, by_identity: bool, depth: int = 0) -> None:
        """Feed one value. Where its content is unknown: its identity if `by_identity`, else `_TooMuch`."""
        self._items += 1
        if depth > MAX_DEPTH or self._items > MAX_ITEMS:
            raise _TooMuch
        kind = _EXACTLY.get(id(type(value))) or next((each for each in _KINDS if is_a(value, each)), None)
        if value is None or kind in _NUMBERS:
            self._feed(b"None" if value is None else kind.__repr__(value).encode(), value)
            self.bytes += 8
        elif kind is str:
            self._content(str.encode(value, "utf-8", "surrogatepass"), value)
        elif kind is bytes:
            self._content(bytes.__getitem__(value, slice(None)), value)
        elif kind is PurePath and type(value).__module__.partition(".")[0] == "pathlib":
            self._content(os.fsencode(value), value)
        elif kind in (tuple, list):
            self.hashable = self.hashable and kind is tuple
            length = kind.__len__(value)
            if length <= MANY_ITEMS or not self._plain(value, length):
                self._feed(b"%d" % length, value)
                for item in kind.__iter__(value):
                    self.add(item, by_identity, depth + 1)
        elif kind is dict:
            self.hashable = False
            self._feed(b"%d" % dict.__len__(value), value)
            for key, item in dict.items(value):
                self.add(key, by_identity, depth + 1)
                self.add(item, by_identity, depth + 1)
        else:
            self._other(value, by_identity, depth)

    def _feed(self, data: bytes, value: object) -> None:
        self._hash.update(type(value).__name__.encode() + b"\0" + data + b"\0")

    def _content(self, data, value: object) -> None:
        self.bytes += len(data)
        if self.bytes > self._most:
            raise _TooMuch
        self._feed(data, value)

    def _plain(self, value: object, length: int) -> bool:
        """Feed a long list, or tuple, of numbers, strings and the like; False where it holds other things."""
        if length > MAX_LENGTH:
            raise _TooMuch
        try:
            data = marshal.dumps(value, 2)  # the newest version without references, whose bytes depend on the content alone
        except ValueError:
            return False
        try:
            hash(value)
        except TypeError:
            self.hashable, self._beyond = False, True
        self._content(data, value)
        return True

    def _other(self, value: object, by_identity: bool, depth: int = 0) -> None:
        parts = _parts_of_sparse(value)
        if parts:
            self._meet(value)
            self._hash.update(repr((type(value).__name__, str(value.layout), tuple(value.shape))).encode())
            met = self.tensors, self.hashable
            for part in parts:
                self._other(part, by_identity)
            self.tensors, self.hashable = met
            return
        array = _as_array(value)
        if array is not None:
            self._meet(value)
            self._hash.update(repr((type(value).__name__, str(array.dtype), array.shape)).encode())
            if array.nbytes > self._most or array.dtype.hasobject:
                raise _TooMuch
            if array.nbytes > LARGE and array.flags.c_contiguous:
                self.bytes += array.nbytes
                self._feed(_of_large(array), value)
            else:
                self._content(array.tobytes(), value)
        elif by_identity:
            keyless = type(value).__hash__ is None
            self.hashable = self.hashable and not keyless
            self._beyond = self._beyond or keyless or depth > 0
            self._feed(b"%d" % id(value), value)
        elif (type(value).__module__, type(value).__name__) == ("PIL.Image", "Image"):  # in memory; one of a file may not be read yet
            self.hashable, self._beyond = False, True
            self._hash.update(repr((value.mode, value.size)).encode())
            self._content(value.tobytes(), value)
        else:
            raise _TooMuch

    def _meet(self, value: object) -> None:
        if _of_torch(value) and not getattr(value, "requires_grad", True):
            self.tensors = [*self.tensors, value]
        else:
            self.hashable = False
            self._beyond = self._beyond or (type(value).__module__, type(value).__name__) != ("numpy", "ndarray")


def _of_large(array) -> bytes:
    """A sum and an exclusive or of all words, and some thousands of the words themselves: far faster than a hash, without a copy."""
    numpy = sys.modules["numpy"]
    flat = array.reshape(-1).view(numpy.uint8)
    words = flat[: flat.size - flat.size % 8].view(numpy.uint64)
    some = words[:: max(1, words.size // SOME)].tobytes() + flat[words.size * 8 :].tobytes()
    return b"%d %d " % (words.sum(dtype=numpy.uint64), numpy.bitwise_xor.reduce(words)) + some


def _parts_of_sparse(value: object) -> tuple:
    """The dense tensors that a sparse one on the host is made of; none for anything else."""
    if not _of_torch(value):
        return ()
    layout = str(getattr(value, "layout", ""))
    if not layout.startswith("torch.sparse") or getattr(value.device, "type", "") != "cpu":
        return ()
    given = value.detach()
    if layout == "torch.sparse_coo":
        return given._indices(), given._values()
    if layout in ("torch.sparse_csr", "torch.sparse_bsr"):
        return given.crow_indices(), given.col_indices(), given.values()
    return given.ccol_indices(), given.row_indices(), given.values()


def _as_array(value: object):
    """`value` as a numpy array without a copy; None where that is not possible."""
    kind = type(value)
    if kind.__module__ == "numpy":
        return value if hasattr(value, "nbytes") and hasattr(value, "shape") else None
    if _of_torch(value) and hasattr(value, "detach") and getattr(value.device, "type", "") == "cpu":
        return _numpy(value)
    return None


def _numpy(tensor):
    """Its memory as an array. Inside torch.func every tensor is wrapped, even a detached one, unless torch.func is switched off."""
    inside = plain(tensor)
    if inside is tensor:
        return memory_of(tensor.detach())
    with sys.modules["torch"]._C._DisableFuncTorch():
        return memory_of(inside.detach())


def _of_torch(value: object) -> bool:
    """Whether its class is torch's own: asking an attribute of another one, a subclass of Tensor too, may run the owner's code."""
    return type(value).__module__.partition(".")[0] == "torch"


def of_arguments(values: list) -> tuple:
    """(digest, whether they are keys, tensors among them, whether they hold keys) of a call's arguments; None where not comparable."""
    digest = Digest()
    try:
        for value in values:
            digest.add(value, by_identity=True)
    except Exception as error:
        let_through(error)
        return None, False, [], False
    return digest.hex(), digest.hashable, digest.tensors, digest.containers


def of_result(value: object) -> tuple:
    """(digest, bytes) of a result; (None, 0) when it is None or cannot be compared by its content."""
    if value is None:
        return None, 0
    digest = Digest(MAX_RESULT)
    try:
        digest.add(value, by_identity=False)
    except Exception as error:
        let_through(error)
        return None, 0
    return digest.hex(), digest.bytes


def digest_of(value: object, by_identity: bool) -> str | None:
    """Of the contents of what a function is given or gives; None where they are unknown, as on a device. Modules are what they are."""
    digest = Digest(MAX_RESULT)
    try:
        digest.add(_comparable(value), by_identity)
    except Exception as error:
        let_through(error)
        return None
    return digest.hex()


def _comparable(value: object):
    """What torch makes anew for each call, a device or a type, by its name; tensors of the host only."""
    if is_a(value, tuple, list):
        return tuple(_comparable(item) for item in (list if is_a(value, list) else tuple).__iter__(value))
    if is_a(value, dict):
        return {key: _comparable(item) for key, item in dict.items(value)}
    if is_tensor(value):
        torch = sys.modules["torch"]
        if type(value) not in (torch.Tensor, torch.nn.Parameter) or value.device.type != "cpu":
            raise TypeError("no plain tensor of the host")
        return value
    return str(value) if type(value).__module__ == "torch" else value
