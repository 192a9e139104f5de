"""Which functions and modules the owner's code handles as values: compares, keeps in a table, hands on, looks up by name.

What is only called may stand behind a wrapper for a while, and nobody can tell. What is a value is known by its identity.
"""

from __future__ import annotations

import ast

from ..guard import swallow
from ..objects import modules_of_program
from ..own import inside

MOST_CHARACTERS = 1_000_000  # of all modules: about half a second
_DYNAMIC = ("globals", "locals", "vars", "eval", "exec")

_read: dict = {}  # path -> Uses, None for what cannot be read
_characters = 0


class Uses(ast.NodeVisitor):
    """Of one file. `names` and `attributes` are values, `bases` and `inner` are asked for an attribute of theirs."""

    def __init__(self, tree) -> None:
        self.names: set = set()
        self.bases: set = set()
        self.attributes: set = set()
        self.inner: set = set()
        self.dynamic = False  # its namespace may be read as a dict
        self.visit(tree)

    def visit_Call(self, node) -> None:
        """What is called is no value; what it is called with is one."""
        if isinstance(node.func, ast.Name) and node.func.id in _DYNAMIC and not (node.func.id == "vars" and node.args):
            self.dynamic = True
        self._called(node.func)
        for child in (*node.args, *node.keywords):
            self.visit(child)

    def _called(self, function) -> None:
        if isinstance(function, ast.Attribute):
            self._base(function.value)
        elif not isinstance(function, ast.Name):
            self.visit(function)

    def _base(self, node) -> None:
        if isinstance(node, ast.Name):
            self.bases.add(node.id)
        elif isinstance(node, ast.Attribute):
            if not _of_self(node):
                self.inner.add(node.attr)
            self._base(node.value)
        else:
            self.visit(node)

    def visit_Attribute(self, node) -> None:
        """A value, unless it is assigned to."""
        self.dynamic = self.dynamic or (node.attr == "modules" and isinstance(node.value, ast.Name) and node.value.id == "sys")
        if isinstance(node.ctx, ast.Load) and not _of_self(node):
            self.attributes.add(node.attr)
        self._base(node.value)

    def visit_Name(self, node) -> None:
        """A value, unless it is assigned to."""
        if isinstance(node.ctx, ast.Load):
            self.names.add(node.id)


def _of_self(node) -> bool:
    """What an object keeps was a value where it was put there."""
    return isinstance(node.value, ast.Name) and node.value.id == "self"


def of_file(path: str):
    """Uses in a file; None where it cannot be read, or too much was read already."""
    global _characters
    if path not in _read:
        _read[path] = None
        try:
            with open(path, "rb") as file:
                source = file.read(MOST_CHARACTERS + 1)
            if _characters + len(source) <= MOST_CHARACTERS:
                _characters += len(source)
                _read[path] = Uses(ast.parse(source))
        except Exception as error:
            swallow("value uses", error)
    return _read[path]


def of_program() -> list:
    """(namespace, Uses) of the owner's modules whose source can be read and whose namespace nobody reads as a dict."""
    found = []
    for names in modules_of_program():
        path = names.get("__file__")
        uses = of_file(path) if type(path) is str and path.endswith(".py") and inside(path) is not None else None
        if uses is not None:
            found.append((names, uses))
    return found


def attributes() -> set:
    """Names of attributes that are values anywhere in the program."""
    return set().union(*[uses.attributes | uses.inner for _, uses in of_program()])
