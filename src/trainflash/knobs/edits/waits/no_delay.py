"""TCP connections of the program that send small parts at once: TCP_NODELAY behind each place where one is made.

Without it a small part waits until the other side has acknowledged the one before (RFC 896), and the other side may take its time to do so
(RFC 1122, 4.2.3.2; 40 ms on Linux): two small writes for one message cost that for each message. What is sent stays the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from trainflash.knobs.edits import imports
from trainflash.knobs.edits.statements import behind
from trainflash.knobs.kinds import NoDelay
from trainflash.knobs.project import Project
from trainflash.knobs.reading import callees
from trainflash.knobs.reading.expressions import argument_node, refuse
from trainflash.knobs.reading.python_source import PythonFile, base_names, descendants, dotted, is_docstring, own_method
from trainflash.knobs.scene import Scene, Target, at_all
from trainflash.knobs.splices import Splice

OPTION = "TCP_NODELAY"
OTHERS = ("AF_UNIX", "socketpair", "UnixStreamServer", "UnixDatagramServer", "AF_VSOCK", "AF_BLUETOOTH")  # which have no such option
FAMILIES = ("socket.AF_INET", "socket.AF_INET6")
STREAM = "socket.SOCK_STREAM"
Place = tuple[cst.CSTNode, tuple[Splice, ...]]
BUFFERED = ("makefile", "StreamRequestHandler")  # which send when a buffer is full or flushed
SENDS = ("send", "sendall", "sendmsg")
LISTENERS = ("socket.create_server",)
SERVES = ("bind", "listen")  # such a socket sends nothing; those that it accepts do


def no_delay(edit: NoDelay, scene: Scene) -> tuple[Target, ...]:
    """All places where the program makes a TCP connection, as one target. Raises `UsageError` where none shows, or the option is set."""
    project = scene.project
    for word in (OPTION, "disable_nagle_algorithm", *OTHERS):
        for file in project.parsed(word):
            node = next((each for each in file.nodes if isinstance(each, cst.Name) and each.value == word), None)
            if node is not None:
                raise refuse(f"{file.location(node)}: {word} stands here, so that not every connection is meant")
    if not _in_parts(project):
        raise refuse("no function sends a message in more than one part")
    files = list(project.parsed("socket"))
    listening = frozenset(name for file in files for name in _listening(file))
    handled = not any(True for _ in project.parsed("UDPServer"))
    places = [
        (file.location(node), splices)
        for file in files
        for node, splices in (*_made(file), *_accepted(file, listening), *_handled(file, handled))
    ]
    if not places:
        raise refuse("the program makes no TCP connection of its own")
    return (at_all(places, f"connections made at {places[0][0]}", "sent at once"),)


def _in_parts(project: Project) -> bool:
    """Whether a function sends twice or in a loop, by a socket's method or a function of the program that does so."""
    senders = set(SENDS)
    for _ in range(2):
        for file in project.parsed():
            for function in file.functions:
                sent = [call for call in descendants(function.body, cst.Call) if callees.called_name(call) in senders]  # type: ignore[arg-type]
                if len(sent) > 1 or any(file.inside(loop, function) for call in sent for loop in file.loops_around(call)):
                    return True
                senders |= {function.name.value for _ in sent}
    return any(True for word in BUFFERED for _ in project.parsed(word))


def _made(file: PythonFile) -> Iterator[Place]:
    """Behind `name = socket.create_connection(…)` or `socket.socket(…)`, and in `with … as name:`."""
    for call in file.calls:
        if not _is_tcp(file, call):
            continue
        up = file.parent(call)
        if isinstance(up, cst.Assign) and len(up.targets) == 1:
            name = dotted(up.targets[0].target)
            if name is not None and not _serves(file, call, name):
                yield from _behind(file, call, name)
        elif isinstance(up, cst.WithItem) and up.asname is not None and isinstance(up.asname.name, cst.Name):
            name, block = up.asname.name.value, file.parent(up)
            if not _serves(file, call, name) and isinstance(block, cst.With) and isinstance(block.body, cst.IndentedBlock):
                yield call, _begins(file, block.body, name)


