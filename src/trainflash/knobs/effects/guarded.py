"""What else a condition guards: whether the training goes on as before when the guarded block runs less often."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import libcst as cst

from trainflash.knobs.effects import changes, given, outside, shown
from trainflash.knobs.project import Project
from trainflash.knobs.reading import callees, callers
from trainflash.knobs.reading.expressions import is_name
from trainflash.knobs.reading.python_source import (
    LOOPS,
    SCOPES,
    PythonFile,
    descendants,
    dotted,
    keyword,
    parameter_names,
    string_value,
    unsubscripted,
)
from trainflash.knobs.reading.tree import children

UPDATES = {
    "update_parameters",
    "update_bn",
    "backward",
    "manual_backward",
    "zero_grad",
    "clip_grad_norm_",
    "clip_grad_value_",
    "load_state_dict",
    "copy_",
    "add_param_group",
}
NO_OPTIMIZER = ("prof", "env")  # what else has a step
EXITS = ("sys.exit", "exit", "quit", "os._exit")
SEEDS = {"manual_seed", "manual_seed_all", "seed", "seed_all", "seed_everything", "set_rng_state", "set_state", "setstate"}
TRAINED = {"lr", "momentum", "weight_decay", "betas", "grad", "data", "requires_grad"}  # keys of groups, attributes of parameters
HIGHEST = 4  # own: functions between the loop over the steps and who reads what they leave
FILES = {"write", "send"}  # change nothing that training could read


@dataclass(frozen=True)
class Guarded:
    """`body` runs under the condition of `guard`; `rest`: it is all that follows in the block, left early otherwise.

    `new`: the condition is not there yet. Then `guard` is the first of `body`; what it adds up or changes in place must be its own, names
    that it gives need a value without it, and what is set by functions that it calls is looked at, too. `readers` run only where it does.
    `exact`: what only shows what it sets counts as well.
    """

    project: Project
    file: PythonFile
    guard: cst.CSTNode
    body: tuple[cst.CSTNode, ...]
    rest: bool
    new: bool = False
    readers: tuple[cst.CSTNode, ...] = ()
    exact: bool = False

    def obstacle(self) -> str | None:
        """Why the block may not run less often: it trains, it leaves the loop, or training reads what it sets; None where it may."""
        return self._leaves() or self._trains() or (self._gives() if self.new else None) or self._sets()

    # What it does -------------------------------------------------------------------------------------------------------------

    def _leaves(self) -> str | None:
        for part in self.body:
            for node in _leaving(part, in_loop=False):
                again = isinstance(node, cst.Continue) or (isinstance(node, cst.Return) and node.value is None)
                if not (again and self.rest):
                    return self._guards(node, "and so decides how long or what is trained")
        for part in self.body if self.new else ():
            for node in descendants(part, (cst.Yield, cst.Await)):
                return self._guards(node, "for which somebody waits")
        for call in self._calls:
            if self.file.full_name(call.func) in EXITS:
                return self._guards(call, "and so decides how long is trained")
            if self.new and callees.called_name(call) in SEEDS:
                return self._guards(call, "and so decides what is drawn next")
        return None

    def _trains(self) -> str | None:
        places = [(self.file, part) for part in self.body]
        places += [(where, each.body) for where, each in self._reached if each.name.value != "forward"]
        for where, part in places:
            for node in descendants(part, (cst.Call, cst.AssignTarget, cst.AugAssign)):
                target = node.target if isinstance(node, (cst.AssignTarget, cst.AugAssign)) else None
                if isinstance(node, cst.Call) and updates(where, node):
                    return f"{where.location(node)}: the same condition guards `{where.text(node)}`"
                if target is not None and _trained(target):
                    return f"{where.location(node)}: the same condition guards a change of `{where.text(target)}`"
                if self.new and (_in_place(node) if isinstance(node, cst.Call) else given.part_of_another(where, node)):
                    return f"{where.location(node)}: `{where.text(node)}` changes in place what others may read"
        return None

    def _gives(self) -> str | None:
        """What the block adds up over the steps, or a name that has no value without it, and that is read elsewhere."""
        around = self.file.function_around(self.guard) or self.file.module
        names = {name for part in self.body for name in given.bound(part)}
        begun = {name for name in names if given.has_value_before(self.file, self.guard, name)}
        sums, attributes = self._sums
        lasting = sums & begun if next(self.file.loops_around(self.guard), None) is not None else set()
        for part in self.body:
            for node in descendants(part, cst.Name):
                if node.value in lasting and not isinstance(self.file.parent(node), cst.AugAssign):  # type: ignore[attr-defined]
                    return f"{self.file.location(node)}: `{node.value}` adds up over the steps"  # type: ignore[attr-defined]
        for node in descendants(around, cst.Name):
            if node.value in (names - begun) | sums and not self._mine(self.file, node) and not given.stored(self.file, node):  # type: ignore[attr-defined]
                return self._is_read(node.value, self.file, node)  # type: ignore[attr-defined]
        for name in sorted(attributes):
            for where in self.project.parsed(name):
                for node in where.nodes:
                    if (
                        isinstance(node, cst.Attribute)
                        and node.attr.value == name
                        and not self._mine(where, node)
                        and not given.stored(where, node)
                    ):
                        return self._is_read(name, where, node)
        return None

    @cached_property
    def _sums(self) -> tuple[set[str], set[str]]:
        """Variables and attributes that the block adds to, those of functions that it calls among them."""
        own = {name for part in self.body for name in given.added_to(part)}
        parts = (*self.body, *(each.body for _, each in self._reached))
        held = {given.attribute_of(node.target) for part in parts for node in descendants(part, cst.AugAssign)}  # type: ignore[attr-defined]
        return own, held - {""}

    def _sets(self) -> str | None:
        """What the block assigns or changes, and training reads outside it."""
        for name in sorted(self._names | self._holders):
            for read in self._read_elsewhere(name):
                part = isinstance(self.file.parent(read), cst.Attribute) and name not in self._names  # another part of it
                if not part and not self._reported(self.file, read):
                    return self._is_read(name, self.file, read)
        for name, parts in sorted(self._attributes.items()):
            for where in self.project.parsed(name):
                for node in where.nodes:
                    named = isinstance(node, cst.Attribute) and node.attr.value == name
                    read = named and not self._mine(where, node) and not _another_part(where, node, parts)
                    if read and not given.stored(where, node) and not self._reported(where, node) and not self._behind(where, node):  # type: ignore[arg-type]
                        return self._is_read(name, where, node)
        for file, name in self._variables:
            for where, node in outside.reads(self.project, file, name):
                followed = where is self.file and name in self._names and where.function_around(node) is None  # above
                if not followed and not self._mine(where, node) and not self._reported(where, node):
                    return self._is_read(name, where, node)
        return None

    def _guards(self, node: cst.CSTNode, why: str) -> str:
        return f"{self.file.location(node)}: the same condition guards `{self.file.text(node).splitlines()[0]}`, {why}"

    def _is_read(self, name: str, file: PythonFile, read: cst.CSTNode) -> str:
        return f"{file.location(read)}: `{name}` is read here, and set under the same condition"

    # What it sets -------------------------------------------------------------------------------------------------------------

    @cached_property
    def _calls(self) -> list[cst.Call]:
        return [call for part in self.body for call in descendants(part, cst.Call)]  # type: ignore[misc]

    @cached_property
    def _reached(self) -> list[tuple[PythonFile, cst.FunctionDef]]:
        """Functions of the program that the block calls, however deep; not what only makes an object."""
        starts = [each for call in self._calls for each in callees.meant(self.project, self.file, call)]
        found = callees.reached(self.project, [each for each in starts if each[1].name.value not in callees.CONSTRUCTORS])
        return list(found)

    @cached_property
    def _own_methods(self) -> list[cst.FunctionDef]:
        """Methods of the same object that the block calls."""
        owner = self.file.class_around(self.guard)
        return [each for where, each in self._reached if owner is not None and where is self.file and where.class_of(each) is owner]

    @cached_property
    def _bound(self) -> dict[str, set[str]]:
        """Names that loops and assignments of the block give, each with the names whose parts they may be."""
        found: dict[str, set[str]] = {}
        for part in self.body:
            for node in descendants(part, (cst.For, cst.Assign)):
                source = node.iter if isinstance(node, cst.For) else node.value
                names = {each.value for each in descendants(source, cst.Name)} if isinstance(node, cst.For) else {changes.root(source)}
                targets = [node.target] if isinstance(node, cst.For) else [each.target for each in node.targets]
                for target in targets:
                    for each in descendants(target, cst.Name) if isinstance(target, (cst.Name, cst.Tuple)) else ():
                        found.setdefault(each.value, set()).update(names - {""})
        return found

    @cached_property
    def _names(self) -> set[str]:
        """Variables that the block sets, and those whose objects it changes."""
        targets = [(target, changed) for target, attribute, changed in self._targets(self.body) if not attribute]
        targets += [(each, True) for each in self._handed if not given.attribute_of(each)]
        found = {changes.root(target) for target, changed in targets if changed}
        before = -1
        while before != len(found):
            before = len(found)
            found |= {source for name in found for source in self._bound.get(name, ())}
        return (found | {changes.root(target) for target, _ in targets}) - {"", "self", "cls"} - set(self.file.imported)

    @cached_property
    def _holders(self) -> set[str]:
        """Variables whose objects hold attributes that the block sets or changes."""
        held = {changes.root(target) for target, attribute, _ in self._targets(self.body) if attribute}
        return (held | {changes.root(each) for each in self._handed if given.attribute_of(each)}) - {"", "self", "cls"}

    @cached_property
    def _attributes(self) -> dict[str, set[str]]:
        """Attributes that the block sets or changes, by itself or through methods of the same object, with the attributes of these that it
        means alone; none where it means the whole."""
        called = self._own_methods if not self.new else [each for _, each in self._reached]
        parts = (*self.body, *(method.body for method in called if method.name.value not in ("forward", "__init__")))
        found: dict[str, list[set[str]]] = {}
        for each in (*(target for target, _, _ in self._targets(parts)), *self._handed):
            names = given.attributes_of(each)
            if names:
                found.setdefault(names[0], []).append(set(names[1:2]))
        return {name: set().union(*each) if all(each) else set() for name, each in found.items()}

    @cached_property
    def _handed(self) -> list[cst.BaseExpression]:
        """What calls of a new block change."""
        return [each for part in self.body for each in outside.handed(self.project, self.file, part)] if self.new else []

    @cached_property
    def _variables(self) -> list[tuple[PythonFile, str]]:
        """Variables of modules that a new block sets or changes, by itself or through functions that it calls."""
        if not self.new:
            return []
        mine = self.file.function_around(self.guard) is None  # a loop of the module's own
        return [*outside.variables(self.project, self._reached), *((self.file, name) for name in sorted(self._names) if mine)]

    def _targets(self, parts: Sequence[cst.CSTNode]) -> Iterator[tuple[cst.BaseExpression, str, bool]]:
        """What is assigned or changed, with the attribute of an object that it is or belongs to, and whether an object is changed."""
        for part in parts:
            for node in descendants(part, (cst.AssignTarget, cst.AugAssign, cst.AnnAssign, cst.NamedExpr, cst.For, cst.AsName, cst.Call)):
                target: cst.CSTNode | None = None
                if not isinstance(node, cst.Call):
                    target = node.name if isinstance(node, cst.AsName) else node.target
                elif isinstance(node.func, cst.Attribute):
                    method = node.func.attr.value
                    quiet = method in FILES or method in shown.COLLECTS - {"append"}
                    target = node.func.value if changes.writes(method) and not quiet else None
                for each in target.elements if isinstance(target, (cst.Tuple, cst.List)) else [target]:
                    single = each.value if isinstance(each, cst.Element) else each
                    if isinstance(single, cst.BaseExpression):
                        yield single, given.attribute_of(single), isinstance(node, cst.Call) or not isinstance(single, cst.Name)

    # Who reads it -------------------------------------------------------------------------------------------------------------

    def _mine(self, file: PythonFile, node: cst.CSTNode) -> bool:
        """Whether `node` belongs to the block, its condition, or a function of the same object that it calls; of any, where that is new."""
        alone = isinstance(self.guard, cst.If) and self.guard.orelse is None and not self.new
        asked = (self.guard.test,) if alone else ()  # type: ignore[attr-defined]  # as for the best value so far
        called = self._reached if self.new else [(self.file, each) for each in self._own_methods]
        own = [part for where, part in called if where is file]
        return any(file.inside(node, part) for part in (*((*self.body, *asked, *self.readers) if file is self.file else ()), *own))

    def _read_elsewhere(self, name: str) -> Iterator[cst.Name]:
        """Reads of a variable that come after the block, with no new value in between: in its loops and, where it is new, behind them."""
        file = self.file
        loops = list(file.loops_around(self.guard))
        scope = next((up for up in file.ancestors(self.guard) if isinstance(up, SCOPES)), file.module)
        for node in descendants(scope if self.new or not loops else loops[-1], cst.Name):
            if node.value != name or not is_name(file, node) or self._mine(file, node) or given.stored(file, node):  # type: ignore[union-attr]
                continue
            loop = next((each for each in loops if self._each_round(each, node)), None)
            if loop is None and loops:
                nested = self._nested(node, scope)
                if not self.new or (name in nested if nested is not None else file.span(node)[0] < file.span(loops[-1])[1]):
                    continue
                if nested is not None:
                    yield node  # type: ignore[misc]
                    continue
            if not self._new(loop, node, name):  # type: ignore[arg-type]
                yield node  # type: ignore[misc]

    def _each_round(self, loop: cst.For | cst.While, node: cst.CSTNode) -> bool:
        return self.file.inside(node, loop.body) or (isinstance(loop, cst.While) and self.file.inside(node, loop.test))

    def _nested(self, read: cst.CSTNode, scope: cst.CSTNode) -> set[str] | None:
        """The own variables of a function inside `scope` that the read stands in; None where it stands in none."""
        function = next((up for up in self.file.ancestors(read) if isinstance(up, (cst.FunctionDef, cst.Lambda))), None)
        if function is None or function is scope or not self.file.inside(function, scope):
            return None
        return parameter_names(function) | given.bound(function.body)

    def _new(self, loop: cst.For | cst.While | None, read: cst.Name, name: str) -> bool:
        """Whether the name surely gets another value between the block and the read."""
        file = self.file
        at, end = file.span(read)[0], max(file.span(part)[1] for part in self.body)
        if any(
            isinstance(up, (cst.For, cst.CompFor)) and given.gives(up.target, name) and not self._holds(up) for up in file.ancestors(read)
        ):
            return True
        where = loop if loop is not None else next((up for up in file.ancestors(read) if isinstance(up, SCOPES)), file.module)
        places = [file.span(node)[0] for node in descendants(where, cst.Assign) if self._surely(node, where, name)]
        if isinstance(loop, cst.For) and given.gives(loop.target, name):
            places.append(file.span(loop)[0])
        if at > end:
            return any(end <= place < at for place in places)
        return loop is None or any(place < at or place >= end for place in places)

    def _holds(self, loop: cst.CSTNode) -> bool:
        return self.file.inside(self.guard, loop)

    def _surely(self, node: cst.CSTNode, where: cst.CSTNode, name: str) -> bool:
        """Whether an assignment to the name stands in `where` under no condition."""
        if not any(given.gives(target.target, name) for target in node.targets) or self._mine(self.file, node):  # type: ignore[attr-defined]
            return False
        for up in self.file.ancestors(node):
            if up is where:
                return True
            if isinstance(up, (cst.If, cst.Else, cst.ExceptHandler, *LOOPS, *SCOPES)):
                return False
        return False

    def _behind(self, file: PythonFile, read: cst.CSTNode) -> bool:
        """Whether a read surely comes when the loops around the block are over, as of the best weights so far: training is over, too."""
        where, node, looped = self.file, self.guard, False
        for _ in range(0 if self.new else HIGHEST):
            loops, function = list(where.loops_around(node)), where.function_around(node)
            outer, looped = (loops[-1], True) if loops else (node, looped)
            if where is file and file.function_around(read) is function:
                return looped and file.span(read)[0] >= file.span(outer)[1]
            sites = callers.sites(self.project, where, function) if function is not None else []
            if len(sites) != 1:
                return False
            where, node = sites[0]
        return False

    def _reported(self, file: PythonFile, node: cst.BaseExpression) -> bool:
        """Whether what is read here is only shown or saved."""
        return not self.exact and shown.Shown(self.project, self._mine, updates, self.new).only(file, node)


def _another_part(file: PythonFile, read: cst.CSTNode, parts: set[str]) -> bool:
    """Whether only an attribute of `read` is read that is none of `parts`; not what a method of it may read."""
    up = file.parent(read)
    if not parts or not isinstance(up, cst.Attribute) or up.value is not read or up.attr.value in parts:
        return False
    call = file.parent(up)
    return not (isinstance(call, cst.Call) and call.func is up)


def _leaving(node: cst.CSTNode, *, in_loop: bool) -> Iterator[cst.CSTNode]:
    """Statements that leave the block or the loop around it."""
    if isinstance(node, SCOPES):
        return
    if isinstance(node, (cst.Return, cst.Raise)) or (isinstance(node, (cst.Break, cst.Continue)) and not in_loop):
        yield node
    for child in children(node):
        yield from _leaving(child, in_loop=in_loop or isinstance(node, LOOPS))


def updates(file: PythonFile, call: cst.Call) -> bool:
    """Whether the call computes gradients or changes what is trained."""
    name = callees.called_name(call)
    if name != "step" or not isinstance(call.func, cst.Attribute):
        return name in UPDATES
    base = (dotted(call.func.value) or "").lower()
    played = bool(call.args) and not isinstance(file.parent(call), cst.Expr) and "closure" not in file.text(call.args[0])
    return not played and not any(word in base for word in NO_OPTIMIZER)  # an environment answers to an action


def _in_place(call: cst.Call) -> bool:
    name = callees.called_name(call)
    return (name.endswith("_") and not name.endswith("__")) or keyword(call, "out") is not None


def _trained(target: cst.BaseExpression) -> bool:
    """Whether an assignment to `target` sets a learning rate of a group, or a parameter or a gradient, whole or in part."""
    if isinstance(target, cst.Subscript):
        index, held = target.slice[0].slice, unsubscripted(target)
        setting = isinstance(index, cst.Index) and string_value(index.value) in TRAINED - {"data", "grad"}
        values = isinstance(held, cst.Attribute) and held.attr.value in ("data", "grad") and dotted(held.value) != "self"
        return setting or values
    return isinstance(target, cst.Attribute) and target.attr.value in TRAINED
