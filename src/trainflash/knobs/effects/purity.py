"""Reasons why a function's results may not be kept, read from its source. What cannot be seen here, the fidelity check sees."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from trainflash.knobs.project import Project
from trainflash.knobs.reading import callees, callers
from trainflash.knobs.reading.expressions import given_to
from trainflash.knobs.reading.python_source import (
    ASSIGNS,
    PythonFile,
    decorator_names,
    descendants,
    dotted,
    keyword,
    methods_of,
    own_field,
    string_value,
    targets_of,
)
from trainflash.knobs.reading.tree import children

CACHES = {"cache", "lru_cache", "cached", "memoize", "cached_property", "cachedmethod"}
TRANSPARENT = {"torch.no_grad", "torch.inference_mode", "numba.njit", "numba.jit"}  # a cache around these changes nothing they do
ITERATORS = {"map", "filter", "zip", "iter", "reversed", "enumerate", "open"}
RANDOM_MODULES = ("random", "numpy.random", "secrets", "uuid", "time", "datetime")
RANDOM_TORCH = {
    "rand",
    "randn",
    "randint",
    "randperm",
    "rand_like",
    "randn_like",
    "randint_like",
    "bernoulli",
    "multinomial",
    "normal",
    "dropout",
}
RANDOM_METHODS = RANDOM_TORCH | {
    "random",
    "choice",
    "choices",
    "sample",
    "shuffle",
    "permutation",
    "uniform",
    "integers",
    "gauss",
    "standard_normal",
}
RANDOM_METHODS |= {"normal_", "uniform_", "bernoulli_", "random_"}
OF_MACHINE = ("psutil", "resource", "subprocess", "os.getloadavg", "os.times", "os.popen", "os.system", "shutil.disk_usage")
SEEDED = {"random.Random", "numpy.random.default_rng", "numpy.random.RandomState", "numpy.random.SeedSequence", "numpy.random.PCG64"}
CHANGES = {
    "append",
    "extend",
    "insert",
    "pop",
    "remove",
    "clear",
    "update",
    "add",
    "setdefault",
    "popitem",
    "discard",
    "write",
    "put",
    "send",
}
UNHASHABLE = {"list", "dict", "set", "UserList", "UserDict", "OrderedDict", "defaultdict"}


def obstacle(project: Project, file: PythonFile, function: cst.FunctionDef) -> str | None:
    """Why the results of `function` must not be cached by its arguments; None when its source shows no reason."""
    return lasting_obstacle(project, file, function) or unhashable(file, function)


def lasting_obstacle(project: Project, file: PythonFile, function: cst.FunctionDef) -> str | None:
    """Why the results of `function` must not be kept at all; None when its source shows no reason."""
    own = {name for name, _ in own_slots(project, file, function)}
    return (
        _form(file, function)
        or _randomness(project, file, function)
        or _effects(function, own)
        or _object(project, file, function, own)
        or _globals(project, file, function)
    )


def cached_already(file: PythonFile, function: cst.FunctionDef) -> bool:
    """Whether a decorator caches it already."""
    return any(name.split(".")[-1] in CACHES for name in decorator_names(file, function))


def _form(file: PythonFile, function: cst.FunctionDef) -> str | None:
    if function.asynchronous is not None:
        return "it is asynchronous: a cache would keep a coroutine that can be awaited only once"
    own = list(_own(function))
    if any(isinstance(node, cst.Yield) for node in own):
        return "it is a generator: a cache would keep one that is used up"
    for node in own:
        if isinstance(node, cst.Return) and node.value is not None:
            called = dotted(node.value.func) if isinstance(node.value, cst.Call) else None
            if isinstance(node.value, cst.GeneratorExp) or called in ITERATORS:
                return "it returns an iterator or a file, which can be used only once"
    known = {name for name in decorator_names(file, function) if name in TRANSPARENT or name.split(".")[-1] in CACHES}
    strange = [name for name in decorator_names(file, function) if name not in known and callers.bound_by(file, name) is None]
    if strange:
        return f"it is decorated by {strange[0]}, and what a cache around or under that means is not known"
    owner = file.class_of(function)
    if owner is not None and any(f"{function.name.value}.{way}" in decorator_names(file, each) for each, way in _accessors(owner)):
        return "it is a property that can be set or deleted"
    return None


def _accessors(owner: cst.ClassDef) -> Iterator[tuple[cst.FunctionDef, str]]:
    return ((each, way) for each in methods_of(owner) for way in ("setter", "deleter"))


def _own(function: cst.FunctionDef) -> Iterator[cst.CSTNode]:
    """Nodes of the function's own body, those of functions and classes inside it left out."""
    todo: list[cst.CSTNode] = list(children(function.body))
    while todo:
        node = todo.pop(0)
        yield node
        if not isinstance(node, (cst.FunctionDef, cst.ClassDef, cst.Lambda)):
            todo.extend(children(node))


