"""Reads that wait one after the other, made by several threads: the results stay in order, and the waiting passes at the same time.

What is read must not depend on which read comes first: nothing is drawn, kept or moved along, as the position of a file that stays open is.
"""

from __future__ import annotations

import builtins
from collections.abc import Iterator

import libcst as cst

from trainflash.errors import UsageError
from trainflash.knobs.edits import imports
from trainflash.knobs.edits.statements import long_text, under
from trainflash.knobs.effects import changes, given, purity
from trainflash.knobs.kinds import ConcurrentReads
from trainflash.knobs.project import Project
from trainflash.knobs.reading import callees, callers
from trainflash.knobs.reading.expressions import given_to, is_name, refuse, short
from trainflash.knobs.reading.python_source import PythonFile, clauses, descendants, dotted
from trainflash.knobs.scene import Scene, Target
from trainflash.knobs.splices import Splice

DEEPEST = 4  # own: functions between a read and the loop that asks for many
TURNS = (cst.ListComp, cst.GeneratorExp, cst.Call)
POOLS = ("readers", "reading_threads", "pool_of_readers")
# Methods of paths, bytes, text and dictionaries that move nothing along; of anything else that outlives a call they may.
STATELESS = """
read_bytes read_text exists stat joinpath with_suffix with_name resolve glob format endswith startswith split rsplit strip replace decode
encode join get items keys values index count lower upper reshape astype copy
"""
PLAIN = frozenset(STATELESS.split())


def concurrent_reads(edit: ConcurrentReads, scene: Scene) -> tuple[Target, ...]:
    """The comprehension, or the `map`, that reads at the line or in what calls its function. Raises `UsageError` without one."""
    file, place = scene.source("reads")
    reasons: list[UsageError] = []
    for where, node in _turns(scene.project, file, place.line):
        try:
            function, over = _asked(where, node)
            _reads_apart(scene.project, where, node)
            return (_target(where, node, function, over),)
        except UsageError as bad:
            reasons.append(bad)
    raise reasons[0] if reasons else refuse(f"{place}: no comprehension and no `map` reads one thing after another there")


def _turns(project: Project, file: PythonFile, line: int) -> Iterator[tuple[PythonFile, cst.CSTNode]]:
    """What goes over many things around the line, or around a call of its function, and so on outwards."""
    calls = [(file, call) for call in file.calls if file.lines_of(call)[0] <= line <= file.lines_of(call)[1]]
    seen: set[int] = set()
    for _ in range(DEEPEST):
        further: list[tuple[PythonFile, cst.Call]] = []
        for where, call in calls:
            yield from ((where, up) for up in (call, *where.ancestors(call)) if isinstance(up, TURNS) and not _called(up))
            function = where.function_around(call)
            if function is not None and id(function) not in seen:
                seen.add(id(function))
                further += callers.sites(project, where, function)
                further += [(other, each) for other in project.parsed("map") for each in other.calls if _maps(other, each, function)]
        calls = further


def _called(node: cst.CSTNode) -> bool:
    return isinstance(node, cst.Call) and dotted(node.func) != "map"


def _maps(file: PythonFile, call: cst.Call, function: cst.FunctionDef) -> bool:
    named = dotted(call.func) == "map" and len(call.args) > 1
    return named and (dotted(call.args[0].value) or "").split(".")[-1] == function.name.value


def _asked(file: PythonFile, node: cst.CSTNode) -> tuple[str, str]:
    """Source of the function of one thing, and of what it is asked for."""
    here = file.location(node)
    if isinstance(node, cst.Call):
        if dotted(node.func) != "map" or len(node.args) < 2 or any(arg.keyword is not None or arg.star for arg in node.args):
            raise refuse(f"{here}: `{short(file.text(node))}` reads no one thing after another")
        return file.text(node.args[0].value), ", ".join(file.text(arg.value) for arg in node.args[1:])
    found = clauses(node)
    target, one = found[0].target, node.elt  # type: ignore[attr-defined]
    if len(found) != 1 or found[0].ifs or found[0].asynchronous is not None or not isinstance(target, cst.Name):
        raise refuse(f"{here}: `{short(file.text(node))}` is more than one function of one thing after another")
    if isinstance(node, cst.GeneratorExp) and not isinstance(file.parent(node), cst.Arg):
        raise refuse(f"{here}: `{short(file.text(node))}` is asked for one thing after another later")
    over = file.text(found[0].iter)
    function = (dotted(one.func) or "") if isinstance(one, cst.Call) and len(one.args) == 1 and not one.args[0].star else ""
    given_to_it = dotted(one.args[0].value) if function and one.args[0].keyword is None else None
    if given_to_it == target.value and function.split(".")[0] != target.value:
        return file.text(one.func), over
    if any(True for _ in descendants(one, (cst.Await, cst.Yield, cst.NamedExpr))):
        raise refuse(f"{here}: `{short(file.text(one))}` is no function of its own")
    return f"lambda {target.value}: {file.text(one)}", over


