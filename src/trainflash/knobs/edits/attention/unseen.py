"""Who may notice that attention gives no weights, besides those who are handed its result: hooks, subclasses, rows of no number."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from trainflash.knobs.edits.attention import masks
from trainflash.knobs.project import Project
from trainflash.knobs.reading import callees, derived
from trainflash.knobs.reading.expressions import conjuncts, given_to, literal, made_as, refuse, short
from trainflash.knobs.reading.python_source import PythonFile, descendants, dotted, keyword, placed_parameters, positional

MODULE = "torch.nn.MultiheadAttention"
HOOKS = ("register_forward_hook", "register_module_forward_hook")
ASKS = ("isnan", "nan_to_num", "isfinite", "nanmean", "nansum")  # what rows that are no numbers are found by


def by_hooks(project: Project) -> None:
    """Raises `UsageError` where a hook may read the second result of a module, not only the first, or what a tensor has."""
    for file in project.parsed("forward_hook"):
        for call in file.calls:
            if callees.called_name(call).split(".")[-1] in HOOKS and not _reads_one(project, file, call) and not _of_others(file, call):
                raise refuse(f"{file.location(call)}: the hook `{short(file.text(call))}` may read the weights")


def _of_others(file: PythonFile, call: cst.Call) -> bool:
    """Whether the hook is put on modules of classes that are named there, none of which is attention."""
    around = [up for up in file.ancestors(call) if isinstance(up, cst.If) and file.inside(call, up.body)]
    asked = [each for up in around for each in conjuncts(up.test) if isinstance(each, cst.Call) and dotted(each.func) == "isinstance"]
    classes = [file.text(each.args[1].value) for each in asked if len(each.args) == 2]
    return bool(classes) and not any(word in text for text in classes for word in ("Attention", "Module"))


def _reads_one(project: Project, file: PythonFile, call: cst.Call) -> bool:
    """Whether the hook is a function of the program's that reads `output[0]` alone, or what only a tensor has."""
    given = positional(call, 0) or keyword(call, "hook")
    node = given.value if given is not None else None
    if isinstance(node, cst.Lambda):
        return _one_of(file, node)
    if isinstance(node, cst.Call):  # a function that makes the hook
        made = list(callees.meant(project, file, node))
        inner = [(where, each) for where, outer in made for each in descendants(outer.body, cst.FunctionDef)]
    else:
        inner = list(callees.behind(project, file, node)) if node is not None else []
    return bool(inner) and all(_one_of(where, each) for where, each in inner)  # type: ignore[attr-defined]


def _one_of(file: PythonFile, function: cst.FunctionDef | cst.Lambda) -> bool:
    ordered = [each for each in placed_parameters(function) if each.name.value != "self"]
    names = {each.name.value for each in ordered[2:] if each.default is None}  # behind the module and what it was given
    if not names or isinstance(function.params.star_arg, cst.Param):
        return False
    for node in descendants(function.body, cst.Name):
        if node.value not in names:  # type: ignore[attr-defined]
            continue
        up = file.parent(node)
        of_tensor = isinstance(up, cst.Attribute) and up.value is node
        index = up.slice[0].slice if isinstance(up, cst.Subscript) and up.value is node and len(up.slice) == 1 else None
        first = isinstance(index, cst.Index) and literal(index.value) == 0
        if not (of_tensor or first or _named_otherwise(up, node)):
            return False
    return True


def _named_otherwise(up: cst.CSTNode | None, node: cst.CSTNode) -> bool:
    return (isinstance(up, cst.Attribute) and up.attr is node) or (isinstance(up, cst.Arg) and up.keyword is node)


def by_subclasses(project: Project, file: PythonFile, call: cst.Call) -> None:
    """Raises `UsageError` where the module may be one of the program's own class, which sees the weights before it gives them."""
    made = made_as(file, call.func)
    if made is not None and file.full_name(made.func) == MODULE:
        return
    for where, owner in derived.classes(project, (MODULE, "torch.nn.modules.activation.MultiheadAttention")):
        for function in descendants(owner.body, cst.FunctionDef):
            if function.name.value in ("forward", "__call__"):  # type: ignore[attr-defined]
                raise refuse(f"{where.location(function)}: {owner.name.value} has a forward of its own, which may read the weights")


def hidden_rows(file: PythonFile, call: cst.Call) -> None:
    """Raises `UsageError` where a query may see no key at all, and the program shows it: no number before, and zeros in a fused kernel."""
    mask = keyword(call, "attn_mask") or positional(call, 5)
    padding = keyword(call, "key_padding_mask") or positional(call, 3)
    around = file.function_around(call) or file.module
    for given in (mask, padding):
        if given is None or (isinstance(given.value, cst.Name) and given.value.value == "None"):
            continue
        for value in _values(file, around, given.value):
            if masks.hides_a_row(file, value):
                raise refuse(
                    f"{file.location(value)}: `{short(file.text(value))}` hides all from a row, whose result would be a number now"
                )
        for other in descendants(around, cst.Call):
            if callees.called_name(other).split(".")[-1] in ASKS:  # type: ignore[arg-type]
                reason = "asks for what is no number, and a row that is hidden whole would be one now"
                raise refuse(f"{file.location(other)}: `{short(file.text(other))}` {reason}")


def _values(file: PythonFile, around: cst.CSTNode, node: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
    """What a mask is: itself, or what its name is given in the function, in the class or in the file."""
    name = dotted(node)
    if name is None:
        yield node
        return
    owner = file.class_around(node) if name.startswith("self.") else None
    yield from given_to(owner if owner is not None else around, name) or given_to(file.module, name)
