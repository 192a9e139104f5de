"""Whether anybody could tell that work was left out in some steps: what it calls must be known to leave everything as it is.

Asked of the work itself and of all functions of the program that it may lead to, by an allow-list. Three answers: it changes or shows
something, or may do so; it draws random numbers, or nobody knows what it does; nobody could tell.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field

import libcst as cst

from trainflash.errors import UsageError
from trainflash.knobs.effects import changes, given, harmless, modes, purity, sharing, writers
from trainflash.knobs.project import Project
from trainflash.knobs.reading import callees, callers, own_classes
from trainflash.knobs.reading.expressions import given_to, passed, short
from trainflash.knobs.reading.python_source import (
    ASSIGNS,
    PythonFile,
    clauses,
    decorator_names,
    descendants,
    dotted,
    parameter_names,
    targets_of,
)

BINDING = {
    "property",
    "staticmethod",
    "classmethod",
    "cached_property",
    "functools.cached_property",
    "abstractmethod",
    "abc.abstractmethod",
}
CONVERTS = {"bfloat16", "cpu", "cuda", "double", "float", "half"}  # of a network: the network itself
GOES_THROUGH = {"all", "any", "dict", "enumerate", "filter", "list", "map", "max", "min", "set", "sorted", "sum", "tuple", "zip"}
DEEPEST = 3  # own: callers that hand on what is gone through


@dataclass
class Quiet:
    """`told` is why somebody could tell, `drawn` why the random numbers behind it may be others; empty where nothing was found."""

    project: Project
    told: str = ""
    drawn: str = ""
    seen: set[tuple[int, bool]] = field(default_factory=set)
    todo: list[tuple[PythonFile, cst.FunctionDef, bool]] = field(default_factory=list)

    def look(self, file: PythonFile, parts: Sequence[cst.CSTNode]) -> Quiet:
        """Goes through `parts`, which stand in one function or module, and through all that they lead to."""
        for part in parts:
            self._part(file, part, file.function_around(part), False)
        while self.todo and not self.told:
            where, function, still = self.todo.pop()
            if (id(function), still) in self.seen:
                continue
            self.seen.add((id(function), still))
            self._function(where, function, still)
        return self

    # Statements ---------------------------------------------------------------------------------------------------------------

    def _function(self, file: PythonFile, function: cst.FunctionDef, still: bool) -> None:
        strange = [each for each in decorator_names(file, function) if each not in purity.TRANSPARENT | BINDING]
        if strange:
            self._tell(file, function, f"is decorated by {strange[0]}")
        own = {name for name, _ in purity.own_slots(self.project, file, function)}
        for node in descendants(function.body, (*ASSIGNS, cst.Del, cst.For, cst.Global, cst.Nonlocal, cst.Raise, cst.Assert)):
            if isinstance(node, (cst.Global, cst.Nonlocal)):
                self._tell(file, node, "changes variables of others")
            elif isinstance(node, (cst.Raise, cst.Assert)):
                self._tell(file, node, "may end the training")
            else:
                for target in (each for whole in targets_of(node) for each in sharing.elements(whole)):
                    if not isinstance(target, cst.Name) and not self._of_its_own(file, function, target) and dotted(target) not in own:
                        self._tell(file, node, "changes what others may read")
        self._part(file, function.body, function, still)

    def _of_its_own(self, file: PythonFile, function: cst.FunctionDef, target: cst.BaseExpression) -> bool:
        """Whether what is changed was made in this call of the function."""
        name = changes.root(target)
        if function.name.value in callees.CONSTRUCTORS and name == "self":
            return True
        return bool(name) and self._made(function, name)

    def _made(self, function: cst.FunctionDef | None, name: str) -> bool:
        values = given_to(function.body, name) if function is not None else []
        taken = function is not None and name in parameter_names(function)
        return bool(values) and not taken and all(given.made_here(each) for each in values)

    def _part(self, file: PythonFile, part: cst.CSTNode, function: cst.FunctionDef | None, still: bool) -> None:
        for node in descendants(part, (cst.Call, cst.For, cst.CompFor, cst.With, cst.Await, cst.Subscript, cst.Attribute)):
            if self.told:
                return
            if isinstance(node, cst.Call):
                self._call(file, node, function, still)
            elif isinstance(node, (cst.For, cst.CompFor)):
                self._goes_through(file, node.iter, function)
                if not self._steady(file, node.iter, 0):
                    self._draw(file, node.iter, "may be a DataLoader, which draws random numbers whenever somebody goes through it")
                    self._leads_to(("__iter__", "__next__", "__getitem__"), still)
            elif isinstance(node, cst.Subscript):
                if asks_for_one(node) and not (isinstance(node.value, cst.Name) and self._made(function, node.value.value)):
                    self._leads_to(("__getitem__",), still)
            elif isinstance(node, cst.Attribute):
                found = callees.defined(self.project, node.attr.value)
                bound = [each for each in found if any(name.split(".")[-1].endswith("property") for name in decorator_names(*each))]
                self.todo += [(*each, still) for each in bound]
            elif isinstance(node, cst.With):
                for item in node.items:
                    if not isinstance(item.item, cst.Call):
                        self._tell(file, item, "is entered")
            else:
                self._tell(file, node, "waits for something")

    # Calls --------------------------------------------------------------------------------------------------------------------

    def _call(self, file: PythonFile, call: cst.Call, function: cst.FunctionDef | None, still: bool) -> None:
        name = callees.called_name(call)
        if name in ("eval", "train") and isinstance(call.func, cst.Attribute):
            if (reason := modes.left(self.project, file, call, function)) is not None:
                self._tell(file, call, reason)
            return
        found = list(callees.meant(self.project, file, call))
        if found:
            self.todo += [(*each, still) for each in found]
            return
        if callees.called_name(call) == "__init__" and isinstance(call.func, cst.Attribute):
            return  # of a base that is a library's
        if still and harmless.switched(call):
            return
        if function is not None and purity.repeatable(file, function, call):
            return
        if harmless.draws(file, call):
            self._draw(file, call, "draws random numbers")
            return
        if callees.of_library(self.project, file, call):
            self._library(file, call)
        elif isinstance(call.func, cst.Name) and not _bound(file, function, name):
            self._builtin(file, call, function)
        elif isinstance(call.func, cst.Attribute) and self._known_method(file, call, function):
            return
        elif isinstance(call.func, cst.Attribute) and not self._network(file, call, function, still):
            self._tell(file, call, "is not known to leave everything as it is")
        elif not isinstance(call.func, cst.Attribute) and not self._network(file, call, function, still):
            self._tell(file, call, "may run a network in its training mode, or something else that keeps count")

    def _library(self, file: PythonFile, call: cst.Call) -> None:
        full, tail = file.full_name(call.func) or "", callees.called_name(call)
        if tail == "islice":
            self._tell(file, call, "takes something that would be there the next time")
            return
        if harmless.library(file, call) or full in purity.SEEDED | {"torch.Generator"}:
            return
        if full.startswith("torch.utils.data."):
            return  # it draws when somebody goes through it
        known = (*harmless.NUMBERS, *sys.stdlib_module_names, *writers.SHOWING)
        if full.split(".")[0] in known or tail in writers.REPORTS or tail.startswith((*writers.SHOWS, *writers.SETS)):
            self._tell(file, call, "is not known to leave everything as it is")
        else:
            self._draw(file, call, "is not known: it may draw random numbers")

    def _builtin(self, file: PythonFile, call: cst.Call, function: cst.FunctionDef | None) -> None:
        name = callees.called_name(call)
        for arg in call.args if name in GOES_THROUGH else ():
            self._goes_through(file, arg.value, function)
        if name == "next":
            taken = call.args[0].value if call.args else None
            fresh = isinstance(taken, cst.GeneratorExp) or (isinstance(taken, cst.Call) and callees.called_name(taken) != "iter")
            if isinstance(taken, cst.Call) and callees.called_name(taken) == "iter":
                self._draw(file, call, "may begin a DataLoader, which draws random numbers")
            elif not fresh:
                self._tell(file, call, "takes something that would be there the next time")
        elif name == "open":
            if not harmless.opens_to_read(call):
                self._tell(file, call, "writes")
        elif name in ("print", "input", "exec", "eval", "setattr", "delattr", "breakpoint", "exit", "quit"):
            self._tell(file, call, "is seen or changes something")
        elif name not in harmless.BUILTIN:
            self._draw(file, call, "is not known: it may draw random numbers")

    def _known_method(self, file: PythonFile, call: cst.Call, function: cst.FunctionDef | None) -> bool:
        base = call.func.value  # type: ignore[union-attr]
        root = changes.root(base)
        if harmless.method(call):
            return not (callees.called_name(call) in CONVERTS and modes.switched(file, file.text(base)))
        if root and self._made(function, root):
            return True  # a list or an array of its own
        opened = function is not None and any(_opens(item, root) for item in descendants(function.body, cst.WithItem))
        return opened and callees.called_name(call).startswith("read")

    # Networks and their modes -------------------------------------------------------------------------------------------------

    def _network(self, file: PythonFile, call: cst.Call, function: cst.FunctionDef | None, still: bool) -> bool:
        """Whether what a value runs does the same each time: a layer without a state, or a network in evaluation mode."""
        text = file.text(call.func)
        made = self._values(file, call.func, function)
        if made and all(harmless.stateless(where, each) for where, each in made):
            return True
        classes = [own_classes.class_of(self.project, each, any_class=True) for each in made]
        if made and all(each is not None and modes.stateless(self.project, *each) for each in classes):
            self.todo += [(*each, still) for each in callees.forwards(self.project)]
            return True
        layer = bool(made) or any(text in _gone_through(up) for up in file.ancestors(call))
        if (still and layer) or harmless.is_loss(text) or (function is not None and modes.evaluates(file, function, call)):
            self.todo += [(*each, True) for each in callees.forwards(self.project)]
            return True
        return False

    def _values(
        self, file: PythonFile, node: cst.BaseExpression, function: cst.FunctionDef | None
    ) -> list[tuple[PythonFile, cst.BaseExpression]]:
        """What a name or attribute is given, where it stands; nothing where that is not known."""
        name = dotted(node) or ""
        if name.startswith("self."):
            owner = file.class_around(node)
            return [(file, each) for each in given_to(owner, name)] if owner is not None else []
        if not isinstance(node, cst.Name):
            return []
        if function is not None and (name in parameter_names(function) or name in given.bound(function.body)):
            return [(file, each) for each in given_to(function.body, name)] if name not in parameter_names(function) else []
        return [(file, each) for each in given_to(file.module, name)]

    # What is gone through -----------------------------------------------------------------------------------------------------

    def _goes_through(self, file: PythonFile, node: cst.BaseExpression, function: cst.FunctionDef | None) -> None:
        """An iterator that was made before has less in it the next time."""
        made = self._values(file, node, function) if dotted(node) is not None else []
        local = function is not None and isinstance(node, cst.Name) and node.value in given.bound(function.body)
        for where, value in made if not local else ():
            called = callees.called_name(value) if isinstance(value, cst.Call) else ""
            yields = isinstance(value, cst.Call) and any(
                any(True for _ in descendants(each.body, cst.Yield)) for _, each in callees.meant(self.project, where, value)
            )
            if isinstance(value, cst.GeneratorExp) or called in purity.ITERATORS | {"islice", "cycle", "count"} or yields:
                self._tell(file, node, "has less in it the next time")

    def _steady(self, file: PythonFile, node: cst.BaseExpression, depth: int) -> bool:
        """Whether going through `node` surely draws nothing: it is no loader."""
        if isinstance(node, cst.Call):
            name = callees.called_name(node)
            if isinstance(node.func, cst.Name) and name in harmless.BUILTIN:
                return all(self._steady(file, arg.value, depth) for arg in node.args)
            return name in harmless.OPERATIONS or any(True for _ in callees.meant(self.project, file, node))
        if isinstance(node, (cst.Attribute, cst.Name)):
            return depth <= DEEPEST and self._steady_name(file, node, depth)
        return not isinstance(node, cst.Subscript) or self._steady(file, node.value, depth)

    def _steady_name(self, file: PythonFile, node: cst.Name | cst.Attribute, depth: int) -> bool:
        function = file.function_around(node)
        if isinstance(node, cst.Name) and any(node.value in _gone_through(up) for up in file.ancestors(node)):
            return True  # one of the parts of something
        if isinstance(node, cst.Name) and function is not None and node.value in parameter_names(function):
            param = next(each for each in descendants(function.params, cst.Param) if each.name.value == node.value)  # type: ignore[attr-defined]
            return self._steady_param(file, function, param, depth)  # type: ignore[arg-type]
        values = self._values(file, node, function)
        return bool(values) and all(self._steady(where, each, depth + 1) for where, each in values)

    def _steady_param(self, file: PythonFile, function: cst.FunctionDef, param: cst.Param, depth: int) -> bool:
        sites = callers.sites(self.project, file, function)
        try:
            handed = [(where, passed(where, site, file, function, param)) for where, site in sites]
        except UsageError:
            return False
        return bool(handed) and all(value is not None and self._steady(where, value, depth + 1) for where, value in handed)

    def _leads_to(self, names: Sequence[str], still: bool) -> None:
        self.todo += [(*each, still) for name in names for each in callees.defined(self.project, name)]

    def _tell(self, file: PythonFile, node: cst.CSTNode, why: str) -> None:
        self.told = self.told or f"{file.location(node)}: `{short(file.text(node).splitlines()[0])}` {why}"

    def _draw(self, file: PythonFile, node: cst.CSTNode, why: str) -> None:
        self.drawn = self.drawn or f"`{short(file.text(node).splitlines()[0])}` at {file.location(node)} {why}"


def _bound(file: PythonFile, function: cst.FunctionDef | None, name: str) -> bool:
    """Whether a plain name is a variable of the function or the module, and no builtin."""
    scopes = [each for each in (function.body if function is not None else None, file.module) if each is not None]
    return any(name in given.bound(each) for each in scopes) or (function is not None and name in parameter_names(function))


def _gone_through(node: cst.CSTNode) -> set[str]:
    """Names that a loop or comprehension around gives to the parts of what it goes through."""
    each = [node.target] if isinstance(node, cst.For) else [clause.target for clause in clauses(node)]
    return {name.value for target in each for name in descendants(target, cst.Name)}  # type: ignore[attr-defined]


def asks_for_one(node: cst.Subscript) -> bool:
    """Whether a single part is asked for by a number, as of a data set; not a slice, and not a key that is a text."""
    index = node.slice[0].slice
    if len(node.slice) != 1 or not isinstance(index, cst.Index):
        return False
    return not isinstance(index.value, (cst.Tuple, cst.BaseString, cst.Ellipsis, cst.Comparison))


def _opens(item: cst.WithItem, name: str) -> bool:
    opened = isinstance(item.item, cst.Call) and callees.called_name(item.item) == "open"
    return opened and item.asname is not None and dotted(item.asname.name) == name
