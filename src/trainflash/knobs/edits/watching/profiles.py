"""A profiler whose recording the program only shows or writes: it goes, and with it the statements that show.

A statement goes where it calls nothing but the profiler's own methods, or prints or logs nothing but what the profiler recorded. So do
`pstats.Stats` of it under a name of their own, and the `io.StringIO` that they are written to.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import libcst as cst

from trainflash.knobs.edits import imports
from trainflash.knobs.edits.statements import without
from trainflash.knobs.edits.which_call import the_call
from trainflash.knobs.kinds import ShownProfile
from trainflash.knobs.project import Project
from trainflash.knobs.reading.expressions import UNKNOWN, given_to, is_name, literal, refuse
from trainflash.knobs.reading.python_source import PythonFile, descendants, dotted, has_splat, keyword, targets_of
from trainflash.knobs.scene import Scene, Target
from trainflash.knobs.splices import Splice

WRITES = "torch.profiler.tensorboard_trace_handler"
STATISTICS = "pstats.Stats"
STREAM = "io.StringIO"
PLAIN = ("str", "os.path.join", "pathlib.Path", STATISTICS)  # what may be called for an argument
LOGS = ("info", "debug", "warning")
FORM = ("sep", "end", "file", "flush")  # how `print` writes, not what
STARTS = ("start", "enable")
RUNS = ("step", "start", "stop", "enable", "disable")
METHODS = {
    *RUNS,
    *("add_metadata", "add_metadata_json", "preset_metadata_json"),
    *(
        "create_stats",
        "dump_stats",
        "print_stats",
        "getstats",
        "sort_stats",
        "reverse_order",
        "strip_dirs",
        "print_callers",
        "print_callees",
    ),
    *("key_averages", "table", "total_average", "events", "export_chrome_trace", "export_stacks", "export_memory_timeline"),
    *("getvalue",),
}
SCHEDULE = "torch.profiler.schedule"
HANDLER = "on_trace_ready"


def shown_profile(edit: ShownProfile, scene: Scene) -> tuple[Target, ...]:
    """`contextlib.nullcontext()` in place of the profiler of a `with`; one that has a name of its own goes with all that speaks of it.

    Raises `UsageError` where its recording is used in another way.
    """
    file, call = the_call(edit, scene)
    here = file.location(call)
    item = file.parent(call)
    bound = bound_to(item)
    if not isinstance(item, cst.WithItem) and bound is None:
        raise refuse(f"{here}: the profiler is neither that of a `with` block nor kept in one name")
    handler = keyword(call, HANDLER)
    written = handler is None or (isinstance(handler.value, cst.Call) and file.full_name(handler.value.func) == WRITES)
    if not written or has_splat(call, "**"):
        raise refuse(f"{here}: what `{file.text(handler or call)}` does with the recording is not known")
    shown = _shown(scene.project, file, call, bound) if bound is not None else []
    if isinstance(item, cst.WithItem):
        spelled, needed = imports.reach(file, "contextlib", "nullcontext")
        splices = (*needed, Splice(file.path, *file.span(call), f"{spelled}()"), *without(file, shown))
    else:
        splices = without(file, [item, *shown])  # type: ignore[list-item]
    more = f", and {len(shown)} statements that show what it saw" if shown else ""
    target = Target(here, None, lambda value: splices, f"`{file.text(call.func)}` at {here}{more}", "taken away")
    if not all(_only_calls(each, RUNS) for each in shown):
        target = replace(target, risk="cadence", because="what the profiler saw is not shown or written any more")
    return (target,)


def bound_to(node: cst.CSTNode | None) -> cst.BaseExpression | None:
    """What the profiler is called: behind `as`, or by an assignment to one name."""
    if isinstance(node, cst.WithItem):
        return node.asname.name if node.asname is not None else None
    plain = isinstance(node, cst.Assign) and len(node.targets) == 1
    return node.targets[0].target if plain and isinstance(node.targets[0].target, cst.Name) else None  # type: ignore[union-attr]


def _only_calls(small: cst.CSTNode | None, methods: tuple[str, ...]) -> bool:
    """Whether a statement is nothing but a call of one of `methods`."""
    told = small.value if isinstance(small, cst.Expr) else None
    return isinstance(told, cst.Call) and isinstance(told.func, cst.Attribute) and told.func.attr.value in methods


def _shown(project: Project, file: PythonFile, call: cst.Call, bound: cst.BaseExpression) -> list[cst.BaseSmallStatement]:
    """The statements that speak of the profiler, or of what is named after it.

    Raises `UsageError` for one that does more than show or write what it recorded, and where a condition decides whether it runs.
    """
    function = file.function_around(call)
    if not isinstance(bound, cst.Name) or any(True for _ in file.each(cst.Global)):
        raise refuse(f"{file.location(call)}: who reads what the profiler recorded cannot be told")
    if function is None and read_elsewhere(project, file, bound.value):
        raise refuse(f"{file.location(call)}: another file may read what {bound.value} recorded")
    recording = _named(file, function or file.module, bound.value)
    found: dict[int, cst.BaseSmallStatement] = {}
    for node in descendants(function or file.module, cst.Name):
        if node.value not in recording.names or node is bound or not is_name(file, node):  # type: ignore[attr-defined,arg-type]
            continue
        small = next((up for up in file.ancestors(node) if isinstance(up, (cst.BaseSmallStatement, cst.BaseCompoundStatement))), None)
        if not recording.shows(small):
            raise refuse(f"{file.location(node)}: what {node.value} recorded is used here, or more is done than to show it")  # type: ignore[attr-defined]
        if _only_calls(small, STARTS) and any(isinstance(up, cst.If) for up in file.ancestors(node)):
            raise refuse(f"{file.location(node)}: a condition decides whether {bound.value} runs")
        found[id(small)] = small  # type: ignore[assignment]
    return list(found.values())


def recordings_decide_nothing(project: Project) -> None:
    """Raises `UsageError` where what a profiler's handler collects decides how long the program runs, which fewer would change."""
    collected = {name for file, node in _handlers(project) for name in _collected(file, node)}
    for file in project.parsed():
        for node in file.nodes:
            if isinstance(node, (cst.While, cst.If)) and (isinstance(node, cst.While) or _leaves(file, node)):
                names = [each.value for each in descendants(node.test, cst.Name)]  # type: ignore[attr-defined]
                if read := collected & {*names}:
                    told = f"{min(read)} tells of the profiler's recordings, and decides here how long this goes on"
                    raise refuse(f"{file.location(node)}: {told}")


