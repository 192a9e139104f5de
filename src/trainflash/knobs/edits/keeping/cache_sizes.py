"""Whether a cache of the program's may keep more: what it keeps must stay right, as if the function were asked again."""

from __future__ import annotations

import libcst as cst

from trainflash.knobs.effects import changes, purity, written_files
from trainflash.knobs.project import Project
from trainflash.knobs.reading import callees
from trainflash.knobs.reading.expressions import refuse, short
from trainflash.knobs.reading.python_source import PythonFile, dotted
from trainflash.knobs.scene import Target

LOOKS = ("cache_info", "cache_parameters")


def may_keep_more(project: Project, file: PythonFile, call: cst.Call) -> None:
    """Raises `UsageError` where what the cache `call` keeps would be another result than the function gives, or somebody counts."""
    up = file.parent(call)
    wrapped = up.args[0].value if isinstance(up, cst.Call) and up.func is call and len(up.args) == 1 else None
    function = file.parent(up) if isinstance(up, cst.Decorator) else None
    found = [(file, function)] if isinstance(function, cst.FunctionDef) else []
    if wrapped is not None:
        found = list(callees.defined(project, (dotted(wrapped) or "?").split(".")[-1]))
    here = file.location(call)
    for where, each in found:
        reason = purity.lasting_obstacle(project, where, each) or changes.lasting(project, where, each)
        if reason is not None:
            raise refuse(f"{here}: {each.name.value} keeps its results for longer then, but {reason}")
        again = written_files.again(project, callees.reached(project, [(where, each)]))
        if again is not None:
            told = f"{each.name.value} reads what `{short(again[0].text(again[1]))}` writes at {again[0].location(again[1])}"
            raise refuse(f"{here}: {told}, and would keep what was there before")
    for word in LOOKS:
        for where in project.parsed(word):
            for node in where.nodes:
                if isinstance(node, cst.Attribute) and node.attr.value == word:
                    raise refuse(f"{where.location(node)}: `{where.text(node)}` shows how often the cache was asked in vain")


def is_on(target: Target) -> None:
    """Raises `UsageError` where the cache was switched off on purpose."""
    if isinstance(target.current, int) and target.current <= 0:
        raise refuse(f"{target.where}: the cache keeps nothing, which somebody chose")
