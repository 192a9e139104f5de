"""What the program does that an argument of DistributedDataParallel would break: kept gradients, parts that take turns, changed buffers."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import libcst as cst

from trainflash.knobs.edits.ranks import turns_of_parts
from trainflash.knobs.effects import changes
from trainflash.knobs.project import Project
from trainflash.knobs.reading import callees
from trainflash.knobs.reading.expressions import refuse, short
from trainflash.knobs.reading.python_source import PythonFile, descendants, dotted, keyword, positional, string_value, targets_of

WRAPPERS = ("torch.nn.parallel.DistributedDataParallel", "torch.nn.parallel.distributed.DistributedDataParallel")
NORMS = re.compile(r"BatchNorm|^batch_norm$|InstanceNorm")
WITH_NORMS = ("torchvision.models", "timm")  # libraries of networks that mostly normalise over batches
KEEPERS = (cst.List, cst.Tuple, cst.ListComp, cst.Dict, cst.DictComp, cst.Return, cst.Yield)
ADDS = ("append", "extend", "insert", "setdefault")
HOOKED = ("register_comm_hook", "_register_comm_hook")
# Hooks of torch that do the same to each number, whichever bucket it is in: torch/distributed/algorithms/ddp_comm_hooks.
ELEMENTWISE = ("allreduce_hook", "fp16_compress_hook", "bf16_compress_hook", "post_localSGD_hook")
MAKES = ("__init__", "reset_parameters", "reset_buffers")


def check(project: Project, argument: str) -> None:
    """Raises `UsageError` where `argument` of DistributedDataParallel does not go with the rest of the program."""
    if argument in CHECKS:
        CHECKS[argument](project)


def keeps_no_gradients(project: Project) -> None:
    """Gradients that are views of a bucket cannot be detached in place, and the next backward pass writes over those that are kept."""
    for file, node in _gradients(project):
        up = file.parent(node)
        if isinstance(up, cst.Attribute) and up.value is node and up.attr.value == "detach_":
            raise refuse(f"{file.location(node)}: `{short(file.text(up))}` cannot be done to a view of a bucket")
        if _kept(file, node):
            raise refuse(f"{file.location(node)}: `{short(file.text(node))}` is kept, and the next backward pass would write over it")


def _gradients(project: Project) -> Iterator[tuple[PythonFile, cst.Attribute]]:
    for file in project.parsed(".grad"):
        for node in file.nodes:
            if isinstance(node, cst.Attribute) and node.attr.value == "grad" and not (file.full_name(node) or "").startswith("torch."):
                yield file, node


def _kept(file: PythonFile, node: cst.Attribute) -> bool:
    """Whether a gradient itself goes into a list, is returned, or becomes somebody's attribute, other than for the computing around it."""
    below: cst.CSTNode = node
    for up in file.ancestors(node):
        if isinstance(up, cst.Attribute) and up.attr.value != "data":
            return False  # what a method or a field of it gives is something else
        if isinstance(up, cst.Call) and below is not up.func:
            adds = isinstance(up.func, cst.Attribute) and up.func.attr.value in ADDS
            return adds and not _on_the_spot(file, up.func.value, up)  # type: ignore[attr-defined]
        if isinstance(up, cst.Assign):
            return below is up.value and not all(_on_the_spot(file, each.target, up) for each in up.targets)
        if isinstance(up, KEEPERS):
            line = file.parent(up)
            listed = isinstance(line, cst.Assign) and all(_on_the_spot(file, each.target, up) for each in line.targets)
            return not listed and not isinstance(line, cst.Arg)
        if not isinstance(up, (cst.Attribute, cst.Arg, cst.Call, cst.Element, cst.DictElement, cst.Subscript)):
            return False
        below = up
    return False


def _on_the_spot(file: PythonFile, target: cst.BaseExpression, node: cst.CSTNode) -> bool:
    """Whether `target` is a name of a function that does no backward pass itself, and neither returns it nor puts it elsewhere."""
    around = file.function_around(node)
    if not isinstance(target, cst.Name) or around is None:
        return False
    for each in descendants(around.body, (cst.Return, cst.Yield, cst.Assign, cst.Call)):
        if isinstance(each, cst.Call):
            if isinstance(each.func, cst.Attribute) and each.func.attr.value == "backward":
                return False
            continue
        stored = not isinstance(each, cst.Assign) or any(isinstance(one.target, (cst.Attribute, cst.Subscript)) for one in each.targets)
        if stored and isinstance(each.value, cst.Name) and each.value.value == target.value:  # type: ignore[attr-defined]
            return False
    return True