def _randomness(project: Project, file: PythonFile, function: cst.FunctionDef) -> str | None:
    found = first_draw(project, file, function, set())
    if found is None:
        return None
    where, call = found
    return f"`{where.text(call.func)}` at {where.location(call)} draws random numbers or the time, which a cache would freeze"


def first_draw(project: Project, file: PythonFile, function: cst.FunctionDef, seen: set[int]) -> tuple[PythonFile, cst.Call] | None:
    """The first call for random numbers, time or input in the function or in functions of the project that it calls by name."""
    seen.add(id(function))
    for call in descendants(function, cst.Call):
        if repeatable(file, function, call):
            continue
        full = file.full_name(call.func) or ""
        name = full.split(".")[-1] or (call.func.attr.value if isinstance(call.func, cst.Attribute) else "")
        module = full.rpartition(".")[0]
        drawn = (
            (module in RANDOM_MODULES and full != "time.sleep")
            or full in ("input", "os.urandom")
            or (full.startswith(OF_MACHINE) and not _given_anything(file, function))
            or (module.startswith("torch") and name in RANDOM_TORCH)
        )
        if drawn or (isinstance(call.func, cst.Attribute) and module.split(".")[0] not in ("torch", "numpy") and name in RANDOM_METHODS):
            return file, call
        for where, called in callees.meant(project, file, call):
            if id(called) not in seen:
                found = first_draw(project, where, called, seen)
                if found is not None:
                    return found
    return None


def _given_anything(file: PythonFile, function: cst.FunctionDef) -> bool:
    """Whether the function has a parameter beside its object: another program that it starts may answer by that alone."""
    names = [each.name.value for each in descendants(function.params, cst.Param)]  # type: ignore[attr-defined]
    return len(names) > (file.class_of(function) is not None)


def repeatable(file: PythonFile, function: cst.FunctionDef, call: cst.Call) -> bool:
    """Whether `call` makes a generator from a seed, or draws from one that the function makes so: the same numbers each time."""
    generator = keyword(call, "generator")
    drawn_from = generator.value if generator is not None else call.func.value if isinstance(call.func, cst.Attribute) else None
    return _from_seed(file, function, call) or (drawn_from is not None and _from_seed(file, function, drawn_from))


def _from_seed(file: PythonFile, function: cst.FunctionDef, node: cst.BaseExpression) -> bool:
    if isinstance(node, cst.Name):
        made = given_to(function, node.value)
        given = any(param.name.value == node.value for param in descendants(function.params, cst.Param))
        return bool(made) and not given and all(not isinstance(each, cst.Name) and _from_seed(file, function, each) for each in made)
    if not isinstance(node, cst.Call) or not node.args or dotted(node.args[0].value) == "None":
        return False
    chained = isinstance(node.func, cst.Attribute) and node.func.attr.value == "manual_seed" and isinstance(node.func.value, cst.Call)
    return file.full_name(node.func.value.func if chained else node.func) in ({"torch.Generator"} if chained else SEEDED)  # type: ignore[attr-defined]


def own_slots(project: Project, file: PythonFile, function: cst.FunctionDef) -> list[tuple[str, cst.Assign]]:
    """Attributes of its object that only `function` uses, which sets each anew before it reads it: `self._last = …; return self._last`.

    With the assignment of each. Whether that runs again is nothing that anybody could see.
    """
    owner, found = file.class_of(function), []
    if owner is None or any((dotted(base.value) or "?").endswith(("Module", "?")) for base in owner.bases) or reached_by_text(project):
        return []  # what a network holds is more than an attribute
    for node in _own(function):
        name = dotted(node.targets[0].target) if isinstance(node, cst.Assign) and len(node.targets) == 1 else None
        if name is None or not name.startswith("self.") or name.count(".") != 1 or file.parent(file.parent(node)) is not function.body:  # type: ignore[arg-type]
            continue
        told = [each for each in descendants(function, cst.Attribute) if dotted(each) == name]
        before = [each for each in told if file.span(each)[0] < file.span(node)[0] or file.inside(each, node.value)]  # type: ignore[attr-defined]
        if len(told) > 1 and not before and not _told_elsewhere(project, file, function, name.removeprefix("self.")):
            found.append((name, node))
    return found  # type: ignore[return-value]


def reached_by_text(project: Project) -> bool:
    """Whether the program reaches attributes by other ways than their names."""
    return any(True for word in ("__dict__", "vars(") for _ in project.parsed(word))


def _told_elsewhere(project: Project, file: PythonFile, function: cst.FunctionDef, name: str) -> bool:
    """Whether anything but `function` uses an attribute of that name; that a constructor sets it to None is no use."""
    for where in project.parsed(name):
        for node in where.nodes:
            if isinstance(node, cst.SimpleString) and string_value(node) == name:
                return True
            if isinstance(node, cst.Name) and node.value == name and isinstance(where.parent(node), (cst.AssignTarget, cst.AnnAssign)):
                return True  # an attribute of the class
            if not isinstance(node, cst.Attribute) or node.attr.value != name or (where is file and where.inside(node, function)):
                continue
            up = where.parent(node)
            given = where.parent(up) if isinstance(up, cst.AssignTarget) else None
            if not isinstance(given, cst.Assign) or dotted(given.value) != "None" or where.location(node).function != "__init__":
                return True
    return False


