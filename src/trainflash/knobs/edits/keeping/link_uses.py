"""What is done with a connection, and whether another request could follow on it: all of an answer is read, and nobody ends or mends it."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from trainflash.knobs.edits.keeping.opened import Opened
from trainflash.knobs.project import Project
from trainflash.knobs.reading import callees, callers
from trainflash.knobs.reading.expressions import is_name, refuse, short
from trainflash.knobs.reading.python_source import PythonFile, decorator_names, descendants, dotted, placed_parameters, targets_of

RECEIVES = ("recv", "recv_into")
OF_SOCKETS = (*RECEIVES, "send", "sendall", "sendmsg", "settimeout", "gettimeout", "setsockopt", "getsockname", "getpeername", "fileno")
OF_HTTP = ("request", "putrequest", "putheader", "endheaders", "send", "getresponse", "set_debuglevel")
ENDS = ("close", "connect")  # of the function that makes it, or that gives it back
OTHERS = (
    "KeyError",
    "IndexError",
    "AttributeError",
    "StopIteration",
    "KeyboardInterrupt",
    "ImportError",
    "ZeroDivisionError",
    "queue.Empty",
)
AGAIN = ("retry", "backoff", "on_exception", "tenacity")
Held = tuple[PythonFile, cst.FunctionDef, str]


def fit_for_more(project: Project, opening: Opened) -> None:
    """Raises `UsageError` where what is done with the connection may leave it unfit for the next request."""
    function = opening.file.function_around(opening.call)
    assert function is not None
    for file, each, name in (*_holders(project, (opening.file, function, opening.name)), *_of_callers(project, opening)):
        _known(file, each, name)
        _no_end_awaited(file, each, name)
        _all_is_read(file, each, name)


def nobody_mends(project: Project, file: PythonFile, node: cst.CSTNode, seen: set[int] | None = None) -> None:
    """Raises `UsageError` where what goes wrong with the connection is caught, here or by who calls: a new one may be meant to mend it."""
    seen = set() if seen is None else seen
    below = node
    for up in file.ancestors(node):
        if isinstance(up, (cst.Try, cst.TryStar)) and below is up.body and any(_catches(file, each) for each in up.handlers):
            raise refuse(f"{file.location(up)}: what goes wrong with the connection is caught, and a new one may be meant to mend it")
        if isinstance(up, cst.With) and any("suppress" in file.text(item) for item in up.items):
            raise refuse(f"{file.location(up)}: what goes wrong with the connection is not told, and a new one may be meant to mend it")
        if isinstance(up, cst.FunctionDef):
            again = next((each for each in decorator_names(file, up) if any(word in each.lower() for word in AGAIN)), None)
            if again is not None:
                raise refuse(f"{file.location(up)}: {again} may call {up.name.value} again, and a new connection may be meant to mend it")
            if id(up) not in seen:
                seen.add(id(up))
                for where, call in callers.sites(project, file, up):
                    nobody_mends(project, where, call, seen)
            return
        below = up


def _catches(file: PythonFile, handler: cst.ExceptHandler | cst.ExceptStarHandler) -> bool:
    """Whether a handler may catch what a connection raises, and the program goes on."""
    kinds = [handler.type] if handler.type is not None else []
    kinds = [each.value for each in kinds[0].elements] if kinds and isinstance(kinds[0], cst.Tuple) else kinds  # type: ignore[assignment]
    if kinds and all((file.full_name(each) or "") in OTHERS for each in kinds):
        return False
    last = handler.body.body[-1] if handler.body.body else None
    small = last.body[-1] if isinstance(last, cst.SimpleStatementLine) else last
    leaves = isinstance(small, cst.Expr) and isinstance(small.value, cst.Call) and file.full_name(small.value.func) in ("sys.exit", "exit")
    return not (isinstance(small, cst.Raise) or leaves)


def _holders(project: Project, start: Held) -> Iterator[Held]:
    """Functions that hold the connection, by what they call it: the first one, and those of the program that it is handed to."""
    todo, seen = [start], set()
    while todo:
        file, function, name = todo.pop()
        if (id(function), name) in seen:
            continue
        seen.add((id(function), name))
        yield file, function, name
        for call in descendants(function.body, cst.Call):
            places = [number for number, arg in enumerate(call.args) if dotted(arg.value) == name]  # type: ignore[attr-defined]
            for where, each in callees.meant(project, file, call) if places else ():  # type: ignore[arg-type]
                params = placed_parameters(each)
                behind = params[1:] if where.class_of(each) is not None and params[:1] else params
                for number in places:
                    word = call.args[number].keyword  # type: ignore[attr-defined]
                    taken = word.value if word is not None else behind[number].name.value if number < len(behind) else None
                    todo += [(where, each, taken)] if taken is not None else []


def _of_callers(project: Project, opening: Opened) -> Iterator[Held]:
    """Who gets the connection by `with f() as name`, where the function yields it."""
    file, function = opening.file, opening.file.function_around(opening.call)
    yields = [each for each in descendants(function.body, cst.Yield) if dotted(each.value) == opening.name]  # type: ignore[union-attr,arg-type,attr-defined]
    for where, call in callers.sites(project, file, function) if yields and function is not None else ():
        item, around = where.parent(call), where.function_around(call)
        if isinstance(item, cst.WithItem) and item.asname is not None and isinstance(item.asname.name, cst.Name) and around is not None:
            yield from _holders(project, (where, around, item.asname.name.value))


def _known(file: PythonFile, function: cst.FunctionDef, name: str) -> None:
    """Raises `UsageError` where more is asked of the connection than to send and to receive."""
    for node in descendants(function.body, cst.Attribute):
        asked = node.attr.value if dotted(node.value) == name else None  # type: ignore[attr-defined]
        if asked is not None and asked not in (*OF_SOCKETS, *OF_HTTP, *ENDS):
            raise refuse(f"{file.location(node)}: `{file.text(node)}` may end the connection, or keep a part of it")


def _no_end_awaited(file: PythonFile, function: cst.FunctionDef, name: str) -> None:
    """Raises `UsageError` where the connection is read until the other side ends it, which a kept one would wait for."""
    for call in descendants(function.body, cst.Call):
        received = dotted(call.func) in [f"{name}.{each}" for each in RECEIVES]  # type: ignore[attr-defined]
        if received and _until_the_end(file, call):  # type: ignore[arg-type]
            raise refuse(f"{file.location(call)}: what `{short(file.text(call))}` gives may tell when the other side ends the connection")
    for node in descendants(function.body, cst.Name):
        iterated = next((each for each in file.ancestors(node) if isinstance(each, cst.Call) and dotted(each.func) == "iter"), None)
        if node.value == name and iterated is not None:  # type: ignore[attr-defined]
            raise refuse(f"{file.location(node)}: `{short(file.text(iterated))}` may go on until the other side ends the connection")


def _until_the_end(file: PythonFile, call: cst.Call) -> bool:
    """Whether a loop goes on until nothing more is received; one that counts what it has ends by that."""
    up = next(each for each in file.ancestors(call) if isinstance(each, (cst.BaseStatement, cst.BaseSmallStatement, cst.Lambda)))
    loop = next(file.loops_around(call), None)
    if isinstance(up, cst.Lambda) or loop is None:
        return isinstance(up, cst.Lambda)
    told = {dotted(target) for target in targets_of(up)}
    if file.inside(call, loop.test if isinstance(loop, cst.While) else loop.iter):
        return True
    if isinstance(loop, cst.For) or dotted(loop.test) != "True":
        return isinstance(loop, cst.While) and bool(told & _named(loop.test))
    asked = [each for each in descendants(loop.body, cst.If) if told & _named(each.test)]  # type: ignore[attr-defined]
    return any(True for each in asked for _ in descendants(each.body, (cst.Break, cst.Return)))  # type: ignore[attr-defined]


def _named(node: cst.CSTNode) -> set[str | None]:
    return {each.value for each in descendants(node, cst.Name)}  # type: ignore[attr-defined]


def _all_is_read(file: PythonFile, function: cst.FunctionDef, name: str) -> None:
    """Raises `UsageError` where a part of an answer may be left on the connection, which the next request would read as its own."""
    uses = [each for each in descendants(function.body, cst.Name) if each.value == name and is_name(file, each)]  # type: ignore[attr-defined,arg-type]
    answers = {
        dotted(target)
        for call in descendants(function.body, cst.Call)
        if dotted(call.func) == f"{name}.getresponse"  # type: ignore[attr-defined]
        for target in _taken(file, call)
    }
    uses += [each for each in descendants(function.body, cst.Name) if each.value in answers and is_name(file, each)]  # type: ignore[attr-defined,arg-type]
    last = max((file.span(each)[1] for each in uses if not _ended(file, each)), default=0)
    first = min((file.span(each)[0] for each in uses), default=0)
    for node in descendants(function.body, (cst.Return, cst.Continue)):
        if first < file.span(node)[0] and file.span(node)[1] < last:
            raise refuse(f"{file.location(node)}: what stands behind `{file.text(node)}` of the answer would not be read")
    for answer in answers:
        read = [call for call in descendants(function.body, cst.Call) if _reads_all(call, answer)]  # type: ignore[arg-type]
        if not any(_always(file, each, function) for each in read):
            raise refuse(f"{file.location(function)}: `{answer}` is not always read to its end, and the next request would be refused")


def _ended(file: PythonFile, node: cst.CSTNode) -> bool:
    up = file.parent(node)
    return isinstance(up, cst.Attribute) and up.attr.value == "close"


def _taken(file: PythonFile, call: cst.CSTNode) -> list[cst.BaseExpression]:
    """The names that an answer is given; raises `UsageError` where it has none and is not read at once."""
    up = file.parent(call)
    if isinstance(up, (cst.Assign, cst.NamedExpr)):
        return targets_of(up)
    if isinstance(up, cst.WithItem) and up.asname is not None:
        return [up.asname.name]
    around = file.parent(up) if up is not None else None
    at_once = isinstance(up, cst.Attribute) and up.attr.value == "read" and isinstance(around, cst.Call) and not around.args
    handed = isinstance(up, cst.Arg) and isinstance(around, cst.Call) and file.full_name(around.func) == "json.load"
    if not (at_once or handed):
        raise refuse(f"{file.location(call)}: the answer is not read to its end where it is taken")
    return []


def _reads_all(call: cst.Call, answer: str | None) -> bool:
    """Whether a call reads all of an answer: its `read()`, or a reader of JSON that is handed it."""
    if dotted(call.func) == f"{answer}.read":
        return not call.args
    return dotted(call.func) in ("json.load", "load") and any(dotted(arg.value) == answer for arg in call.args)


def _always(file: PythonFile, node: cst.CSTNode, function: cst.FunctionDef) -> bool:
    """Whether `node` runs whenever its function does: no condition or loop of the function stands around it."""
    below = node
    for up in file.ancestors(node):
        if up is function:
            return True
        maybe = (cst.If, cst.For, cst.While, cst.Try, cst.IfExp, cst.BooleanOperation, cst.Lambda, cst.BaseComp)
        if isinstance(up, maybe) and below is not getattr(up, "test", None):
            return False
        below = up
    return True
