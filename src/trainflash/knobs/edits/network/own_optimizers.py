"""An optimizer written by hand that computes what one of torch's does: torch's own in its place.

What the class computes is found by carrying its methods out on numbers, and compared with torch's published rules over several updates,
with options and gradients that tell them apart: where both agree to rounding the call is exchanged, and nothing is guessed.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import libcst as cst

from trainflash.knobs.edits import imports
from trainflash.knobs.kinds import OwnOptimizer
from trainflash.knobs.project import Project
from trainflash.knobs.reading.expressions import is_name, refuse
from trainflash.knobs.reading.python_source import PythonFile, base_names, dotted, has_splat
from trainflash.knobs.reading.scalars import Cell, Machine, NotUnderstood, signature
from trainflash.knobs.scene import Scene, Target
from trainflash.knobs.splices import Splice
from trainflash.schema import Location

GRADIENTS = ((0.7, -0.3), (-0.2, 0.9), (0.4, 0.05), (-1.1, 0.6), (0.3, -0.8))  # of two parameters, update by update
STARTS = (0.5, -1.25)
SLOWER_FROM, SLOWER = 2, 0.5  # a schedule changes the learning rate of a group between updates
ALIKE = 1e-9  # relative; another order of the same operations in double precision
ALIASES = {
    "lr": ("lr", "learning_rate", "rate", "step_size"),
    "betas": ("betas", "momenta"),
    "eps": ("eps", "epsilon"),
    "weight_decay": ("weight_decay", "decay", "wd"),
    "momentum": ("momentum", "mu"),
    "alpha": ("alpha", "rho", "smoothing"),
    "nesterov": ("nesterov",),
}
TRIED = {"lr": 0.013, "betas": (0.83, 0.957), "eps": 3e-3, "weight_decay": 0.07, "momentum": 0.61, "alpha": 0.91, "nesterov": True}
OFF = {"momentum": 0.0, "weight_decay": 0.0, "nesterov": False}  # what a class without the option does
OWN_METHODS = {"__init__", "step", "zero_grad", "__setstate__"}

Options = dict[str, Any]


@dataclass
class _One:
    """One parameter and what is kept for it."""

    value: float
    first: float = 0.0
    second: float = 0.0
    updates: int = 0


def _adam(one: _One, gradient: float, options: Options) -> None:
    """https://docs.pytorch.org/docs/stable/generated/torch.optim.Adam.html"""
    _adaptive(one, gradient + options["weight_decay"] * one.value, options)


def _adamw(one: _One, gradient: float, options: Options) -> None:
    """https://docs.pytorch.org/docs/stable/generated/torch.optim.AdamW.html"""
    one.value *= 1 - options["lr"] * options["weight_decay"]
    _adaptive(one, gradient, options)


def _adaptive(one: _One, gradient: float, options: Options) -> None:
    one.updates += 1
    a, b = options["betas"]
    one.first = a * one.first + (1 - a) * gradient
    one.second = b * one.second + (1 - b) * gradient**2
    mean, square = one.first / (1 - a**one.updates), one.second / (1 - b**one.updates)
    one.value -= options["lr"] * mean / (math.sqrt(square) + options["eps"])


def _sgd(one: _One, gradient: float, options: Options) -> None:
    """https://docs.pytorch.org/docs/stable/generated/torch.optim.SGD.html"""
    gradient += options["weight_decay"] * one.value
    if options["momentum"]:
        one.first = options["momentum"] * one.first + gradient
        gradient = gradient + options["momentum"] * one.first if options["nesterov"] else one.first
    one.value -= options["lr"] * gradient


def _rmsprop(one: _One, gradient: float, options: Options) -> None:
    """https://docs.pytorch.org/docs/stable/generated/torch.optim.RMSprop.html"""
    gradient += options["weight_decay"] * one.value
    one.second = options["alpha"] * one.second + (1 - options["alpha"]) * gradient**2
    step = gradient / (math.sqrt(one.second) + options["eps"])
    one.first = options["momentum"] * one.first + step
    one.value -= options["lr"] * one.first


def _adagrad(one: _One, gradient: float, options: Options) -> None:
    """https://docs.pytorch.org/docs/stable/generated/torch.optim.Adagrad.html"""
    gradient += options["weight_decay"] * one.value
    one.second += gradient**2
    one.value -= options["lr"] * gradient / (math.sqrt(one.second) + options["eps"])


