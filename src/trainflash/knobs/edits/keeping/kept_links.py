"""A connection that is made again for each request: made once in each thread of each process, and kept open.

What makes it is a library's function, or one of the program that gives out what such a function made. Whether the other side serves more
than one request on a connection shows when it is tried; where the program catches what goes wrong with one, it counts on a new one.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from trainflash.errors import UsageError
from trainflash.knobs.edits import imports
from trainflash.knobs.edits.keeping.link_uses import fit_for_more, nobody_mends
from trainflash.knobs.edits.keeping.opened import Opened, opened
from trainflash.knobs.edits.statements import above_in_module
from trainflash.knobs.edits.which_call import near
from trainflash.knobs.kinds import KeptLink
from trainflash.knobs.project import Project
from trainflash.knobs.reading import callees
from trainflash.knobs.reading.expressions import free_name, given_to, refuse
from trainflash.knobs.reading.python_source import PythonFile, descendants, has_splat
from trainflash.knobs.scene import Scene, Target

WHOLE = ("socket.create_connection", "http.client.HTTPConnection", "http.client.HTTPSConnection")  # give a connection by one call
MAKES = (*WHOLE, "socket.socket")
NAME, HELD = "linked", "LINKS"
HELPER = '''\
{held} = {{}}  # one connection for each process and thread


def {name}(make, *args, **options):
    """The connection that `make` made, which stays open."""
    given = (tuple(each) if isinstance(each, list) else each for each in args)
    key = ({getpid}(), {get_ident}(), make, *given, *sorted(options.items()))
    if key not in {held}:
        {held}[key] = make(*args, **options)
    return {held}[key]


'''


def kept_link(edit: KeptLink, scene: Scene) -> tuple[Target, ...]:
    """The connection at the finding's line, or near it, or else the only one of the program. Raises `UsageError` without one."""
    project = scene.project

    def links(file: PythonFile) -> Iterator[tuple[cst.Call, Opened]]:
        return ((each.call, each) for each in opened(file, lambda call: _connects(project, file, call), frozenset({"close"})))

    opening = _chosen(scene, links)
    file, call = opening.file, opening.call
    here = file.location(call)
    if has_splat(call, "*") or has_splat(call, "**"):
        raise refuse(f"{here}: what `{file.text(call)}` is given cannot be told")
    nobody_mends(project, file, call)
    fit_for_more(project, opening)
    name, held = free_name(file, call, NAME, f"{NAME}_once"), free_name(file, call, HELD)
    getpid, first = imports.reach(file, "os", "getpid")
    get_ident, second = imports.reach(file, "threading", "get_ident")
    text = HELPER.format(name=name, held=held, getpid=getpid, get_ident=get_ident)
    given = ", ".join([file.text(call.func), *(file.text(arg).rstrip(", ") for arg in call.args)])
    splices = tuple(dict.fromkeys((*first, *second, *opening.kept(f"{name}({given})"), above_in_module(file, call, text))))
    return (Target(here, None, lambda value: splices, f"`{file.text(call)}` at {here}", "kept open"),)


def _chosen(scene: Scene, links) -> Opened:
    """What waits for batches may lie anywhere below what makes the connection."""
    file, place = scene.source("waits")
    try:
        return near(scene.project, file, place, links, "connection is made and ended again")
    except UsageError as bad:
        waits = scene.at is None and scene.finding is not None and scene.finding.phase == "Data"
        found = [each for where in scene.project.parsed() for _, each in links(where)] if waits else []
        if len(found) != 1:
            raise bad
        return found[0]


def _connects(project: Project, file: PythonFile, call: cst.Call) -> bool:
    """Whether a call gives a connection: a library's, or one that a function of the program makes and returns."""
    if file.full_name(call.func) in WHOLE:
        return True
    meant = list(callees.meant(project, file, call))
    return len(meant) == 1 and _gives_a_connection(*meant[0])


def _gives_a_connection(file: PythonFile, function: cst.FunctionDef) -> bool:
    returned = [each.value for each in descendants(function.body, cst.Return)]  # type: ignore[attr-defined]
    return bool(returned) and all(_made(file, function, each) for each in returned)


def _made(file: PythonFile, function: cst.FunctionDef, node: cst.BaseExpression | None) -> bool:
    if isinstance(node, cst.Name):
        values = given_to(function, node.value)
        node = values[0] if len(values) == 1 else None
    return isinstance(node, cst.Call) and file.full_name(node.func) in MAKES
