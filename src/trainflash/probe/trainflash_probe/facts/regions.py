"""Parts of a forward pass that several operators make together: attention outside a fused kernel, and predictions with their loss."""

from __future__ import annotations

MAX_REGION = 300  # operators between the two products of one attention, or between a product and the loss of what it made
PRODUCTS_OF_TWO = ("aten::mm", "aten::addmm")
PRODUCTS = ("aten::bmm", "aten::baddbmm")
EXPONENTIALS = ("aten::exp", "aten::exp_", "aten::exp2")
SUMS = ("aten::sum", "aten::logsumexp")
AFTER = 6  # operators after the second product, in which a sum of exponentials still divides what it made
MATH = "aten::_scaled_dot_product_attention_math"
LOSSES = ("aten::cross_entropy_loss", "aten::nll_loss_nd", "aten::nll_loss", "aten::nll_loss2d")  # whose targets may be ignored


class Regions:
    """Finds them in the operators of one forward pass.

    `forward` are all of them in order, `outers` the outermost ones, `backward` times of functions of the graph by sequence number, ns.
    """

    def __init__(self, forward: list, outers: list, backward: dict) -> None:
        self.forward = forward
        self.outers = outers
        self.backward = backward
        self._owner_of_sequence = {call.sequence: call for call in forward if call.sequence >= 0}  # the newest one makes the node

    def attention(self) -> list:
        """[kind, shape of the scores, calls, forward ns, backward ns or None] by kind and shape."""
        found: dict = {}
        taken: set = set()  # indices of the second products of attentions
        products = [call for call in self.forward if call.name in PRODUCTS]
        for call in sorted(self.forward, key=lambda call: call.name in EXPONENTIALS):
            shape = region = None
            kind = "hand_written"
            if call.outer is call and (call.name == "aten::softmax" or call.name in EXPONENTIALS):
                shape = call.shapes()[0]
                region = self._region(call, shape, products)
                if region and call.name in EXPONENTIALS and (region[-1].index in taken or not self._normalised(region, shape)):
                    region = None
                if region:
                    taken.add(region[-1].index)
            elif call.name == MATH:
                kind = "math_fallback"
                query, key = call.shapes()[:2]
                shape, region = [*query[:-1], key[-2]], [call.outer]
            if region:
                self._count(found, (kind, tuple(shape)), region)
        return [[kind, list(shape), *figures] for (kind, shape), figures in _times(found)]

    def targets(self) -> list:
        """[shape of the predictions, calls, forward ns, backward ns or None]: the product that makes predictions of classes, what else is
        done with so many numbers, and their loss."""
        found: dict = {}
        products = [call for call in self.forward if call.name in (*PRODUCTS_OF_TWO, *PRODUCTS)]
        losses = [(call, call.shapes()[0]) for call in self.outers if call.name in LOSSES]
        losses = [(call, shape) for call, shape in losses if len(shape) > 1]
        for number, (call, shape) in enumerate(losses):
            size, left = _size(shape), sum(other == shape for _, other in losses[number:])
            made = [each for each in products if each.began < call.began and _makes(each, size, shape[1])]
            if not made:
                continue
            product = made[0] if len(made) == left else made[-1]  # of as many heads as losses, each loss has its own, in their order
            products.remove(product)
            if call.index - product.outer.index <= MAX_REGION:
                self._count(found, tuple(shape), self._on_size(product.outer, call, size))
        return [[list(shape), *figures] for shape, figures in _times(found)]

    def _count(self, found: dict, key: tuple, region: list) -> None:
        entry = found.setdefault(key, [0, 0, 0, False])
        backward = self._backward_of(region)
        entry[0] += 1
        entry[1] += sum(each.ns for each in region)
        entry[2] += backward or 0
        entry[3] |= backward is not None

    def _on_size(self, first, last, size: int) -> list:
        """The operators from `first` to `last`, outermost ones, and those between that are given so many numbers."""
        between = self.outers[first.index + 1 : last.index]
        return [first, *[call for call in between if any(_size(given) == size for given in call.shapes() if given)], last]

    def _region(self, softmax, shape: list, products: list):
        """The operators from the product that makes the scores to the one that uses them; None where softmax is no attention."""
        if len(shape) < 3 or shape[-1] < 2:
            return None
        size = _size(shape)
        before = after = None
        for product in products:
            sides = _sides(product)
            if len(sides) != 2 or len(sides[0]) != 3 or len(sides[1]) != 3:
                continue
            left, right = sides
            made = [left[0], left[1], right[2]]
            if product.began < softmax.began:
                if _size(made) == size and shape[-1] in made[1:]:
                    before = product
            elif (_size(left) == size and left[2] == shape[-1]) or (_size(right) == size and right[1] == shape[-1]):
                after = product
                break
        if before is None or after is None or after.outer.index - before.outer.index > MAX_REGION:
            return None
        return self._on_size(before.outer, after.outer, size)

    def _normalised(self, region: list, shape: list) -> bool:
        """Whether exponentials of that shape are summed: between the products, or soon after the second one."""
        around = self.outers[region[0].index + 1 : region[-1].index + AFTER]
        size = _size(shape)
        return any(call.name in SUMS and call.shapes() and call.shapes()[0] and _size(call.shapes()[0]) == size for call in around)

    def _backward_of(self, region: list):
        outers = {id(call) for call in region}
        times = [
            self.backward[number]
            for number, call in self._owner_of_sequence.items()
            if id(call.outer) in outers and number in self.backward
        ]
        return sum(times) if times else None


def _times(found: dict) -> list:
    return [(key, (calls, ns, back if seen else None)) for key, (calls, ns, back, seen) in found.items()]


def _sides(product) -> list:
    """Shapes of the two matrices, or stacks of them, that a product multiplies; what it adds to comes first in torch's order."""
    return product.shapes()[-2:] if product.name in ("aten::bmm", "aten::mm") else product.shapes()[1:3]


def _made(product) -> list:
    """The shape of what a product makes."""
    sides = _sides(product)
    return [*sides[0][:-1], sides[1][-1]] if len(sides) == 2 and sides[0] and sides[1] else []


def _makes(product, size: int, classes: int) -> bool:
    """Whether a product makes so many numbers, rows of so many classes."""
    made = _made(product)
    return _size(made) == size and bool(made) and made[-1] == classes


def _size(shape: list) -> int:
    size = 1
    for length in shape:
        if isinstance(length, list):
            return -1
        size *= length
    return size