# Torch's classes: the rule, and the options with torch's own defaults.
RULES: dict[str, tuple[Callable[[_One, float, Options], None], Options]] = {
    "SGD": (_sgd, {"lr": 1e-3, "momentum": 0.0, "weight_decay": 0.0, "nesterov": False}),
    "Adam": (_adam, {"lr": 1e-3, "betas": (0.9, 0.999), "eps": 1e-8, "weight_decay": 0.0}),
    "AdamW": (_adamw, {"lr": 1e-3, "betas": (0.9, 0.999), "eps": 1e-8, "weight_decay": 1e-2}),
    "RMSprop": (_rmsprop, {"lr": 1e-2, "alpha": 0.99, "eps": 1e-8, "weight_decay": 0.0, "momentum": 0.0}),
    "Adagrad": (_adagrad, {"lr": 1e-2, "eps": 1e-10, "weight_decay": 0.0}),
}


@dataclass(frozen=True)
class _Written:
    """The owner's class: `names` of its constructor's parameters without the object itself, the first of which takes what is trained."""

    where: str
    tree: ast.ClassDef
    names: list[str]
    defaults: dict[str, ast.expr]
    imported: dict[str, str]


@dataclass(frozen=True)
class _Known:
    """Torch's class `name`, and which of its options each option of the owner's constructor is."""

    name: str
    options: dict[str, str]


def own_optimizer(edit: OwnOptimizer, scene: Scene) -> tuple[Target, ...]:
    """The one call that makes an object of the class at the finding's line. Raises `UsageError` where it is none of torch's."""
    file, owner = _class_at(scene.project, *scene.source("updates"))
    written = _written(file, owner)
    _nothing_else(scene.project, owner, written)
    made, call = _made(scene.project, file, owner)
    given = _given(made, call, written)
    known = _recognised(written, given)
    spelled, needed = imports.reach(made, "torch.optim", known.name)
    splices = (*needed, Splice(made.path, *made.span(call), f"{spelled}({', '.join(_arguments(written, given, known))})"))
    at = made.location(call)
    return (Target(at, owner.name.value, lambda value: splices, f"`{made.text(call)}` at {at}", f"torch.optim.{known.name}"),)


def _class_at(project: Project, file: PythonFile, place: Location) -> tuple[PythonFile, cst.ClassDef]:
    """The class around the line, or the project's one that the line makes an object of."""
    function = file.function_at(place)
    owner = file.class_of(function) if function is not None else None
    if owner is not None and "Optimizer" in base_names(owner):
        return file, owner
    called = {(dotted(call.func) or "").split(".")[-1] for call in file.calls if file.covers(call, place.line)}
    classes = [
        (other, node)
        for other in project.parsed("Optimizer")
        for node in other.nodes
        if isinstance(node, cst.ClassDef) and node.name.value in called and "Optimizer" in base_names(node)
    ]
    if len(classes) != 1:
        raise refuse(f"{place}: no optimizer written by hand, a class derived from torch.optim.Optimizer, is here")
    return classes[0]


def _written(file: PythonFile, owner: cst.ClassDef) -> _Written:
    where = f"{owner.name.value} at {file.location(owner)}"
    trees = [node for node in ast.walk(ast.parse(file.raw)) if isinstance(node, ast.ClassDef) and node.name == owner.name.value]
    begins = [each for tree in trees for each in tree.body if isinstance(each, ast.FunctionDef) and each.name == "__init__"]
    if len(trees) != 1 or len(begins) != 1 or len(begins[0].args.args) < 2:
        raise refuse(f"{where}: has no constructor of its own that takes parameters")
    names, defaults = signature(begins[0])
    return _Written(where, trees[0], names[1:], defaults, file.imported)


def _nothing_else(project: Project, owner: cst.ClassDef, written: _Written) -> None:
    """Raises `UsageError` where the program asks more of the class than updates."""
    methods = {each.name for each in written.tree.body if isinstance(each, ast.FunctionDef)} - OWN_METHODS
    for file in project.parsed():
        for node in file.nodes:
            if isinstance(node, cst.Attribute) and not file.inside(node, owner):
                if node.attr.value in methods:
                    raise refuse(f"{file.location(node)}: `{file.text(node)}` may be {written.where}'s own")
                if node.attr.value == "state" and isinstance(file.parent(node), (cst.Subscript, cst.Attribute)):
                    raise refuse(f"{file.location(node)}: `{file.text(node)}` may be what {written.where} keeps for a parameter")


