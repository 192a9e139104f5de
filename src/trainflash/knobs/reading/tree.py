"""The nodes of a parsed file in the order of its source, with an index: what lies in a node is found without walking through it.

LibCST's nodes have no place for notes, and say slowly what is in them. White space and comments are left out: nothing here reads them.
"""

from __future__ import annotations

import dataclasses
import weakref
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import chain

import libcst as cst

BLANK = (cst.BaseParenthesizableWhitespace, cst.EmptyLine, cst.TrailingWhitespace, cst.Comment, cst.Newline)


class Tree:
    """All nodes under `root`, which is the first. The nodes in node n are those from n until `ends[n]`."""

    __slots__ = ("__weakref__", "by_kind", "ends", "nodes", "parents")

    def __init__(self, root: cst.CSTNode) -> None:
        self.nodes: list[cst.CSTNode] = []
        self.parents: list[int] = []
        self.ends: list[int] = []
        self.by_kind: dict[type, list[int]] = {}
        todo: list[tuple[cst.CSTNode, int]] = [(root, -1)]
        while todo:
            node, above = todo.pop()
            number = len(self.nodes)
            self.nodes.append(node)
            self.parents.append(above)
            self.by_kind.setdefault(type(node), []).append(number)
            todo += [(child, number) for child in reversed(_read(node))]
        self.ends = list(range(1, len(self.nodes) + 1))
        for number in range(len(self.nodes) - 1, 0, -1):
            above = self.parents[number]
            if self.ends[number] > self.ends[above]:
                self.ends[above] = self.ends[number]

    def within(self, number: int, kinds: type | tuple[type, ...]) -> Iterator[cst.CSTNode]:
        """Nodes of `kinds` in node `number`, itself included."""
        end = self.ends[number]
        if kinds is cst.CSTNode:
            return iter(self.nodes[number:end])
        places = [self.by_kind[kind] for kind in self.by_kind if issubclass_of(kind, kinds)]
        parts = [place[bisect_left(place, number) : bisect_left(place, end)] for place in places]
        found = parts[0] if len(parts) == 1 else sorted(chain.from_iterable(parts))
        return map(self.nodes.__getitem__, found)


_PLACES: dict[int, tuple[Tree, int]] = {}  # of the nodes of files that somebody holds


def keep(holder: object, root: cst.CSTNode) -> Tree:
    """The tree of `root`, whose nodes are known by their places as long as `holder` lives, which must hold them."""
    tree = Tree(root)
    numbers = [id(node) for node in tree.nodes]
    _PLACES.update((each, (tree, number)) for number, each in enumerate(numbers))
    weakref.finalize(holder, _forget, numbers)
    return tree


def _forget(numbers: list[int]) -> None:
    for each in numbers:
        _PLACES.pop(each, None)


def place(node: cst.CSTNode) -> tuple[Tree, int] | None:
    """The tree in which `node` is known, and its number there; None for one that is in no file."""
    return _PLACES.get(id(node))


def children(node: cst.CSTNode) -> Sequence[cst.CSTNode]:
    """The nodes directly in `node`, in the order of the source."""
    return _read(node)


def descendants(node: cst.CSTNode, kinds: type | tuple[type, ...]) -> Iterator[cst.CSTNode]:
    """All nodes of `kinds` in `node`, itself included."""
    tree, number = _PLACES.get(id(node)) or (Tree(node), 0)
    return tree.within(number, kinds)


@cache
def issubclass_of(kind: type, kinds: type | tuple[type, ...]) -> bool:
    """`issubclass`, which takes long for the abstract classes of LibCST."""
    return issubclass(kind, kinds)


def _read(node: cst.CSTNode) -> list[cst.CSTNode]:
    names = _FIELDS.get(type(node)) if type(node) in _FIELDS else _fields(node)
    if names is None:
        return [each for each in node.children if not issubclass_of(each.__class__, BLANK)]
    found: list[cst.CSTNode] = []
    for name in names:
        value = getattr(node, name)
        if value.__class__ in _SEQUENCES:
            found += [each for each in value if not issubclass_of(each.__class__, BLANK)]
        elif issubclass_of(value.__class__, cst.CSTNode) and not issubclass_of(value.__class__, BLANK):
            found.append(value)
    return found


_SEQUENCES = (tuple, list)
# By kind of node: the fields that hold nodes, in the order of the source; None for a kind that visits some of them only at times.
_FIELDS: dict[type, tuple[str, ...] | None] = {}


def _fields(node: cst.CSTNode) -> tuple[str, ...] | None:
    class Fields(cst.CSTVisitor):
        """What LibCST says of a node's fields while it visits it."""

        def on_visit(self, each: cst.CSTNode) -> bool:
            return each is node

        def on_visit_attribute(self, each: cst.CSTNode, attribute: str) -> None:
            if each is node:
                seen.setdefault(attribute)

    seen: dict[str, None] = {}
    node.visit(Fields())
    unseen = [getattr(node, each.name) for each in dataclasses.fields(node) if each.name not in seen]  # type: ignore[arg-type]
    _FIELDS[type(node)] = None if any(not isinstance(value, (str, bool)) for value in unseen) else tuple(seen)
    return _FIELDS[type(node)]
