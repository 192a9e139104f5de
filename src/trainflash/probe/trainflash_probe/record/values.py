"""Where the values of a tensor lie: whether there are any in memory, and how to read them without making dense what is huge."""

from __future__ import annotations

import sys

from ..nested import stands_in
from ..phases import unseen

LARGEST = 1 << 24  # values of a sparse tensor that is still made dense


def imagined(tensor):
    """Whether it is of a dry run: it has a shape and never had values."""
    return stands_in(tensor) or bool(tensor.is_meta) or sys.modules["torch"]._is_functional_tensor(tensor)


def dry_run(tensor):
    """Whether the program only tries shapes out: around what it computes with `tensor` values are made up."""
    return any(stands_in(mode) for mode in unseen.hidden) or (tensor is not None and imagined(tensor))


def hollow(tensor):
    """Whether its values are not there to be read: those of a dry run, and those whose memory was freed."""
    torch = sys.modules["torch"]
    if imagined(tensor):
        return True
    if tensor.layout is not torch.strided or hasattr(tensor, "to_local") or not tensor.numel():
        return False
    try:
        storage = tensor.untyped_storage()
        last = tensor.storage_offset() + sum([(count - 1) * stride for count, stride in zip(tensor.shape, tensor.stride())])
        if (last + 1) * tensor.element_size() > storage.nbytes():
            return True
        return type(tensor) not in (torch.Tensor, torch.nn.Parameter) and not storage.data_ptr()
    except (RuntimeError, NotImplementedError):  # a wrapper of torch.func: who reads it is told
        return False


def local(tensor):
    """The tensor alone: no gradient, and of one that is spread over processes the part of this one. ValueError where it has no values."""
    if hollow(tensor):
        raise ValueError("its values do not lie in memory")
    plain = tensor.detach()
    return local(plain.to_local()) if hasattr(plain, "to_local") else plain


def dense(tensor):
    """All values in their places. ValueError where it has none, or is sparse and huge."""
    plain = local(tensor)
    if scattered(plain):
        raise ValueError("it is too large to be made dense")
    return plain if plain.layout is sys.modules["torch"].strided else plain.to_dense()


def scattered(tensor):
    """Whether it is sparse, and too large to be made dense."""
    return tensor.numel() > LARGEST and _kind(tensor) is not None


def pieces(tensor):
    """Dense tensors that say all of it: itself, of a huge sparse one its places and its values."""
    if not scattered(tensor):
        return [dense(tensor)]
    plain, kind = local(tensor), _kind(tensor)
    if kind == "coo":
        plain = plain.coalesce()
        return [plain.indices(), plain.values()]
    if kind in ("csr", "bsr"):
        return [plain.crow_indices(), plain.col_indices(), plain.values()]
    return [plain.ccol_indices(), plain.row_indices(), plain.values()]


def held(tensor):
    """Its values in a row; of a sparse one only those that it holds: all others are zero."""
    plain, kind = local(tensor), _kind(tensor)
    if kind is None:
        return _in_a_row(dense(plain))
    return _in_a_row((plain.coalesce() if kind == "coo" else plain).values())


def everywhere(tensor):
    """All its values in a row, zeros of a sparse one too. ValueError where it is sparse and huge."""
    return _in_a_row(dense(tensor))


def _in_a_row(plain):
    if plain.is_complex():
        plain = sys.modules["torch"].view_as_real(plain.resolve_conj())
    return plain.reshape(-1)


def _kind(tensor):
    name = str(tensor.layout)
    return name.rpartition("_")[2] if name.startswith("torch.sparse_") else None
