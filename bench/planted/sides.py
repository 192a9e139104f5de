"""The two sides of a planted program as plain source: the slow one, and the one that the expert edited. No switch is left in either.

A planted program carries its fix behind PLANTED_FIX, so that it can be proved by switching. A tool that edits source must not see that
switch: here it is worked out, with the branches that only the other side takes. What is left reads like what a person wrote.
"""

import ast
import operator
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

SWITCH = "PLANTED_FIX"
SLOW, EXPERT = None, "1"
_UNKNOWN = object()
_COMPARE: dict[type, Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Is: operator.is_, ast.IsNot: operator.is_not,
    ast.In: lambda a, b: a in b, ast.NotIn: lambda a, b: a not in b,
}  # fmt: skip
_SHELL = re.compile(
    r'^[ \t]*if \[ "\$\{?PLANTED_FIX\}?" = "(\w+)" \]; then\n(.*?)(?:^[ \t]*else\n(.*?))?^[ \t]*fi\n', re.MULTILINE | re.DOTALL
)
_SHELL_AND = re.compile(r'^([ \t]*)\[ "\$\{?PLANTED_FIX\}?" = "?(\w+)"? \] && (.*\n)', re.MULTILINE)


def write(folder: Path, switch: str | None) -> None:
    """Work the switch out of all sources below `folder`, in place. Raises `ValueError` where some of it would be left."""
    paths = sorted(folder.rglob("*.py"))
    sources = {path: path.read_text(encoding="utf-8") for path in paths}
    if any(SWITCH in source for source in sources.values()):
        flags = {path: _flags(ast.parse(source), switch) for path, source in sources.items()}
        by_module = {path.stem: found for path, found in flags.items()}
        for path, source in sources.items():
            tree = ast.parse(source)
            known = dict(flags[path])
            imported = _imported(tree, by_module)
            if not known and not imported and SWITCH not in source:
                continue
            made = ast.fix_missing_locations(_Folded(switch, known | imported).visit(tree))
            path.write_text(ast.unparse(made) + "\n", encoding="utf-8")
    for path in folder.rglob("*.sh"):
        text = _SHELL.sub(lambda found: _branch(found, switch), path.read_text())
        path.write_text(_SHELL_AND.sub(lambda found: found[1] + found[3] if switch == found[2] else "", text))
    left = [path.name for path in folder.rglob("*") if path.suffix in {".py", ".sh"} and SWITCH in path.read_text()]
    if left:
        raise ValueError(f"{folder.name}: the switch is left in {', '.join(left)}")


def _branch(found: re.Match[str], switch: str | None) -> str:
    return re.sub(r"^(  |\t)", "", (found[2] if switch == found[1] else found[3]) or "", flags=re.MULTILINE)


def _flags(tree: ast.Module, switch: str | None) -> dict[str, Any]:
    """Names of the module that hold nothing but the switch's answer: assigned once, to a truth value, text or None."""
    stored = [node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]
    found: dict[str, Any] = {}
    for node in tree.body:
        if (
            isinstance(node, ast.Assign)
            and len(node.targets) == 1
            and isinstance(node.targets[0], ast.Name)
            and SWITCH in ast.unparse(node)
        ):
            value = ast.fix_missing_locations(_Folded(switch, {}).visit(ast.parse(ast.unparse(node.value), mode="eval"))).body
            name = node.targets[0].id
            if isinstance(value, ast.Constant) and isinstance(value.value, (bool, str, type(None))) and stored.count(name) == 1:
                found[name] = value.value
    return found


def _imported(tree: ast.Module, by_module: dict[str, dict[str, Any]]) -> dict[str, Any]:
    found = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            flags = by_module.get((node.module or "").rsplit(".", 1)[-1], {})
            found |= {alias.asname or alias.name: flags[alias.name] for alias in node.names if alias.name in flags}
        if isinstance(node, ast.Import):
            for alias in node.names:
                flags = by_module.get(alias.name.rsplit(".", 1)[-1], {})
                found |= {f"{alias.asname or alias.name}.{name}": value for name, value in flags.items()}
    return found


