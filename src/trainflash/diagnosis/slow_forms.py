"""An open table of calls of torch that are slow in the form in which they are made, each with the form that is known to be faster.

A row says when it applies, by what the call was given (see `Operand`), and what to write instead. Figures are of one core and torch 2.13.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from trainflash.schema import SiteOperator

SMALL_DIMENSION = 8
MANY_CATEGORIES = 512
_REDUCTIONS = frozenset({"norm", "vector_norm", "var", "std", "prod", "logsumexp", "median"})
_PRODUCTS = frozenset({"matmul", "__matmul__", "mm", "bmm", "linear", "addmm"})
_BATCHED = frozenset({"bmm", "matmul", "__matmul__"})
_MASKED = frozenset({"where", "masked_fill", "masked_fill_"})


@dataclass(frozen=True)
class Form:
    """`applies` tells whether a call is of this form; `instead` what is faster, and `saves` the least part of its time that saves."""

    name: str
    applies: Callable[[SiteOperator], bool]
    instead: str
    saves: float  # 0: as much as the floor says


def known_form(operator: SiteOperator) -> Form | None:
    """The first row that applies."""
    return next((form for form in FORMS if operator.given and form.applies(operator)), None)


def _argument(operator: SiteOperator, *names: str) -> str | None:
    return next((value for name, value in operator.arguments if name in names), None)


def _over_small_dimension(operator: SiteOperator) -> bool:
    """Measured: `norm(dim=0)` of 2 × 512 × 256 takes 18 ms, `torch.hypot` of its halves 0.3."""
    shape, dim = operator.given[0].shape, _argument(operator, "dim", "2" if operator.name == "norm" else "1")
    try:
        size = shape[int(str(dim).strip("[]()"))]
    except (TypeError, ValueError, IndexError):
        return False
    return operator.name in _REDUCTIONS and size <= SMALL_DIMENSION and math.prod(shape) >= 1024 * size


def _drawn_without_replacement(operator: SiteOperator) -> bool:
    """Measured: 8 of 8,000 for each of 128 rows take 35 ms, and with another way to draw a step of 64 ms becomes one of 8."""
    replacement = _argument(operator, "replacement", "2")
    return operator.name == "multinomial" and replacement in (None, "False") and operator.given[0].shape[-1] >= MANY_CATEGORIES


def _dense_gradient(operator: SiteOperator) -> bool:
    """Measured: the dense gradient of 6,144 rows of a table of 4,096 × 48 takes 7 ms, ten times what the forward takes."""
    return operator.name == "embedding" and operator.backward_ms > 3 * operator.ms and _argument(operator, "sparse") != "True"


def _as_wide_as_its_input(operator: SiteOperator) -> bool:
    """Measured: kernels of 2 to 4 × 200 over one channel of 32 × 200 take 1.8 times as long as conv1d over 200 channels."""
    if operator.name != "conv2d" or len(operator.given) < 2:
        return False
    images, kernels = operator.given[0].shape, operator.given[1].shape
    return len(images) == 4 and images[1] == 1 and kernels[3] == images[3] > 1


def _of_one_column(operator: SiteOperator) -> bool:
    """Measured: bmm of 64 × 72 × 48 and 64 × 48 × 1 takes 0.65 ms with its backward, as a product and a sum 0.15."""
    if operator.name not in _BATCHED or len(operator.given) < 2:
        return False
    ours, theirs = (each.shape for each in operator.given[:2])
    return len(ours) == len(theirs) == 3 and min(ours[1], theirs[2]) == 1 and ours[0] > 1


def _over_sparse_structure(operator: SiteOperator) -> bool:
    """Measured: 2,708² of which 5 % are not zero, times 64 columns, take 12 ms, as torch.sparse_csr 3 ms; at 1 % 0.5, at 10 % 6 ms."""
    if operator.name == "softmax":
        return any(each.values == "zeros" for each in operator.made)
    if operator.name in _MASKED:
        return any(each.dtype == "bool" and each.values for each in operator.given)
    return operator.name in _PRODUCTS and any(each.values == "zeros" for each in operator.given)


def _of_subnormals(operator: SiteOperator) -> bool:
    """Measured: `sqrt` of 100,000 subnormal numbers takes 1.5 ms, of others 0.055; `exp` twice as long. Other processors: products too."""
    return any(each.values == "subnormal" for each in (*operator.given, *operator.made))


def _strided(operator: SiteOperator) -> bool:
    return operator.name not in _PRODUCTS and any(each.layout == "strided" and math.prod(each.shape) >= 65_536 for each in operator.given)


_WORDS = """
add sub mul div pow neg abs square sqrt rsqrt reciprocal exp expm1 log log1p tanh sigmoid erf sin cos clamp where maximum minimum
"""


def _spellings(names: str) -> frozenset[str]:
    """By which names calls are recorded: as functions, in place, as operators."""
    return frozenset(word for name in names.split() for word in (name, f"{name}_", f"__{name}__", f"__r{name}__", f"__i{name}__"))


_ELEMENTWISE = _spellings(_WORDS) | {"__truediv__", "__rtruediv__", "__rdiv__", "__itruediv__", "true_divide"}
STAYS = 3.0
CHAIN = "a chain of elementwise calls"
CHAIN_INSTEAD = (
    "one fused call where torch has it (F.gelu(approximate='tanh'), F.silu, F.softplus, F.layer_norm, F.mse_loss, torch.lerp), "
    "or torch.compile of this function: each call of the chain reads and writes the whole tensor"
)


def chain_saves(operators: Sequence[SiteOperator], least_ms: float) -> tuple[float, tuple[SiteOperator, ...]]:
    """(least part of their time that fusing a function's elementwise calls saves, those calls); 0 where they are no chain.

    How many chains there are a step, the call that comes least often tells. Calls shorter than `least_ms` in the mean are launching, not
    memory. Measured, with backward: a GELU of eight such calls takes 1.5 times as long as F.gelu on 131,072 numbers, 2.6 times on 2
    million; a layer norm of six 3.7 and 5.3 times as long as F.layer_norm. So of n calls about three stay.
    """
    found = tuple(each for each in operators if each.name in _ELEMENTWISE and each.calls)
    calls = sum(each.calls for each in found)
    if not found or sum(each.ms for each in found) < least_ms * calls:
        return 0.0, ()
    length = calls / min(each.calls for each in found)
    return max(0.0, 1 - STAYS / length), found


_DIFFERENCES, _TIMES, _SQUARES = _spellings("sub"), _spellings("mul"), _spellings("pow square mul")
_NORMS = frozenset({"norm", "vector_norm"})
_SUMS = _NORMS | {"sum", "mean"}
_OF_PAIRS = frozenset({"cosine_similarity", "pairwise_distance"})
_SPREAD = 8  # own: times as many numbers as were given, from which on a product of matrices is another order of work
_MANY = 200_000  # own: numbers; fewer stay in a core's cache
PAIRS = Form(
    "all pairs spread out and summed up again",
    lambda operator: _spreads(operator, _OF_PAIRS),
    "one product of matrices: torch.cdist for distances, a @ b.T for products, |a|² + |b|² - 2 a @ b.T (torch.addmm) for squared "
    "distances, F.normalize of both and a @ b.T for cosines",
    0.6,
)


def all_pairs(operators: Sequence[SiteOperator]) -> tuple[SiteOperator, ...]:
    """Calls of a function that make all pairs of two sets of rows, and sum their products or squared differences up; () where none does.

    Measured, with backward: squared distances of 1,024 and 512 rows of 64 numbers take 450 ms so, and 5 ms by `torch.addmm`; of 200 and
    2,000 rows of 3 numbers 7.5 and 2.5, products of them 6.1 and 1.4, norms 8.3 and 2.3. Absolute differences gain less, and are left out.
    """
    for first in operators:
        if not _spreads(first, _DIFFERENCES | _TIMES):
            continue
        size = math.prod(first.made[0].shape)
        behind = [each for each in operators if each is not first and each.given and math.prod(each.given[0].shape) == size]
        sums = [each for each in behind if each.name in _SUMS and each.made and math.prod(each.made[0].shape) < size]
        squares = [each for each in behind if each.name in _SQUARES]
        squared = first.name in _TIMES or squares or any(each.name in _NORMS for each in sums)
        others = [each for each in behind if each.name in _ELEMENTWISE and each not in squares]
        if sums and squared and not others:
            return first, *squares, *sums
    return ()


def _spreads(operator: SiteOperator, names: frozenset[str]) -> bool:
    """Whether one of these calls makes so many more numbers of what it was given."""
    if operator.name not in names or len(operator.given) < 2 or not operator.made:
        return False
    ours, theirs = (each.shape for each in operator.given[:2])
    longest = max(len(ours), len(theirs))
    sides = zip((1,) * (longest - len(ours)) + tuple(ours), (1,) * (longest - len(theirs)) + tuple(theirs), strict=True)
    size = math.prod(max(both) for both in sides)
    return size >= _MANY and size >= _SPREAD * (math.prod(ours) + math.prod(theirs))


FORMS: tuple[Form, ...] = (
    PAIRS,
    Form(
        "a reduction over a dimension of a few elements",
        _over_small_dimension,
        "write the reduction out over the few elements (torch.hypot for the norm of two, or the square root of a sum of squares), or move "
        "that dimension last",
        0.5,
    ),
    Form(
        "drawing without replacement from many categories",
        _drawn_without_replacement,
        "draw with replacement=True and redraw the few repeats, draw by torch.searchsorted in cumulated weights that are made once, or "
        "draw once for several steps",
        0.5,
    ),
    Form(
        "dense work over a sparse structure",
        _over_sparse_structure,
        "keep the few entries that are not zero: torch.sparse_csr for products with a fixed matrix, or the list of the edges with gather "
        "and scatter for what is computed on each of them",
        0.5,
    ),
    Form(
        "a batched product with a single row or column",
        _of_one_column,
        "an elementwise product and a sum, such as (a * b.transpose(1, 2)).sum(-1, keepdim=True) for torch.bmm(a, b)",
        0.5,
    ),
    Form(
        "subnormal numbers",
        _of_subnormals,
        "torch.set_flush_denormal(True) at the program's start (numbers below 1e-38 become zero), or an epsilon that keeps them away",
        0.0,
    ),
    Form(
        "the dense gradient of an embedding",
        _dense_gradient,
        "nn.Embedding(..., sparse=True) with an optimizer that takes sparse gradients, or fewer distinct rows",
        0.0,
    ),
    Form(
        "strided operands",
        _strided,
        "make the operand contiguous once, where it is made, or order the dimensions so that the last one is read in its order",
        0.0,
    ),
    Form(
        "a convolution whose kernel is as wide as its input",
        _as_wide_as_its_input,
        "the same sums as F.conv1d(x.squeeze(1).transpose(1, 2), weight.squeeze(1).transpose(1, 2), bias)",
        0.4,
    ),
)
