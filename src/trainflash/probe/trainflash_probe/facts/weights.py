"""Whether the weights of an attention go anywhere but into the product with its values, as the graph that backward begins with tells.

A kernel that computes attention in one piece hands no weights out, so it can take the place of only those that nothing else uses.
"""

from __future__ import annotations

USED = "the weights are used"

_PRODUCTS = ("Bmm", "Mm", "Addmm", "Addbmm", "Baddbmm", "Mv", "Dot")
_SUMS = "Sum"


def consumers(roots: list) -> dict:
    """Node of the graph below `roots` -> the nodes that use its result; a root has none."""
    users: dict = {root: [] for root in roots}
    todo = list(users)
    while todo:
        node = todo.pop()
        for below, _ in node.next_functions:
            if below is None:
                continue
            if below not in users:
                users[below] = []
                todo.append(below)
            users[below].append(node)
    return users


def used_elsewhere(node: object, users: dict, exponentials: bool) -> bool:
    """Whether what `node` computed reaches the end of the graph around a product, or goes into several.

    Sums of `exponentials` are what they are divided by.
    """
    products, seen, todo = set(), {node}, [node]
    while todo:
        here = todo.pop()
        above = users[here]
        if not above:
            return True
        for each in above:
            if each.name().startswith(_PRODUCTS):
                products.add(each)
            elif each not in seen and not (exponentials and each.name().startswith(_SUMS)):
                seen.add(each)
                todo.append(each)
    return len(products) > 1