def _handlers(project: Project) -> list[tuple[PythonFile, cst.CSTNode]]:
    """Functions that profilers hand their recordings to, by their last names, and what stands in their place itself."""
    found: list[tuple[PythonFile, cst.CSTNode]] = []
    for file in project.parsed(HANDLER):
        for given in (arg.value for call in file.calls if (arg := keyword(call, HANDLER)) is not None):
            found.append((file, given))
            names = {each.value for each in descendants(given, cst.Name)}  # type: ignore[attr-defined]
            names |= {value.value for name in names for value in given_to(file.module, name) if isinstance(value, cst.Name)}
            found += [each for name in names for each in project.functions(name)]
            classes = [(where, node) for where in project.parsed("__call__") for node in where.each(cst.ClassDef)]
            found += [(where, node) for where, node in classes if node.name.value in names]  # type: ignore[attr-defined]
    return found


def _collected(file: PythonFile, node: cst.CSTNode) -> set[str]:
    """The last names of what a handler adds to, sets for others or calls a method of."""
    outer = {item.name.value for each in descendants(node, (cst.Global, cst.Nonlocal)) for item in each.names}  # type: ignore[attr-defined]
    found = set(outer)
    for each in descendants(node, (cst.Assign, cst.AugAssign, cst.Call)):
        held = [each.func.value] if isinstance(each, cst.Call) and isinstance(each.func, cst.Attribute) else targets_of(each)
        for target in held:
            whole = target.value if isinstance(target, cst.Subscript) else target
            if isinstance(each, cst.Call) or not isinstance(target, cst.Name):
                found.add((dotted(whole) or "").rpartition(".")[2])
    own = {param.name.value for param in descendants(node, cst.Param)} | set(file.imported)  # type: ignore[attr-defined]
    return found - own - {""}


def _leaves(file: PythonFile, guard: cst.If) -> bool:
    """Whether a condition ends a loop, a function or the program."""
    ends = any(True for _ in descendants(guard, (cst.Break, cst.Return, cst.Raise, cst.Continue)))
    return ends or any(file.full_name(call.func) in ("sys.exit", "exit", "quit") for call in descendants(guard, cst.Call))  # type: ignore[attr-defined]


def read_elsewhere(project: Project, file: PythonFile, name: str) -> bool:
    """Whether another file of the program may get the module's variable `name`."""
    others = [where for where in project.parsed(name) if where is not file]
    return any(
        name in (full.split(".")[-1] for full in where.imported.values())
        or any(node.attr.value == name and dotted(node.value) in where.imported for node in where.each(cst.Attribute))
        for where in others
    )


