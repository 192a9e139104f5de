"""A generator of the program's that makes batches: a thread runs it ahead, and makes the next batches while one is trained on.

The batches and their order stay, as long as nothing that the generator draws from, reads or fills is used by anybody else. That is asked of
the source: of the random streams of torch, NumPy and Python, which training draws from, too; of the generator's own streams; of attributes
and variables that change after the start; of buffers that are handed out and filled anew.
"""

from __future__ import annotations

import libcst as cst

from trainflash.knobs.edits import imports
from trainflash.knobs.edits.batches.collating import batch_maker
from trainflash.knobs.edits.statements import above_in_module, decorating
from trainflash.knobs.edits.waits import apart, gone_through, left_behind, of_thread
from trainflash.knobs.effects import changes, harmless, purity
from trainflash.knobs.kinds import MadeAhead
from trainflash.knobs.project import Project
from trainflash.knobs.reading import callees
from trainflash.knobs.reading.expressions import given_to, refuse, short
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

        def end():
            over.set()
            thread.join(5)

        thread = <threading.Thread>(target=fill, daemon=True)
        thread.start()
        <atexit.register>(end)
        try:
            while True:
                batch, error = ready.get()
                if isinstance(error, StopIteration):
                    return
                if error is not None:
                    raise error
                yield batch
        finally:
            <atexit.unregister>(end)
            end()

    return batches


'''
NEEDS = (
    *(("atexit", "register"), ("atexit", "unregister"), ("functools", "wraps"), ("queue", "Queue"), ("queue", "Full")),
    *(("threading", "Event"), ("threading", "Thread")),
)
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
    inside = apart.reached(project, (file, function))
    for where, each in inside:
        _draws(project, where, each, inside)
    apart.apart(project, (file, function), inside)
    apart.fresh(project, file, function, inside)
    of_thread.nothing(project, (file, function), inside)
    left_behind.nothing(project, (file, function), inside)
    _goes_on(project, file, function, inside)
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
        library = module.split(".")[0] in ("torch", "numpy")
        layer = full.startswith("torch.nn.") and name[:1].isupper()  # its weights are drawn
        if module in GLOBAL or layer or (library and name in harmless.DRAWS) or method in IN_PLACE:
            stream = None if generator is None or module in GLOBAL else generator.value
        elif method and not library and (method in harmless.DRAWS or _is_stream(file, function, call.func.value)):  # type: ignore[attr-defined]
            stream = call.func.value  # type: ignore[attr-defined]
        else:
            continue
        if stream is None or not _owned(project, file, function, stream, inside):
            raise refuse(f"{file.location(call)}: `{short(file.text(call))}` draws from a random stream that training may draw from, too")


def _is_stream(file: PythonFile, function: cst.FunctionDef, node: cst.BaseExpression) -> bool:
    """Whether `node` is a random generator, whatever its method is called."""
    name, owner = dotted(node) or "", file.class_of(function)
    made = (
        [*given_to(function.body, name), *given_to(file.module if owner is None or "." not in name else owner.body, name)] if name else []
    )
    return any(isinstance(each, cst.Call) and _makes_stream(file, each) for each in made)


def _makes_stream(file: PythonFile, call: cst.Call) -> bool:
    base = call.func.value if isinstance(call.func, cst.Attribute) and isinstance(call.func.value, cst.Call) else call
    return (file.full_name(base.func) or "") in STREAMS


def _owned(project: Project, file: PythonFile, function: cst.FunctionDef, stream: cst.BaseExpression, inside: list[Function]) -> bool:
    """Whether the stream is one that the generator or its object makes, and that only `inside` draws from."""
    if isinstance(stream, cst.Call):
        return _makes_stream(file, stream)
    if isinstance(stream, cst.Name):
        made = given_to(function.body, stream.value)
        return bool(made) and all(isinstance(each, cst.Call) and _owned(project, file, function, each, inside) for each in made)
    owner = file.class_of(function)
    if owner is None or not isinstance(stream, cst.Attribute) or dotted(stream.value) != "self":
        return False
    made = given_to(owner.body, f"self.{stream.attr.value}")
    known = bool(made) and all(isinstance(each, cst.Call) and _owned(project, file, function, each, inside) for each in made)
    return known and apart.used_outside(project, stream.attr.value, inside) is None


# --- where it ends


def _goes_on(project: Project, file: PythonFile, function: cst.FunctionDef, inside: list[Function]) -> None:
    """Raises `UsageError` where a round that is left early goes on the next time from what the object holds, which is ahead then."""
    early = gone_through.cut_short(project, file, function) if _holds_place(inside) else None
    if early is not None:
        where, loop = early
        raise refuse(f"{where.location(loop)}: the loop over the batches is left early, and goes on with what would be ahead")


def _holds_place(inside: list[Function]) -> bool:
    """Whether making a batch changes its object: it counts, takes from an iterator, or draws from a stream of the object's."""
    for where, each in inside:
        owner = where.class_of(each)
        for node in descendants(each.body, (*ASSIGNS, cst.Call)):
            if isinstance(node, cst.Call) and (left_behind.taken_from(node) or "").startswith("self."):
                return True
            held = [node.func] if isinstance(node, cst.Call) else targets_of(node)
            for target in held:
                base = target.value if isinstance(target, (cst.Attribute, cst.Subscript)) and isinstance(node, cst.Call) else target
                stream = isinstance(node, cst.Call) and owner is not None and _is_stream(where, each, base)
                if changes.root(target) == "self" and (stream or not isinstance(node, cst.Call)):
                    return True
    return False