def _reads_apart(project: Project, file: PythonFile, node: cst.CSTNode) -> None:
    """Raises `UsageError` where one read may depend on another one, or on the thread that it is made in."""
    if isinstance(node, cst.Call):
        name = (dotted(node.args[0].value) or "").split(".")[-1]
        starts = [(where, each) for where in project.parsed(name) for each in where.functions if each.name.value == name] if name else []
        if len(starts) != 1:
            raise refuse(f"{file.location(node)}: which function `{short(file.text(node.args[0].value))}` is cannot be told")
    else:
        _nothing_shared(project, file, node.elt, given.bound(node))  # type: ignore[attr-defined]
        starts = [each for call in descendants(node.elt, cst.Call) for each in callees.meant(project, file, call)]  # type: ignore[attr-defined,arg-type]
    for where, function in callees.reached(project, starts):
        if purity.first_draw(project, where, function, set()) is not None:
            raise refuse(f"{where.location(function)}: {function.name.value} draws random numbers, whose order threads would change")
        own = given.bound(function.body) | {param.name.value for param in descendants(function.params, cst.Param)}  # type: ignore[attr-defined]
        outside = {each.value for each in descendants(function.body, cst.Name) if is_name(where, each)} - (own - {"self"})  # type: ignore[attr-defined,arg-type]
        kept = changes.changed(project, where, function.body, outside | {"self"})
        if kept is not None:
            raise refuse(f"{where.location(kept)}: `{short(where.text(kept))}` changes what other reads see")
        if any(True for _ in descendants(function.body, (cst.Yield, cst.Await, cst.Global, cst.Nonlocal))):
            raise refuse(f"{where.location(function)}: {function.name.value} is no plain function")
        _nothing_shared(project, where, function.body, own - {"self"})


def _nothing_shared(project: Project, file: PythonFile, part: cst.CSTNode, own: set[str]) -> None:
    """Raises `UsageError` where something is called of which the source does not show what it does, or what it moves along.

    Known are libraries, functions of the program (which are looked into), and what a call made for itself.
    """
    for call in descendants(part, cst.Call):
        base = call.func.value if isinstance(call.func, cst.Attribute) else None  # type: ignore[attr-defined]
        name = (dotted(base) if base is not None else dotted(call.func)) or ""  # type: ignore[attr-defined]
        root = name.split(".")[0]
        if root in file.imported or any(True for _ in callees.meant(project, file, call)):  # type: ignore[arg-type]
            continue
        if base is None:
            known = hasattr(builtins, root) or _is_class(project, root)
        else:
            made = root not in ("", "self") and root in own and "." not in name and not _alias(file, part, root)
            known = not root or made or call.func.attr.value in PLAIN  # type: ignore[attr-defined]
        if not known:
            raise refuse(f"{file.location(call)}: `{short(file.text(call))}` may not be asked by several threads at once")


def _is_class(project: Project, name: str) -> bool:
    return any(isinstance(node, cst.ClassDef) and node.name.value == name for where in project.parsed(name) for node in where.nodes)


def _alias(file: PythonFile, part: cst.CSTNode, name: str) -> bool:
    """Whether a local name may be another one of something that outlives the call, as `f` of `f = self.file`."""
    return any(isinstance(value, (cst.Name, cst.Attribute, cst.Subscript)) for value in given_to(part, name))


def _target(file: PythonFile, node: cst.CSTNode, function: str, over: str) -> Target:
    here, line = file.location(node), file.statement(node)
    if not isinstance(line, cst.SimpleStatementLine) or len(line.body) != 1:
        raise refuse(f"{here}: the reads do not stand in a plain statement of their own")
    if long_text(file, line) is not None:
        raise refuse(f"{here}: a text of several lines would be moved")
    taken = {each.value for each in file.nodes if isinstance(each, cst.Name)}
    pool = next((name for name in POOLS if name not in taken), None)
    if pool is None:
        raise refuse(f"{here}: the names {', '.join(POOLS)} are taken")
    spelled, needed = imports.reach(file, "concurrent.futures", "ThreadPoolExecutor")
    text = f"{pool}.map({function}, {over})"
    text = f"list({text})" if isinstance(node, cst.ListComp) else text
    first, last = file.span(line.body[0])[0], file.span(line)[1]

    def write(value: int) -> tuple[Splice, ...]:
        block = under(file, f"with {spelled}({value}) as {pool}:", first, last, file.indent(line))
        return (*needed, *(each for each in block if not file.span(node)[0] < each.start < file.span(node)[1]), _read)

    _read = Splice(file.path, *file.span(node), text)
    return Target(here, None, write, f"`{short(file.text(node))}` at {here}")