@dataclass(frozen=True)
class _Recording:
    """A profiler and its statistics by their names, and the texts that these are written to."""

    file: PythonFile
    profiler: str
    statistics: frozenset[str]
    streams: frozenset[str]

    @property
    def names(self) -> frozenset[str]:
        return frozenset({self.profiler}) | self.statistics | self.streams

    def shows(self, small: cst.CSTNode | None) -> bool:
        """Whether a statement does nothing but run the profiler, show or write what it recorded, or name it again."""
        if isinstance(small, cst.Assign):
            return self._names(small)
        told = small.value if isinstance(small, cst.Expr) else None
        if not isinstance(told, cst.Call):
            return False
        if self.holds(told):
            return self._harmless(told)
        prints = self.file.full_name(told.func) == "print"
        if not prints and not _logs(told):
            return False
        said = [arg for arg in told.args if not (prints and arg.keyword is not None and arg.keyword.value in FORM)]
        return self._harmless(told, told) and all(self._says(arg.value) for arg in said)

    def _names(self, small: cst.Assign) -> bool:
        target = bound_to(small)
        if not isinstance(target, cst.Name) or not isinstance(small.value, cst.Call):
            return False
        if target.value in self.streams:
            return self.file.full_name(small.value.func) == STREAM and not small.value.args
        return target.value in self.statistics and self.holds(small.value) and self._harmless(small.value)

    def _harmless(self, told: cst.Call, shown: cst.Call | None = None) -> bool:
        """Whether every call in `told` is the profiler's own, or a plain one for an argument."""
        if any(True for _ in descendants(told, (cst.NamedExpr, cst.Await, cst.Yield))):
            return False
        return all(
            each is shown
            or self.file.full_name(each.func) in PLAIN  # type: ignore[attr-defined]
            or (self.holds(each) and isinstance(each.func, cst.Attribute) and each.func.attr.value in METHODS)  # type: ignore[arg-type,attr-defined]
            for each in descendants(told, cst.Call)
        )

    def holds(self, node: cst.BaseExpression) -> bool:
        """Whether a chain of attributes and calls begins with the profiler, its statistics or the text they are written to."""
        while isinstance(node, (cst.Call, cst.Attribute, cst.Subscript)):
            if isinstance(node, cst.Call) and self.file.full_name(node.func) == STATISTICS:
                return bool(node.args) and dotted(node.args[0].value) in self.names
            node = node.func if isinstance(node, cst.Call) else node.value
        return isinstance(node, cst.Name) and node.value in self.names

    def _says(self, node: cst.BaseExpression) -> bool:
        """Whether an expression says nothing but what was recorded."""
        if isinstance(node, cst.FormattedString):
            return all(self._says(part.expression) for part in node.parts if isinstance(part, cst.FormattedStringExpression))
        if isinstance(node, (cst.BinaryOperation, cst.ConcatenatedString)):
            return self._says(node.left) and self._says(node.right)
        if isinstance(node, cst.Call) and self.file.full_name(node.func) == "str":
            return all(self._says(arg.value) for arg in node.args)
        return literal(node) is not UNKNOWN or self.holds(node)


def _named(file: PythonFile, owner: cst.CSTNode, profiler: str) -> _Recording:
    """The profiler with the names that `owner` gives to its statistics, and those of the texts that they are written to."""
    made = [call for call in descendants(owner, cst.Call) if _of_profiler(file, call, profiler)]
    streams = [given.value.value for call in made if (given := keyword(call, "stream")) is not None and isinstance(given.value, cst.Name)]  # type: ignore[arg-type]
    targets = [(bound_to(assign), _first(assign.value)) for assign in descendants(owner, cst.Assign)]  # type: ignore[attr-defined]
    statistics = [target.value for target, first in targets if isinstance(target, cst.Name) and first in made]
    return _Recording(file, profiler, frozenset(statistics), frozenset(streams))


def _of_profiler(file: PythonFile, call: cst.CSTNode, profiler: str) -> bool:
    """Whether a call is `pstats.Stats(profiler, …)`."""
    assert isinstance(call, cst.Call)
    return file.full_name(call.func) == STATISTICS and bool(call.args) and dotted(call.args[0].value) == profiler


def _logs(told: cst.Call) -> bool:
    """Whether a call is one of a logger's, as its name says: `logger.info(…)`, `logging.debug(…)`."""
    named = isinstance(told.func, cst.Attribute) and told.func.attr.value in LOGS
    return named and "log" in (dotted(told.func.value) or "").lower()  # type: ignore[union-attr]


def _first(node: cst.BaseExpression) -> cst.BaseExpression:
    """The first call of a chain such as `pstats.Stats(found).sort_stats("time").print_stats()`."""
    while isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute) and isinstance(node.func.value, cst.Call):
        node = node.func.value
    return node
