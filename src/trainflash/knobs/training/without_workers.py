"""What loaders count on that only worker processes give: arguments that mean nothing without them, and copies of what samples change."""

from __future__ import annotations

import libcst as cst

from trainflash.errors import UsageError
from trainflash.knobs.project import Project
from trainflash.knobs.reading import sources
from trainflash.knobs.reading.expressions import literal, refuse
from trainflash.knobs.reading.python_source import PythonFile, descendants, dotted, keyword
from trainflash.knobs.splices import Splice
from trainflash.knobs.training import left_in_workers, loading, pass_changes

ONLY_WITH = {"persistent_workers": "False", "prefetch_factor": "None"}  # torch refuses them at num_workers=0; what they are then
OF_PROCESSES = ("multiprocessing_context", "timeout", "worker_init_fn")
TOLD = "get_worker_info"  # what runs in a worker asks which one it is


def check(project: Project, call: cst.Call) -> None:
    """Raises `UsageError` where the loader `call`, or another that may read its number of workers, needs them."""
    for where in project.parsed(TOLD):
        asks = next((each for each in where.calls if (dotted(each.func) or "").split(".")[-1] == TOLD), None)
        if asks is not None:
            raise refuse(f"{where.location(asks)}: `{where.text(asks)}` tells a worker which one it is")
    resolver = sources.Resolver(project)
    for where in project.parsed("DataLoader"):
        for each in where.calls:
            for name in (*OF_PROCESSES, *ONLY_WITH) if where.full_name(each.func) in loading.LOADERS else ():
                typed = each is call and name in ONLY_WITH and _typed(each, name) is not None
                if not typed and _means_workers(resolver, where, each, name):
                    raise refuse(f"{where.location(each)}: it is given {name}, which means something only with workers")
    pass_changes.none(project, call)
    left_in_workers.stays_nowhere(project)


def put_off(file: PythonFile, call: cst.Call) -> tuple[Splice, ...]:
    """What the loader `call` is given for workers, as it must stand without them."""
    given = [(value, off) for name, off in ONLY_WITH.items() if (value := _typed(call, name)) is not None]
    return tuple(Splice(file.path, *file.outer_span(value), off) for value, off in given if literal(value))


def _typed(call: cst.Call, name: str) -> cst.BaseExpression | None:
    given = keyword(call, name)
    return given.value if given is not None and isinstance(literal(given.value), int) else None


def _means_workers(resolver: sources.Resolver, file: PythonFile, call: cst.Call, name: str) -> bool:
    """Whether the call passes `name` as something that does not depend on the number of workers, and is not off."""
    given = keyword(call, name)
    if given is not None and _follows(given.value):
        return False
    try:
        found = resolver.argument(file, call, name, None)
    except UsageError:
        return True
    return found is not None and found.value not in (False, None, 0)


def _follows(value: cst.BaseExpression) -> bool:
    """Whether a value is made from the number of workers: `workers > 0`, `2 if args.num_workers else None`."""
    asked = isinstance(value, (cst.Comparison, cst.IfExp, cst.BooleanOperation)) or dotted(getattr(value, "func", None)) == "bool"
    return asked and any("worker" in (dotted(node) or "").lower() for node in descendants(value, (cst.Name, cst.Attribute)))