def uses_all_parts(project: Project) -> None:
    """Every parameter needs a gradient in each step."""
    turns_of_parts.none(project)


def keeps_its_graph(project: Project) -> None:
    """Every step has to use the very same parameters, and gradients have to be exchanged in each backward pass."""
    for file in project.parsed():
        for node in file.nodes:
            if isinstance(node, cst.Attribute) and node.attr.value in ("no_sync", "require_backward_grad_sync"):
                raise refuse(
                    f"{file.location(node)}: `{file.text(node)}` leaves out exchanges, which a graph that is declared static does not allow"
                )
    turns_of_parts.none(project)


def changes_no_buffers(project: Project) -> None:
    """What a forward changes in a buffer would go its own way on each rank."""
    for file in project.parsed():
        networks = next((name for name in file.imported.values() if name.startswith(WITH_NORMS)), None)
        if networks is not None:
            raise refuse(f"{file.path}: a network of {networks.split('.')[0]} may have running statistics, and ranks share them so")
        for node in file.nodes:
            last = node.attr.value if isinstance(node, cst.Attribute) else node.value if isinstance(node, cst.Name) else ""
            if NORMS.search(last) and not isinstance(file.parent(node), (cst.ImportAlias, cst.AsName)):
                raise refuse(f"{file.location(node)}: `{short(file.text(node))}` needs it as it is")
            if isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute) and node.func.attr.value == "register_buffer":
                _stays(project, file, node)


def _stays(project: Project, file: PythonFile, call: cst.Call) -> None:
    """Raises `UsageError` where the buffer that `call` registers is written to, other than where networks are made."""
    given = positional(call, 0) or keyword(call, "name")
    name = string_value(given.value) if given is not None else None
    if name is None:
        raise refuse(f"{file.location(call)}: which buffer `{short(file.text(call))}` makes is not known")
    for where in project.parsed(name):
        for node in where.nodes:
            around = where.function_around(node)
            if not isinstance(node, cst.Attribute) or node.attr.value != name or (around is not None and around.name.value in MAKES):
                continue
            line = where.parent(node)
            names = (
                [each.target.value for each in line.targets if isinstance(each.target, cst.Name)] if isinstance(line, cst.Assign) else []
            )
            others = [each for each in descendants(around.body, cst.Name) if each.value in names] if around is not None and names else []  # type: ignore[attr-defined]
            if any(_written(where, each) for each in (node, *others) if each is not node or not names):
                raise refuse(f"{where.location(node)}: the buffer {name} is changed here, on each rank in its own way")


def _written(file: PythonFile, node: cst.CSTNode) -> bool:
    """Whether the line gives `node` or a part of it another value, or calls a method that changes it."""
    for up in file.ancestors(node):
        if isinstance(up, cst.Attribute):
            call = file.parent(up)
            if isinstance(call, cst.Call) and call.func is up:
                return changes.writes(up.attr.value)
        elif isinstance(up, cst.Arg):
            return up.keyword is not None and up.keyword.value == "out"
        elif isinstance(up, (cst.AssignTarget, cst.Del)):
            return not isinstance(node, cst.Name) or file.parent(node) is not up
        elif isinstance(up, cst.AugAssign):
            return any(file.inside(node, each) for each in targets_of(up))
        elif not isinstance(up, (cst.Subscript, cst.Tuple, cst.Element)):
            return False
    return False


def hooks_see_no_buckets(project: Project) -> None:
    """A hook that compresses or chooses within a bucket computes something else with other buckets."""
    for file in project.parsed("comm_hook"):
        for call in file.calls:
            if callees.method_name(call) not in HOOKED:
                continue
            hook = positional(call, 1) or keyword(call, "hook")
            if hook is None or (dotted(hook.value) or "").split(".")[-1] not in ELEMENTWISE:
                raise refuse(f"{file.location(call)}: `{short(file.text(call))}` may compute something else with other buckets")


CHECKS: dict[str, Callable[[Project], None]] = {
    "gradient_as_bucket_view": keeps_no_gradients,
    "find_unused_parameters": uses_all_parts,
    "static_graph": keeps_its_graph,
    "bucket_cap_mb": hooks_see_no_buckets,
    "broadcast_buffers": changes_no_buffers,
}
