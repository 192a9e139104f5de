"""Which samplers give any samples in any order, so that those of like length may come together: torch's own, and what only shuffles."""

from __future__ import annotations

import libcst as cst

from trainflash.knobs.project import Project
from trainflash.knobs.reading import callees, callers
from trainflash.knobs.reading.expressions import given_to, passed, refuse, short
from trainflash.knobs.reading.python_source import PythonFile, clauses, descendants, dotted, keyword, positional

PACKAGES = ("torch.utils.data", "torch.utils.data.sampler", "torch.utils.data.distributed")
KNOWN = ("RandomSampler", "SequentialSampler", "WeightedRandomSampler", "DistributedSampler")
SHUFFLES = ("torch.randperm", "random.shuffle", "numpy.random.permutation", "numpy.random.shuffle")
SHUFFLE_METHODS = ("shuffle", "permutation")  # of a generator
HARMLESS = (
    "len",
    "range",
    "list",
    "iter",
    "int",
    "min",
    "tensor",
    "tolist",
    "append",
    "manual_seed",
    "Generator",
    "Random",
    "default_rng",
    "islice",
    "arange",
)
DEEPEST = 4  # own: names and parameters through which a sampler is handed


def check(project: Project, file: PythonFile, sampler: cst.BaseExpression, depth: int = 0) -> None:
    """Raises `UsageError` where the order or the choice of samples may mean something."""
    here, text = file.location(sampler), short(file.text(sampler))
    if isinstance(sampler, cst.IfExp):
        check(project, file, sampler.body, depth)
        check(project, file, sampler.orelse, depth)
        return
    if isinstance(sampler, (cst.Name, cst.Attribute)) and depth < DEEPEST:
        for where, each in _given(project, file, sampler):
            if dotted(each) != "None":
                check(project, where, each, depth + 1)
        return
    name = callees.called_name(sampler) if isinstance(sampler, cst.Call) else ""
    full = file.full_name(sampler.func) or "" if isinstance(sampler, cst.Call) else ""
    if full in {f"{package}.{known}" for package in PACKAGES for known in KNOWN}:
        return
    if full in {f"{package}.BatchSampler" for package in PACKAGES}:
        inner = positional(sampler, 0) or keyword(sampler, "sampler")  # type: ignore[arg-type]
        if inner is not None:
            check(project, file, inner.value, depth + 1)
            return
    if full in {f"{package}.SubsetRandomSampler" for package in PACKAGES}:
        raise refuse(f"{here}: `{text}` leaves samples out, and they may not be fit to be read for their length")
    made = [
        each
        for where, each in callees.defined(project, "__iter__")
        if (owner := where.class_of(each)) is not None and owner.name.value == name
    ]
    files = [where for where, each in callees.defined(project, "__iter__") if any(each is one for one in made)]
    if len(made) != 1 or not _only_shuffles(files[0], made[0]):
        raise refuse(f"{here}: which samples `{text}` puts together, or leaves out, may mean something")


def _given(project: Project, file: PythonFile, name: cst.Name | cst.Attribute) -> list[tuple[PythonFile, cst.BaseExpression]]:
    """What a name is given in its function, class or module, or by callers. Raises `UsageError` where nothing shows."""
    spelled, around = dotted(name) or "", file.function_around(name)
    places = [around, file.class_around(name), file.module]
    found = next((made for place in places if place is not None and (made := given_to(place, spelled))), [])
    given = [(file, each) for each in found]
    params = descendants(around.params, cst.Param) if around is not None and not found else ()
    for param in params:
        if param.name.value == spelled:  # type: ignore[attr-defined]
            sites = callers.sites(project, file, around)  # type: ignore[arg-type]
            given += [(where, value) for where, call in sites if (value := passed(where, call, file, around, param)) is not None]  # type: ignore[arg-type]
    if not given:
        raise refuse(f"{file.location(name)}: which sampler `{file.text(name)}` is is not known")
    return given


def _only_shuffles(file: PythonFile, iterate: cst.FunctionDef) -> bool:
    """Whether `__iter__` gives what one shuffling of all numbers gives, one by one or in pieces."""
    shuffles = 0
    for call in descendants(iterate.body, cst.Call):
        name = callees.called_name(call)  # type: ignore[arg-type]
        if file.full_name(call.func) in SHUFFLES or (callees.method_name(call) in SHUFFLE_METHODS):  # type: ignore[attr-defined,arg-type]
            shuffles += 1
            if any(not _of_all(arg.value) for arg in call.args[:1]):  # type: ignore[attr-defined]
                return False
        elif name not in HARMLESS:
            return False
    if shuffles != 1:
        return False
    for node in descendants(iterate.body, (cst.Subscript, cst.BaseComp, cst.Yield, cst.Return, cst.If, cst.From)):
        if isinstance(node, cst.Subscript) and any(isinstance(each.slice, cst.Index) for each in node.slice):
            return False  # what something says of a sample
        if isinstance(node, cst.BaseComp) and (any(each.ifs for each in clauses(node)) or not _plain(getattr(node, "elt", None))):
            return False
        if isinstance(node, (cst.Yield, cst.Return)) and not isinstance(node.value, cst.From) and not _plain(node.value):
            return False
    return True


def _of_all(node: cst.BaseExpression) -> bool:
    """Whether what is shuffled are all numbers, and no groups of them."""
    return not any(True for _ in descendants(node, (cst.BinaryOperation, cst.BaseComp, cst.Subscript)))


def _plain(node: cst.BaseExpression | None) -> bool:
    """Whether what is handed out is a number or a piece of the order, as it is or as a tensor or a list."""
    if node is None or isinstance(node, (cst.Name, cst.Attribute, cst.GeneratorExp, cst.ListComp)):
        return True
    if isinstance(node, cst.Subscript):
        return _plain(node.value)
    if isinstance(node, cst.Call):
        inner = node.func.value if isinstance(node.func, cst.Attribute) and callees.called_name(node) in ("tolist", "item") else None
        return _plain(inner) if inner is not None else all(_plain(arg.value) for arg in node.args)
    return False
