"""Who may change a tensor without being handed it: an optimizer's step, a trainer, a function that reaches it by itself."""

from __future__ import annotations

from collections import Counter, deque

import libcst as cst

from trainflash.knobs.effects import changes, writers
from trainflash.knobs.project import Project
from trainflash.knobs.reading import callees
from trainflash.knobs.reading.expressions import given_to
from trainflash.knobs.reading.python_source import PythonFile, descendants, dotted

# Methods that update parameters, gradients or a state that they hold, of whatever object.
UPDATES = {"backward", "fit", "learn", "load", "load_state_dict", "minimize", "optimize", "reset", "step", "train_on_batch", "zero_grad"}
PLAIN = {name for kind in (str, bytes, list, tuple, dict, set, int, float, Counter, deque) for name in dir(kind)}
TENSOR = """
abs all allclose amax amin any argmax argmin argsort astype bfloat16 bool ceil chunk clamp clip clone contiguous cos cpu cuda cumsum
detach diagonal dim div dot double eq exp expand expand_as flatten flip float floor gather ge gt half index_select int isfinite isinf
isnan item le log log_softmax long lt masked_fill matmul max mean median min mm mul narrow ne nelement new_empty new_full new_ones
new_tensor new_zeros nonzero norm numel numpy permute pow prod ravel relu repeat reshape roll round select sigmoid sin size softmax sort
split sqrt square squeeze std sub sum swapaxes t tanh to tobytes tolist topk transpose tril triu type type_as unbind unfold unique
unsqueeze var view view_as where
"""
READING = """
choice choices close dump dumps flush get_text integers loads log named_parameters normal parameters perf_counter permutation randint
randn random read readline readlines recv sample send set_description set_postfix shuffle state_dict time uniform update write
writelines writerow
"""
HARMLESS = (PLAIN | {*TENSOR.split(), *READING.split()}) - UPDATES


def changing(project: Project, file: PythonFile, where: cst.CSTNode, names: set[str]) -> cst.Call | None:
    """The first call in `where` that may change what one of `names` holds, of all those that are not handed it.

    A method of an object that nothing is known of may: it can hold the same tensor.
    """
    return _changing(project, file, where, names, set())


def _changing(project: Project, file: PythonFile, where: cst.CSTNode, names: set[str], seen: set[int]) -> cst.Call | None:
    for call in descendants(where, cst.Call):
        if _may(project, file, call, names, seen):  # type: ignore[arg-type]
            return call  # type: ignore[return-value]
    return None


def _may(project: Project, file: PythonFile, call: cst.Call, names: set[str], seen: set[int]) -> bool:
    method = callees.method_name(call)
    if method in UPDATES and not callees.own_method(project, file, call):
        return not callees.of_library(project, file, call)
    found = list(callees.meant(project, file, call))
    for where, function in found:
        if id(function) in seen:
            continue
        seen.add(id(function))
        outside = _reached(where, function, names)
        if outside and changes.changed(project, where, function.body, outside) is not None:
            return True
        if _changing(project, where, function.body, names, seen) is not None:
            return True
    if found or not method or callees.of_library(project, file, call):
        return False
    shown = method.startswith(writers.SHOWS) or method in writers.REPORTS
    return not (shown or method in HARMLESS)


def _reached(file: PythonFile, function: cst.FunctionDef, names: set[str]) -> set[str]:
    """Those of `names` by which `function` may reach the same thing: variables around it, and attributes of any object."""
    fields = {name.rpartition(".")[2] for name in names if "." in name}
    params = {node.value for node in descendants(function.params, cst.Name)}  # type: ignore[attr-defined]
    plain = {name for name in names if "." not in name and name not in params and not _local(function, name)}
    attributes = {dotted(node) for node in descendants(function.body, cst.Attribute) if node.attr.value in fields}  # type: ignore[attr-defined]
    return plain | {each for each in attributes if each is not None}


def _local(function: cst.FunctionDef, name: str) -> bool:
    shared = descendants(function.body, (cst.Global, cst.Nonlocal))
    return bool(given_to(function, name)) and all(item.name.value != name for node in shared for item in node.names)  # type: ignore[attr-defined]