def _effects(function: cst.FunctionDef, own: set[str]) -> str | None:
    for node in _own(function):
        if isinstance(node, (cst.Global, cst.Nonlocal)):
            return "it assigns to a variable outside itself"
        for target in targets_of(node) if isinstance(node, ASSIGNS) else ():
            name = dotted(target) or (dotted(target.value) if isinstance(target, cst.Subscript) else None) or ""
            if name.startswith("self.") and name not in own:
                return f"it changes its object (`{name}`)"
        if isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute):
            base = dotted(node.func.value) or ""
            if base.startswith("self.") and node.func.attr.value in CHANGES:
                return f"it changes its object (`{base}.{node.func.attr.value}`)"
            if node.func.attr.value in ("backward", "zero_grad") or (base and node.func.attr.value == "step"):
                return "it trains"
    return None


def _object(project: Project, file: PythonFile, function: cst.FunctionDef, own: set[str]) -> str | None:
    """A method also depends on its object: that must not change after it was made; `own` are its own slots."""
    owner = file.class_of(function)
    if owner is None:
        return None
    return changed_after(project, file, owner, {name for name in fields_read(owner, function) if f"self.{name}" not in own})


def unhashable(file: PythonFile, function: cst.FunctionDef) -> str | None:
    """Why the objects that `function` is a method of can be no keys; None where they can."""
    owner = file.class_of(function)
    if owner is None:
        return None
    methods = {each.name.value for each in methods_of(owner)}
    if "__eq__" in methods and "__hash__" not in methods:
        return f"objects of {owner.name.value} are not hashable: it defines __eq__ without __hash__"
    if any((file.full_name(base.value) or "").split(".")[-1] in UNHASHABLE for base in owner.bases):
        return f"objects of {owner.name.value} are not hashable"
    names = decorator_names(file, owner)
    if any(name.split(".")[-1] == "dataclass" for name in names) and not any(
        word in file.text(each) for each in owner.decorators for word in ("frozen=True", "eq=False", "unsafe_hash=True")
    ):
        return f"objects of {owner.name.value} are not hashable: a dataclass that compares by value"
    return None


def fields_read(owner: cst.ClassDef, part: cst.CSTNode) -> set[str]:
    """Attributes of `self` that a part of a method reads, through the methods of the class that it calls; those are among them."""
    methods = {each.name.value: each for each in methods_of(owner)}
    found: set[str] = set()
    todo = [part]
    while todo:
        for node in descendants(todo.pop(), cst.Attribute):
            name = own_field(node)
            if name is not None and name not in found:
                found.add(name)
                todo += [methods[name]] if name in methods else []
    return found


def changed_after(project: Project, file: PythonFile, owner: cst.ClassDef, read: set[str]) -> str | None:
    """Where an object of `owner` gets one of the attributes `read` again after it was made; None where nowhere."""
    for where in project.parsed():
        for node in where.nodes:
            for target in targets_of(node) if isinstance(node, ASSIGNS) else ():
                place = target.value if isinstance(target, cst.Subscript) else target
                if not isinstance(place, cst.Attribute) or place.attr.value not in read:
                    continue
                inside = where is file and where.inside(node, owner)
                around = where.location(node).function
                mine = dotted(place.value) == "self"
                if (mine and inside and around not in ("__init__", "__post_init__", "__new__", "__setstate__")) or not mine:
                    return f"it reads `self.{place.attr.value}`, which is set again at {where.location(node)}"
    return None


def _globals(project: Project, file: PythonFile, function: cst.FunctionDef) -> str | None:
    """Variables of the module that some function declares `global`, and those of an enclosing function that are set more than once."""
    declared = {item.name.value for node in file.each((cst.Global, cst.Nonlocal)) for item in node.names}
    for name in descendants(function.body, cst.Name):
        up = file.parent(name)
        if isinstance(up, cst.Attribute) and up.attr is name:
            continue
        if name.value in declared:
            return f"it reads {name.value!r}, which another function sets"
        if _outer_variable(file, function, name):
            return f"it reads {name.value!r} of the function around it, which is set more than once"
    return None


def _outer_variable(file: PythonFile, function: cst.FunctionDef, name: cst.Name) -> bool:
    if not any(isinstance(up, cst.FunctionDef) for up in file.ancestors(function)):
        return False
    scope = file.scope(name)
    found = list(scope[name.value]) if scope is not None else []
    outside = [each for each in found if each.scope is not scope and each.scope is not file.scope(file.module) and hasattr(each, "node")]
    return len([each for each in outside if not file.inside(each.node, function)]) > 1
