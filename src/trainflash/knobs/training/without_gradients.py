"""Whether a program bears that parameters have no gradient until one is computed, where they had one of zeros."""

from __future__ import annotations

import libcst as cst

from trainflash.knobs.project import Project
from trainflash.knobs.reading import callees
from trainflash.knobs.reading.expressions import conjuncts, given_to, refuse, short
from trainflash.knobs.reading.python_source import PythonFile, clauses, descendants

GRAPHS = ("torch.cuda.CUDAGraph", "torch.cuda.graph", "torch.cuda.graphs.graph", "torch.cuda.make_graphed_callables")
LEAVES = (cst.Continue, cst.Return, cst.Break, cst.Raise)


def borne(project: Project, file: PythonFile, call: cst.Call) -> None:
    """Raises `UsageError` where a gradient is read without asking whether there is one, where a graph holds its place, or where parts of
    what is trained take turns: an optimizer leaves those without a gradient alone that it moved on with one of zeros."""
    for where in project.parsed(".grad"):
        for node in where.nodes:
            if not isinstance(node, cst.Attribute) or node.attr.value != "grad" or (where.full_name(node) or "").startswith("torch."):
                continue
            if not isinstance(where.parent(node), (cst.AssignTarget, cst.Del)) and not _asked(where, node):
                raise refuse(f"{where.location(node)}: `{where.text(node)}` would be None where nothing was computed")
    for where in project.parsed("raph"):
        for each in where.calls:
            if where.full_name(each.func) in GRAPHS:
                raise refuse(f"{where.location(each)}: `{short(where.text(each))}` writes gradients where they lay when it was recorded")
    loops = list(file.loops_around(call))
    choice = _turn(project, file, loops[-1]) if loops else None
    if choice is not None:
        why = "chooses what has a gradient in this step, and an optimizer would leave the others alone"
        raise refuse(f"{file.location(choice)}: `{short(file.text(choice))}` {why}")


def _asked(file: PythonFile, node: cst.Attribute) -> bool:
    """Whether the program asks in front whether this very gradient is None."""
    text, below = file.text(node), node
    for up in file.ancestors(node):
        if isinstance(up, cst.Comparison) and _of_none(file, up, text):
            return True
        if isinstance(up, (cst.If, cst.IfExp, cst.While)) and _names_it(file, up.test, text):
            return True
        if isinstance(up, cst.BooleanOperation) and below is up.right and _names_it(file, up.left, text):
            return True
        if any(_names_it(file, each.test, text) for clause in clauses(up) for each in clause.ifs):
            return True
        block = file.parent(up)
        if isinstance(block, (cst.IndentedBlock, cst.Module)) and _left_before(file, block, up, text):
            return True
        if isinstance(up, cst.FunctionDef):
            return False
        below = up
    return False


def _names_it(file: PythonFile, test: cst.BaseExpression, text: str) -> bool:
    """Whether a condition compares it with None; `if p.grad` does not, as a tensor has a truth of its own."""
    return any(_of_none(file, each, text) for each in descendants(test, cst.Comparison))


def _of_none(file: PythonFile, comparison: cst.CSTNode, text: str) -> bool:
    assert isinstance(comparison, cst.Comparison)
    sides = [file.text(comparison.left), *(file.text(each.comparator) for each in comparison.comparisons)]
    return text in sides and "None" in sides


def _left_before(file: PythonFile, block: cst.CSTNode, statement: cst.CSTNode, text: str) -> bool:
    """Whether an `if x.grad is None: continue`, an assertion, or an assignment stands in front of `statement`."""
    for line in block.body:  # type: ignore[attr-defined]
        if line is statement:
            return False
        if isinstance(line, cst.If) and any(
            _of_none(file, part, text) for part in conjuncts(line.test) if isinstance(part, cst.Comparison)
        ):
            last = line.body.body[-1]
            smalls = getattr(last, "body", (last,))
            if isinstance(smalls[-1], LEAVES):  # type: ignore[index]
                return True
        if isinstance(line, cst.SimpleStatementLine):
            for small in line.body:
                if isinstance(small, cst.Assert) and _names_it(file, small.test, text):
                    return True
                if isinstance(small, cst.Assign) and any(file.text(each.target) == text for each in small.targets):
                    return True
    return False


def _turn(project: Project, file: PythonFile, loop: cst.For | cst.While) -> cst.CSTNode | None:
    """A choice between two networks, or between what two of them give."""
    called = {file.text(call.func) for call in descendants(loop, cst.Call)}  # type: ignore[attr-defined]
    for node in descendants(loop.body, cst.IfExp):
        assert isinstance(node, cst.IfExp)
        up = file.parent(node)
        names = {file.text(each.target) for each in up.targets} if isinstance(up, cst.Assign) else set()
        plain = all(isinstance(each, (cst.Name, cst.Attribute, cst.Subscript)) for each in (node.body, node.orelse))
        if plain and (names & called or (isinstance(up, cst.Call) and up.func is node)) and not _functions(project, file, node):
            return node
        runs = [
            {file.text(call.func) for call in descendants(each, cst.Call) if _network(project, file, call)}
            for each in (node.body, node.orelse)
        ]  # type: ignore[arg-type]
        if runs[0] != runs[1]:
            return node
    return None


def _network(project: Project, file: PythonFile, call: cst.Call) -> bool:
    """Whether what is called may be a network: an element of something, or a variable that is given an object."""
    if isinstance(call.func, cst.Subscript):
        return True
    if not isinstance(call.func, cst.Name) or any(True for _ in callees.meant(project, file, call)):
        return False
    made = given_to(file.module, call.func.value)
    return any(isinstance(each, cst.Call) for each in made)


def _functions(project: Project, file: PythonFile, node: cst.IfExp) -> bool:
    """Whether functions of the program or a library are chosen, which have no parameters."""
    sides = [each for each in (node.body, node.orelse) if isinstance(each, (cst.Name, cst.Attribute))]
    return len(sides) == 2 and all(
        (file.full_name(each) or "").split(".")[0] in file.imported.values() or any(True for _ in callees.behind(project, file, each))
        for each in sides
    )