class _Folded(ast.NodeTransformer):
    """Replaces the switch and the names that hold it by their value, and works out what follows from it; touches nothing else."""

    def __init__(self, switch: str | None, known: dict[str, Any]) -> None:
        self.switch, self.known = switch, known

    def visit_Call(self, node: ast.Call) -> ast.AST:
        if ast.unparse(node.func) in {"os.environ.get", "os.getenv"} and node.args and _value(node.args[0]) == SWITCH:
            default = _value(node.args[1]) if len(node.args) > 1 else None
            return ast.Constant(self.switch if self.switch is not None else default)
        self.generic_visit(node)
        if isinstance(node.func, ast.Attribute) and node.func.attr == "get" and isinstance(node.func.value, ast.Dict):
            table, key = node.func.value, _value(node.args[0])
            if key is not _UNKNOWN and all(each is not None and _value(each) is not _UNKNOWN for each in table.keys):
                hits = [value for name, value in zip(table.keys, table.values, strict=True) if _value(name) == key]
                return hits[-1] if hits else node.args[1] if len(node.args) > 1 else ast.Constant(None)
        return node

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return ast.Constant(self.known[node.id]) if isinstance(node.ctx, ast.Load) and node.id in self.known else node

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        if isinstance(node.ctx, ast.Load) and isinstance(node.value, ast.Name) and f"{node.value.id}.{node.attr}" in self.known:
            return ast.Constant(self.known[f"{node.value.id}.{node.attr}"])
        self.generic_visit(node)
        return node

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        self.generic_visit(node)
        sides = [_value(node.left), _value(node.comparators[0])]
        compare = _COMPARE.get(type(node.ops[0]))
        if len(node.ops) > 1 or compare is None or _UNKNOWN in sides:
            return node
        return ast.Constant(compare(*sides))

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        self.generic_visit(node)
        value = _value(node.operand)
        return ast.Constant(not value) if isinstance(node.op, ast.Not) and value is not _UNKNOWN else node

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        self.generic_visit(node)
        ends = isinstance(node.op, ast.Or)  # the value that ends it
        parts: list[ast.expr] = []
        for each in node.values:
            value = _value(each)
            if value is not _UNKNOWN and bool(value) is not ends and each is not node.values[-1]:
                continue
            parts.append(each)
            if value is not _UNKNOWN and bool(value) is ends:
                break
        return parts[0] if len(parts) == 1 else ast.BoolOp(node.op, parts)

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        self.generic_visit(node)
        value = _value(node.test)
        return node if value is _UNKNOWN else node.body if value else node.orelse

    def visit_If(self, node: ast.If) -> Any:
        before = ast.unparse(node.test)
        self.generic_visit(node)
        value = _value(node.test)
        if value is _UNKNOWN or before == ast.unparse(node.test):
            return node
        return (node.body if value else node.orelse) or ast.Pass()

    def visit_Assign(self, node: ast.Assign) -> Any:
        """A name that held only the switch's answer is needed no more."""
        if len(node.targets) == 1 and isinstance(node.targets[0], ast.Name) and node.targets[0].id in self.known:
            return None
        self.generic_visit(node)
        return node

    def visit_ImportFrom(self, node: ast.ImportFrom) -> Any:
        node.names = [alias for alias in node.names if (alias.asname or alias.name) not in self.known]
        return node if node.names else None


def _value(node: ast.AST) -> Any:
    """The value of an expression that needs no running; `_UNKNOWN` for all others."""
    if isinstance(node, (ast.Constant, ast.Tuple, ast.List, ast.Set)):
        try:
            return ast.literal_eval(node)
        except (ValueError, TypeError):
            return _UNKNOWN
    return _UNKNOWN