def _made(project: Project, file: PythonFile, owner: cst.ClassDef) -> tuple[PythonFile, cst.Call]:
    name, found = owner.name.value, []
    for other in project.parsed(name):
        for node in other.nodes:
            if not isinstance(node, cst.Name) or node.value != name or other.inside(node, owner):
                continue
            if isinstance(other.parent(node), cst.ImportAlias):
                continue
            if not is_name(other, node) and not isinstance(other.parent(node), cst.Attribute):
                continue
            up = other.parent(node) if isinstance(other.parent(node), cst.Attribute) else node
            call = other.parent(up)  # type: ignore[arg-type]
            if not isinstance(call, cst.Call) or call.func is not up:
                raise refuse(f"{other.location(node)}: {name} is used for something else than making one")
            found.append((other, call))
    if len(found) != 1:
        raise refuse(f"{file.location(owner)}: {'no' if not found else 'more than one'} call makes an object of {name}")
    other, call = found[0]
    if has_splat(call, "*") or has_splat(call, "**"):
        raise refuse(f"{other.location(call)}: the arguments of `{other.text(call)}` are not all written out")
    return other, call


def _given(file: PythonFile, call: cst.Call, written: _Written) -> dict[str, str]:
    """Source of each argument by the constructor's name for it."""
    if len(call.args) > len(written.names):
        raise refuse(f"{file.location(call)}: `{file.text(call)}` gives more than its class takes")
    names = (arg.keyword.value if arg.keyword is not None else written.names[at] for at, arg in enumerate(call.args))
    found = {name: file.text(arg.value) for name, arg in zip(names, call.args, strict=True)}
    if written.names[0] not in found:
        raise refuse(f"{file.location(call)}: `{file.text(call)}` is given no parameters")
    return found


def _recognised(written: _Written, given: dict[str, str]) -> _Known:
    """Torch's class that updates as this one does, with all options that can be given to it."""
    reason = f"{written.where} updates parameters in another way than torch's optimizers do"
    first, *others = written.names
    for name, (rule, defaults) in RULES.items():
        options = {own: option for own in others for option in defaults if own in ALIASES[option]}
        if "lr" not in options.values() or not set(given) <= {first, *options}:
            continue
        try:
            if all(_agree(written, rule, defaults, options, tried) for tried in _trials(options)):
                return _Known(name, options)
        except NotUnderstood as not_understood:
            reason = f"{written.where}: `{not_understood}` is not understood"
    raise refuse(reason)


def _trials(options: dict[str, str]) -> Iterator[Options]:
    """Options of the owner's constructor: all that tell rules apart, then none but the rate, as zero may have a way of its own."""
    switched = [own for own, option in options.items() if option == "nesterov"]
    yield {own: TRIED[option] for own, option in options.items()}
    yield {own: TRIED[option] for own, option in options.items() if own not in switched}
    yield {
        own: TRIED[option] if option in ("lr", "betas", "eps", "alpha") else 0.0 for own, option in options.items() if own not in switched
    }


def _agree(
    written: _Written,
    rule: Callable[[_One, float, Options], None],
    defaults: Options,
    options: dict[str, str],
    tried: Options,
) -> bool:
    """Whether both update alike, update by update; options that the owner's class does not have are off in torch's."""
    machine = Machine(written.tree, written.imported)
    cells, ones = [Cell(value) for value in STARTS], [_One(value) for value in STARTS]
    made = machine.make(cells, dict(tried))
    asked = {**defaults, **OFF, **{option: tried[own] for own, option in options.items() if own in tried}}
    groups = made.attributes["param_groups"]
    for number, gradients in enumerate(GRADIENTS):
        if number == SLOWER_FROM:
            if "lr" not in groups[0]:
                return False
            groups[0]["lr"] *= SLOWER
            asked["lr"] *= SLOWER
        for cell, one, gradient in zip(cells, ones, gradients, strict=True):
            cell.grad = Cell(gradient)
            rule(one, gradient, asked)
        machine.call(made, "step")
        if not all(math.isclose(cell.value, one.value, rel_tol=ALIKE) for cell, one in zip(cells, ones, strict=True)):
            return False
    return set(groups[0]) - {"params"} <= set(defaults)  # a schedule, or groups with options of their own, say the same names


def _arguments(written: _Written, given: dict[str, str], known: _Known) -> Iterator[str]:
    """The call's arguments under torch's names, and the class's own defaults where torch has others."""
    yield given[written.names[0]]
    own_name = {option: own for own, option in known.options.items()}
    for option, torchs in RULES[known.name][1].items():
        own = own_name.get(option)
        if own is not None and own in given:
            yield f"{option}={given[own]}"
            continue
        value = _default(written, own) if own is not None else OFF.get(option, torchs)
        if value != torchs:
            yield f"{option}={value!r}"


def _default(written: _Written, own: str) -> Any:
    try:
        return ast.literal_eval(written.defaults[own])
    except (KeyError, ValueError):
        raise refuse(f"{written.where}: the default of {own} is no plain value") from None
