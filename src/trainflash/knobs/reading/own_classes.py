"""The program's own class of a network: what an expression is an instance of, and what that class inherits."""

from __future__ import annotations

import libcst as cst

from trainflash.knobs.project import Project
from trainflash.knobs.reading import callers, derived
from trainflash.knobs.reading.expressions import given_to
from trainflash.knobs.reading.python_source import PythonFile, base_names, descendants, dotted, parameter

MODULE = "torch.nn.Module"
COMPILE = "torch.compile"
GIVE_THEMSELVES = ("to", "cuda", "cpu", "train", "eval", "float", "double", "half", "bfloat16", "requires_grad_", "apply", "compile")
DEEPEST = 4

Place = tuple[PythonFile, cst.BaseExpression]
Class = tuple[PythonFile, cst.ClassDef]


def class_of(project: Project, place: Place, depth: int = 0, any_class: bool = False) -> Class | None:
    """The program's own class that the value of an expression is an instance of; None where that is not known."""
    file, node = place
    if depth > DEEPEST:
        return None
    if isinstance(node, cst.Call):
        if isinstance(node.func, cst.Attribute) and node.func.attr.value in GIVE_THEMSELVES:
            return class_of(project, (file, node.func.value), depth + 1, any_class)
        name = (dotted(node.func) or "").split(".")[-1]
        return only(project, name, any_class) or _made_by(project, name, depth, any_class)
    if isinstance(node, cst.Name):
        return _of_name(project, file, node, depth, any_class)
    return (
        _of_attribute(project, file, node, depth, any_class) if isinstance(node, cst.Attribute) and dotted(node.value) == "self" else None
    )


def _of_name(project: Project, file: PythonFile, node: cst.Name, depth: int, any_class: bool) -> Class | None:
    function = file.function_around(node)
    for around in (function, file.module):
        given = [] if around is None else [each for each in given_to(around, node.value) if not _itself(project, file, each, node.value)]
        param = parameter(function, node.value) if around is function else None
        if given:
            return class_of(project, (file, given[0]), depth + 1, any_class) if len(given) == 1 and param is None else None
        if param is not None and function is not None:
            handed = callers.only_argument(project, file, function, param)
            return None if handed is None else class_of(project, handed, depth + 1, any_class)
    return None


def _of_attribute(project: Project, file: PythonFile, node: cst.Attribute, depth: int, any_class: bool) -> Class | None:
    owner, name = file.class_around(node), f"self.{node.attr.value}"
    found = [] if owner is None else given_to(owner.body, name)
    found = [each for each in found if not _itself(project, file, each, name)]
    return class_of(project, (file, found[0]), depth + 1, any_class) if len(found) == 1 else None


def _itself(project: Project, file: PythonFile, value: cst.BaseExpression, name: str) -> bool:
    """Whether the value is `name` again: moved, compiled, or given back by a function of the program."""
    if not isinstance(value, cst.Call):
        return False
    if isinstance(value.func, cst.Attribute) and value.func.attr.value in GIVE_THEMSELVES and dotted(value.func.value) == name:
        return True
    if not value.args or dotted(value.args[0].value) != name:
        return False
    functions = project.functions((dotted(value.func) or "").split(".")[-1])
    if len(functions) != 1 or not functions[0][1].params.params:
        return file.full_name(value.func) == COMPILE
    _, function = functions[0]
    first = function.params.params[0].name.value
    returned = [dotted(each.value) for each in descendants(function, cst.Return)]  # type: ignore[attr-defined]
    return bool(returned) and set(returned) == {first} and not given_to(function, first)


def only(project: Project, name: str, any_class: bool = False) -> Class | None:
    """The program's only network class of that name, or class of any kind."""
    known = classes(project) if any_class else derived.classes(project, (MODULE,))
    found = [(file, owner) for file, owner in known if owner.name.value == name]
    return found[0] if len(found) == 1 else None


def _made_by(project: Project, name: str, depth: int, any_class: bool) -> Class | None:
    """The class of what the program's only function of that name returns, where it returns at one place."""
    functions = project.functions(name)
    if len(functions) != 1:
        return None
    file, function = functions[0]
    returned = [each.value for each in descendants(function, cst.Return)]  # type: ignore[attr-defined]
    return class_of(project, (file, returned[0]), depth + 1, any_class) if len(returned) == 1 and returned[0] is not None else None


def classes(project: Project) -> list[Class]:
    """All classes of the program."""
    return [(file, node) for file in project.parsed("class ") for node in file.each(cst.ClassDef)]


def lineage(project: Project, file: PythonFile, owner: cst.ClassDef) -> list[Class]:
    """A class of the program and those of it that it inherits from, by name."""
    known, found = classes(project), [(file, owner)]
    for _, each in found:
        found += [other for other in known if other[1].name.value in base_names(each) and all(other[1] is not seen for _, seen in found)]
    return found


def methods(
    project: Project, file: PythonFile, owner: cst.ClassDef, names: tuple[str, ...] = ()
) -> list[tuple[PythonFile, cst.FunctionDef]]:
    """Methods that the program itself gives to a class, of those `names` where there are some."""
    found = [(where, each) for where, known in lineage(project, file, owner) for each in where.functions if where.class_of(each) is known]
    return [(where, each) for where, each in found if not names or each.name.value in names]


def of_others(project: Project, file: PythonFile, owner: cst.ClassDef) -> set[str]:
    """The last names of classes of libraries that a class of the program inherits from."""
    inherited = lineage(project, file, owner)
    own = {each.name.value for _, each in inherited}
    return {name for _, each in inherited for name in base_names(each)} - own - {"object", "ABC", "Protocol", "Generic", ""}