def _is_tcp(file: PythonFile, call: cst.Call) -> bool:
    full = file.full_name(call.func)
    if full == "socket.create_connection":
        return True
    if full != "socket.socket" or any(arg.star for arg in call.args):
        return False
    family, kind = argument_node(file, call, "family", 0), argument_node(file, call, "type", 1)
    inet = family is None or file.full_name(family) in FAMILIES
    return inet and (kind is None or file.full_name(kind) == STREAM) and argument_node(file, call, "fileno", 3) is None


def _serves(file: PythonFile, made: cst.Call, name: str) -> bool:
    within = (None if "." in name else file.function_around(made)) or file.module
    return any(dotted(call.func) in [f"{name}.{method}" for method in SERVES] for call in descendants(within, cst.Call))  # type: ignore[attr-defined]


def _listening(file: PythonFile) -> Iterator[str]:
    """The last names of what listens for connections: what `listen` is called of, and what is given a listening socket."""
    for call in file.calls:
        listens = isinstance(call.func, cst.Attribute) and call.func.attr.value == "listen"
        made = file.full_name(call.func) in LISTENERS
        up = file.parent(call)
        named: list[cst.CSTNode] = [call.func.value] if listens else []  # type: ignore[union-attr]
        if made and isinstance(up, cst.Assign):
            named += [each.target for each in up.targets]
        elif made and isinstance(up, cst.WithItem) and up.asname is not None:
            named.append(up.asname.name)
        yield from ((dotted(each) or "").rpartition(".")[2] for each in named if dotted(each) is not None)


def _accepted(file: PythonFile, listening: frozenset[str]) -> Iterator[Place]:
    """Behind `name, address = server.accept()`, where a socket of the program listens by that name."""
    for call in file.calls:
        up = file.parent(call)
        if not isinstance(call.func, cst.Attribute) or call.func.attr.value != "accept" or call.args or not isinstance(up, cst.Assign):
            continue
        if (dotted(call.func.value) or "").rpartition(".")[2] not in listening:
            continue
        target = up.targets[0].target
        name = dotted(target.elements[0].value) if isinstance(target, cst.Tuple) and len(target.elements) == 2 else None
        if name is not None and len(up.targets) == 1:
            yield from _behind(file, call, name)


def _handled(file: PythonFile, of_connections: bool) -> Iterator[Place]:
    """In classes whose objects answer a `socketserver`; `of_connections`: no server of the program answers datagrams."""
    for owner in (node for node in file.nodes if isinstance(node, cst.ClassDef)):
        bases = base_names(owner)
        if not isinstance(owner.body, cst.IndentedBlock):
            continue
        if "StreamRequestHandler" in bases:
            yield owner.name, (_first(file, owner.body, "disable_nagle_algorithm = True"),)
        elif "BaseRequestHandler" in bases and of_connections:
            handle = own_method(owner, "handle")
            if handle is not None and isinstance(handle.body, cst.IndentedBlock):
                yield owner.name, _begins(file, handle.body, "self.request")


def _setting(file: PythonFile, name: str) -> tuple[str, tuple[Splice, ...]]:
    level, first = imports.reach(file, "socket", "IPPROTO_TCP")
    option, second = imports.reach(file, "socket", OPTION)
    return f"{name}.setsockopt({level}, {option}, 1)", (*first, *second)


def _behind(file: PythonFile, node: cst.CSTNode, name: str) -> Iterator[Place]:
    """The option in a line of its own behind the statement of `node`, where that statement has its line to itself."""
    line = file.statement(node)
    if line is None or len(line.body) != 1 or not isinstance(file.parent(line), (cst.IndentedBlock, cst.Module)):
        return
    text, needed = _setting(file, name)
    yield node, (*needed, behind(file, line.body[0], file.indent(line), text))


def _begins(file: PythonFile, block: cst.IndentedBlock, name: str) -> tuple[Splice, ...]:
    text, needed = _setting(file, name)
    return (*needed, _first(file, block, text))


def _first(file: PythonFile, block: cst.IndentedBlock, text: str) -> Splice:
    """`text` as the first statement of `block`, behind its docstring."""
    first = block.body[0]
    if is_docstring(first) and len(block.body) == 1:
        return behind(file, first, file.indent(first), text)
    first = block.body[1] if is_docstring(first) else first
    start = file.span(first)[0]
    return Splice(file.path, start, start, f"{text}{file.newline}{file.indent(first)}")
