"""Settings that pass through a class or a call of the program's own kind on their way: what is followed further is given back."""

from __future__ import annotations

import libcst as cst

from trainflash.knobs.reading.expressions import class_values, literal
from trainflash.knobs.reading.python_source import (
    PythonFile,
    base_names,
    descendants,
    dotted,
    keyword,
    own_method,
    parameter,
    sole,
    string_value,
)

MAPPINGS = {"dict", "UserDict", "OrderedDict", "SimpleNamespace", "Namespace", "Dict", "EasyDict", "AttrDict"}
CORES = {"os.cpu_count", "multiprocessing.cpu_count", "torch.multiprocessing.cpu_count", "os.sched_getaffinity", "psutil.cpu_count", "len"}
FILLS = ("setdefault", "update", "pop", "popitem", "clear")
SAVES = "save_hyperparameters"


def below_cores(file: PythonFile, call: cst.Call) -> cst.BaseExpression | None:
    """The one operand of `min(…)` beside those that count the machine's cores."""
    given = [arg.value for arg in call.args if arg.keyword is None and not arg.star]
    if len(given) == 1 and isinstance(given[0], (cst.List, cst.Tuple)):
        given = [element.value for element in given[0].elements]
    others = [each for each in given if not _counts_cores(file, each)]
    return (
        others[0]
        if len(others) == 1 and len(given) > 1 and len(given) == len(others) + sum(_counts_cores(file, g) for g in given)
        else None
    )


def _counts_cores(file: PythonFile, node: cst.BaseExpression) -> bool:
    calls = [file.full_name(call.func) or "" for call in descendants(node, cst.Call)]  # type: ignore[attr-defined]
    return any(name.endswith(("cpu_count", "sched_getaffinity")) for name in calls) and all(name in CORES for name in calls)


def copied(node: cst.DictComp) -> cst.BaseExpression | None:
    """`x` of `{key: value for key, value in x.items()}`, also where each value is copied by `dict(…)` or `.copy()`."""
    loop, items = node.for_in, node.for_in.iter
    target = loop.target.elements if isinstance(loop.target, cst.Tuple) else ()
    names = [dotted(each.value) for each in target]
    value = node.value
    if isinstance(value, cst.Call) and dotted(value.func) in ("dict", "copy.copy", "copy.deepcopy", "deepcopy") and len(value.args) == 1:
        value = value.args[0].value
    elif isinstance(value, cst.Call) and isinstance(value.func, cst.Attribute) and value.func.attr.value == "copy" and not value.args:
        value = value.func.value
    whole = isinstance(items, cst.Call) and isinstance(items.func, cst.Attribute) and items.func.attr.value == "items" and not items.args
    if not whole or loop.inner_for_in is not None or loop.ifs or len(names) != 2 or [dotted(node.key), dotted(value)] != names:
        return None
    return items.func.value  # type: ignore[union-attr]


def takes_any_key(file: PythonFile, owner: cst.ClassDef) -> bool:
    """Whether objects of the class have whatever keys they are made of, as dictionaries with attributes do."""
    if base_names(owner) & MAPPINGS:
        return True
    for function in owner.body.body:
        if not isinstance(function, cst.FunctionDef) or function.name.value != "__init__":
            continue
        for call in descendants(function.body, cst.Call):
            name = dotted(call.func) or ""  # type: ignore[attr-defined]
            by_name = name == "setattr" and len(call.args) == 3 and string_value(call.args[1].value) is None  # type: ignore[attr-defined]
            if (by_name and dotted(call.args[0].value) == "self") or name == "self.__dict__.update":  # type: ignore[attr-defined]
                return True
    return False


def own_class(file: PythonFile, call: cst.Call) -> str:
    """The class that `cls(…)` makes an object of; empty for any other call."""
    function = file.function_around(call) if dotted(call.func) == "cls" else None
    owner = file.class_of(function) if function is not None else None
    return owner.name.value if owner is not None else ""


def made_by_default(owner: cst.ClassDef, name: str) -> list[tuple[cst.BaseExpression, str]]:
    """What the field `name` holds by default: an expression, or the class that its `default_factory` makes an object of."""
    found: list[tuple[cst.BaseExpression, str]] = []
    for value in class_values(owner.body, name) if isinstance(owner.body, cst.IndentedBlock) else ():
        factory = keyword(value, "default_factory") if isinstance(value, cst.Call) else None
        found.append((value, (dotted(factory.value) or "").split(".")[-1] if factory is not None else ""))
    return found


def saved_hyperparameters(file: PythonFile, owner: cst.ClassDef, name: str) -> cst.Param | cst.BaseExpression | None:
    """What `self.hparams.name` of a Lightning module is: a parameter of `__init__`, or the object that was saved whole."""
    init = own_method(owner, "__init__")
    saves = [call for call in descendants(init, cst.Call) if dotted(call.func) == f"self.{SAVES}"] if init is not None else []  # type: ignore[attr-defined]
    if init is None or len(saves) != 1:
        return None
    given, ignored = saves[0].args, keyword(saves[0], "ignore")  # type: ignore[attr-defined]
    if ignored is not None and name in {string_value(each) for each in descendants(ignored.value, cst.SimpleString)}:  # type: ignore[arg-type]
        return None
    plain = [arg.value for arg in given if arg.keyword is None and not arg.star]
    names = [string_value(each) for each in plain]
    if not plain or name in names:
        return parameter(init, name)
    return plain[0] if len(plain) == 1 and names == [None] and literal(plain[0]) is not None else None


def set_by_default(function: cst.FunctionDef, param: cst.Param, name: str) -> cst.BaseExpression | None:
    """`value` of `kwargs.setdefault("name", value)`, where the function says so once and under no condition, and changes nothing else."""
    held = param.name.value
    lines = [sole(line) for line in function.body.body]
    said = [line.value for line in lines if isinstance(line, cst.Expr) and isinstance(line.value, cst.Call)]
    said = [call for call in said if dotted(call.func) == f"{held}.setdefault" and len(call.args) == 2]
    named = [call for call in said if string_value(call.args[0].value) == name]
    changed = [call for call in descendants(function.body, cst.Call) if dotted(call.func) in {f"{held}.{each}" for each in FILLS}]  # type: ignore[attr-defined]
    written = [
        target
        for target in descendants(function.body, (cst.AssignTarget, cst.Del))
        if isinstance(target.target, cst.Subscript)  # type: ignore[attr-defined]
        and dotted(target.target.value) == held  # type: ignore[attr-defined]
    ]
    return named[0].args[1].value if len(named) == 1 and len(changed) == len(said) and not written else None
