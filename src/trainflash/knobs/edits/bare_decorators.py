"""`@torch.compile` without parentheses: a call whose arguments are all left as they are, and which an option can be given to."""

from __future__ import annotations

from trainflash.knobs.kinds import CallArgument
from trainflash.knobs.reading.expressions import refuse, spelled_value
from trainflash.knobs.scene import Scene, Target
from trainflash.knobs.splices import Splice
from trainflash.knobs.training import fitting


def option(edit: CallArgument, scene: Scene) -> Target | None:
    """The one such decorator among `edit.calls` in the program; None without one. Raises `UsageError` where there are several."""
    if scene.at is not None or edit.at != "program" or not edit.add:
        return None
    found = [
        (file, each.decorator)
        for name in edit.calls
        for file in scene.project.parsed(name.split(".")[-1])
        for function in file.functions
        for each in function.decorators
        if file.full_name(each.decorator) == name
    ]
    if not found:
        return None
    if len(found) > 1:
        places = ", ".join(str(file.location(node)) for file, node in found[:4])
        raise refuse(f"`@{found[0][0].text(found[0][1])}` stands at several places: {places}", "name one with --at FILE:LINE")
    file, node = found[0]
    if edit.argument == "dynamic":
        fitting.compiles_alone(scene.project, node)
    end = file.span(node)[1]
    here = file.location(node)
    where = f"{edit.argument} of `@{file.text(node)}` at {here}"
    return Target(here, edit.default, lambda value: (Splice(file.path, end, end, f"({edit.argument}={spelled_value(value)})"),), where)
