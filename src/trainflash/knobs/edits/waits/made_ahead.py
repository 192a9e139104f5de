"""A generator of the program's that makes batches: a thread runs it ahead, and makes the next batches while one is trained on.

The batches and their order stay, as long as nothing that the generator draws from, reads or fills is used by anybody else. That is asked of
the source: of the random streams of torch, NumPy and Python, which training draws from, too; of the generator's own streams; of attributes
and variables that change after the start; of buffers that are handed out and filled anew.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from trainflash.knobs.edits import imports
from trainflash.knobs.edits.batches.collating import batch_maker
from trainflash.knobs.edits.statements import above_in_module, decorating
from trainflash.knobs.effects import changes, given, purity
from trainflash.knobs.kinds import MadeAhead
from trainflash.knobs.project import Project
from trainflash.knobs.reading import callees
from trainflash.knobs.reading.expressions import given_to, is_name, refuse, short
from trainflash.knobs.reading.python_source import ASSIGNS, PythonFile, descendants, dotted, keyword, targets_of
from trainflash.knobs.scene import Scene, Target

NAME = "made_ahead"
HELPER = '''def made_ahead(make):
    """A thread runs the generator, and makes the next two batches while one is used."""

    @<functools.wraps>(make)
    def batches(*args, **kwargs):
        ready, over = <queue.Queue>(2), <threading.Event>()

        def hand_over(*item):
            while not over.is_set():
                try:
                    return ready.put(item, timeout=0.1)
                except <queue.Full>:
                    continue

        def fill():
            try:
                for batch in make(*args, **kwargs):
                    hand_over(batch, None)
                    if over.is_set():
                        return
                hand_over(None, StopIteration())
            except BaseException as error:
                hand_over(None, error)

        <threading.Thread>(target=fill, daemon=True).start()
        try:
            while True:
                batch, end = ready.get()
                if isinstance(end, StopIteration):
                    return
                if end is not None:
                    raise end
                yield batch
        finally:
            over.set()

    return batches


'''
NEEDS = (("functools", "wraps"), ("queue", "Queue"), ("queue", "Full"), ("threading", "Event"), ("threading", "Thread"))
MAKING = ("__init__", "__post_init__", "__new__", "__setstate__")
GLOBAL = ("random", "numpy.random")  # whose functions draw from one stream for all
STREAMS = purity.SEEDED | {"torch.Generator", "numpy.random.Generator"}
IN_PLACE = {each for each in purity.RANDOM_METHODS if each.endswith("_")}

Function = tuple[PythonFile, cst.FunctionDef]


def made_ahead(edit: MadeAhead, scene: Scene) -> tuple[Target, ...]:
    """The data function of the run. Raises `UsageError` where it is no plain generator, or training and making may meet in one place."""
    project = scene.project
    file, function = batch_maker(project, scene.summary.data_function)
    here = file.location(function)
    _plain(file, function)
    inside = list(callees.reached(project, [(file, function)]))
    for where, each in inside:
        _draws(project, where, each, inside)
    _apart(project, inside)
    _fresh(project, file, function, inside)
    if any(each.value == NAME for each in descendants(file.module, cst.Name)):  # type: ignore[attr-defined]
        raise refuse(f"{here}: the name {NAME} is used already")
    helper, needed = HELPER, []
    for module, name in NEEDS:
        spelled, further = imports.reach(file, module, name)
        helper = helper.replace(f"<{module}.{name}>", spelled)
        needed += [each for each in further if each not in needed]
    splices = (*needed, above_in_module(file, function, helper), decorating(file, function, NAME))
    return (Target(here, None, lambda value: splices, f"the generator {function.name.value} at {here}", "in a thread"),)


def _plain(file: PythonFile, function: cst.FunctionDef) -> None:
    here, name = file.location(function), function.name.value
    yields = [each for each in descendants(function.body, cst.Yield) if file.function_around(each) is function]
    if not yields or function.asynchronous is not None:
        raise refuse(f"{here}: {name} is no generator, its next batch is not known before it is asked for")
    if any(not isinstance(file.parent(each), cst.Expr) for each in yields):
        raise refuse(f"{here}: {name} is sent something for each batch")
    if file.function_around(function) is not None:
        raise refuse(f"{here}: {name} reads variables of the function around it")


# --- random numbers


def _draws(project: Project, file: PythonFile, function: cst.FunctionDef, inside: list[Function]) -> None:
    """Raises `UsageError` where a stream is drawn from that somebody else may draw from meanwhile."""
    for call in descendants(function.body, cst.Call):
        assert isinstance(call, cst.Call)
        full, method = file.full_name(call.func) or "", callees.method_name(call)
        module, _, name = full.rpartition(".")
        if full in STREAMS:
            continue
        generator = keyword(call, "generator")
        if module in GLOBAL or (module.split(".")[0] == "torch" and name in purity.RANDOM_TORCH) or method in IN_PLACE:
            stream = None if generator is None or module in GLOBAL else generator.value
        elif method in purity.RANDOM_METHODS and module.split(".")[0] not in ("torch", "numpy"):
            stream = call.func.value  # type: ignore[attr-defined]
        else:
            continue
        if stream is None or not _owned(project, file, function, stream, inside):
            raise refuse(f"{file.location(call)}: `{short(file.text(call))}` draws from a random stream that training may draw from, too")


def _owned(project: Project, file: PythonFile, function: cst.FunctionDef, stream: cst.BaseExpression, inside: list[Function]) -> bool:
    """Whether the stream is one that the generator or its object makes, and that only `inside` draws from."""
    if isinstance(stream, cst.Call):
        base = stream.func.value if isinstance(stream.func, cst.Attribute) and isinstance(stream.func.value, cst.Call) else stream
        return (file.full_name(base.func) or "") in STREAMS
    if isinstance(stream, cst.Name):
        made = given_to(function.body, stream.value)
        return bool(made) and all(isinstance(each, cst.Call) and _owned(project, file, function, each, inside) for each in made)
    owner = file.class_of(function)
    if owner is None or not isinstance(stream, cst.Attribute) or dotted(stream.value) != "self":
        return False
    made = given_to(owner.body, f"self.{stream.attr.value}")
    known = bool(made) and all(isinstance(each, cst.Call) and _owned(project, file, function, each, inside) for each in made)
    return known and _used_outside(project, stream.attr.value, inside) is None


def _used_outside(project: Project, attribute: str, inside: list[Function]) -> tuple[PythonFile, cst.CSTNode] | None:
    for where in project.parsed(attribute):
        for node in where.nodes:
            if isinstance(node, cst.Attribute) and node.attr.value == attribute:
                around = where.function_around(node)
                if around is None or (around.name.value not in MAKING and all(around is not each for _, each in inside)):
                    return where, node
    return None


# --- what both may use


def _apart(project: Project, inside: list[Function]) -> None:
    """Raises `UsageError` where what making reads is changed by somebody else, or what it changes is read by somebody else."""
    read = {node.attr.value for _, each in inside for node in descendants(each.body, cst.Attribute) if dotted(node.value) == "self"}  # type: ignore[attr-defined]
    for where, node, attribute in _changes(project):
        around = where.function_around(node)
        mine = around is not None and any(around is each for _, each in inside)
        if mine and (used := _used_outside(project, attribute, inside)) is not None:
            raise refuse(f"{used[0].location(used[1])}: `{short(used[0].text(used[1]))}` is read here, and would be ahead")
        if not mine and attribute in read and (around is None or around.name.value not in MAKING):
            raise refuse(f"{where.location(node)}: `{short(where.text(node))}` changes what the next batches are made of")
    for where, each in inside:
        own = given.bound(each.body) | {param.name.value for param in descendants(each.params, cst.Param)}  # type: ignore[attr-defined]
        outer = {node.value for node in descendants(each.body, cst.Name) if is_name(where, node)} - own  # type: ignore[attr-defined,arg-type]
        added = given.added_to(where.module)
        for name in sorted(outer):
            if len(given_to(where.module, name)) > 1 or name in added:
                raise refuse(f"{where.location(each)}: {each.name.value} reads {name}, which is set again")
        if any(True for _ in descendants(each.body, (cst.Global, cst.Nonlocal))):
            raise refuse(f"{where.location(each)}: {each.name.value} changes variables of others")


def _changes(project: Project) -> Iterator[tuple[PythonFile, cst.CSTNode, str]]:
    """Statements and calls that change an attribute, or what it holds, with its name."""
    for where in project.parsed():
        for node in where.nodes:
            if isinstance(node, ASSIGNS):
                held = [each.value if isinstance(each, cst.Subscript) else each for each in targets_of(node)]
            elif isinstance(node, cst.Call) and callees.method_name(node) in changes.METHODS:
                held = [node.func.value]  # type: ignore[attr-defined]
            else:
                continue
            yield from ((where, node, each.attr.value) for each in held if isinstance(each, cst.Attribute))


def _fresh(project: Project, file: PythonFile, function: cst.FunctionDef, inside: list[Function]) -> None:
    """Raises `UsageError` where something is handed out that is filled anew for the next batch."""
    for each in descendants(function.body, cst.Yield):
        for node in descendants(each, (cst.Name, cst.Attribute)):
            name = dotted(node)
            if name is None or isinstance(file.parent(node), cst.Attribute) or (isinstance(node, cst.Name) and not is_name(file, node)):
                continue
            made = [value for loop in file.loops_around(each) for value in given_to(loop.body, name)] if isinstance(node, cst.Name) else []
            looped = bool(made) or any(_binds(loop, name) for loop in file.loops_around(each))
            if not looped and changes.changed(project, file, function.body, {name}) is not None:
                raise refuse(f"{file.location(each)}: `{name}` is handed out, and filled anew for the next batch")


def _binds(loop: cst.For | cst.While, name: str) -> bool:
    return isinstance(loop, cst.For) and name in given.bound(loop)
