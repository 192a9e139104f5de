"""What the program shows of the units that FullyShardedDataParallel gathers: an option about gathers needs several, and all of them.

Units are what `auto_wrap_policy` makes, which all get the options of the call, or what the program wraps by hand, each with its own:
https://docs.pytorch.org/docs/stable/fsdp.html. `limit_all_gathers` has to be the same for all units of a network, which torch checks.
"""

from __future__ import annotations

import libcst as cst

from trainflash.errors import UsageError
from trainflash.knobs.edits.ranks import turns_of_parts
from trainflash.knobs.project import Project
from trainflash.knobs.reading import callers
from trainflash.knobs.reading.expressions import refuse, short
from trainflash.knobs.reading.python_source import PythonFile, clauses, dotted, keyword, positional
from trainflash.knobs.reading.sources import Resolver

WRAPPERS = (
    "torch.distributed.fsdp.FullyShardedDataParallel",
    "torch.distributed.fsdp.fully_sharded_data_parallel.FullyShardedDataParallel",
)
STRATEGY, POLICY = ("sharding_strategy", 2), ("auto_wrap_policy", 4)
OPTIONS = {"forward_prefetch": (11, False), "limit_all_gathers": (12, True)}  # place and default, as torch declares them


def check(project: Project, file: PythonFile, call: cst.Call, argument: str) -> None:
    """Raises `UsageError` where `argument` of this call does nothing, or not what it says, for the network that is wrapped there."""
    if argument not in OPTIONS:
        return
    resolver = Resolver(project)
    strategy = _node(call, STRATEGY)
    if strategy is not None and (dotted(strategy) or "").endswith("NO_SHARD"):
        raise refuse(f"{file.location(call)}: `{file.text(strategy)}` keeps whole parameters, which nothing gathers")
    policy = _node(call, POLICY)
    spread = any(arg.star for arg in call.args)
    if policy is None or dotted(policy) == "None":
        others = [(where, each) for where, each in _calls(project) if each is not call]
        if others and argument == "forward_prefetch":
            raise refuse(f"{others[0][0].location(others[0][1])}: this unit has a {argument} of its own")
        for where, each in others:
            if not _says_true(resolver, where, each, argument):
                raise refuse(f"{where.location(each)}: all units of a network need the same {argument}")
        if not (others or spread or _repeated(project, file, call)):
            raise refuse(f"{file.location(call)}: `{short(file.text(call))}` makes one unit of the whole network, gathered at once")
    if argument == "forward_prefetch":
        turns_of_parts.none(project)


def _node(call: cst.Call, option: tuple[str, int]) -> cst.BaseExpression | None:
    given = keyword(call, option[0]) or positional(call, option[1])
    return None if given is None else given.value


def _calls(project: Project) -> list[tuple[PythonFile, cst.Call]]:
    name = WRAPPERS[0].rpartition(".")[2]
    return [(file, call) for file in project.parsed(name) for call in file.calls if file.full_name(call.func) in WRAPPERS]


def _says_true(resolver: Resolver, file: PythonFile, call: cst.Call, argument: str) -> bool:
    place, default = OPTIONS[argument]
    try:
        found = resolver.argument(file, call, argument, place)
    except UsageError:
        return False
    return default if found is None else found.value is True


def _repeated(project: Project, file: PythonFile, call: cst.Call) -> bool:
    """Whether a call makes several units: in a loop, or in a function that is called more than once or handed on."""
    if any(True for _ in file.loops_around(call)) or any(clauses(up) for up in file.ancestors(call)):
        return True
    function = file.function_around(call)
    return function is not None and (file.class_of(function) is not None or len(callers.sites(project, file, function)) != 1)
