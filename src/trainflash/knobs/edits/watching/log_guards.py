"""Log calls that put a message together which nobody is shown: the logger is asked first whether anybody listens."""

from __future__ import annotations

from dataclasses import replace

import libcst as cst

from trainflash.knobs.edits import imports
from trainflash.knobs.edits.statements import long_text, under
from trainflash.knobs.effects import quiet
from trainflash.knobs.kinds import UnheardLog
from trainflash.knobs.project import Project
from trainflash.knobs.reading.expressions import refuse, short
from trainflash.knobs.reading.python_source import PythonFile, descendants, dotted, sole
from trainflash.knobs.scene import Scene, Target
from trainflash.schema import Location

LEVELS = {"debug": "DEBUG", "info": "INFO", "warning": "WARNING"}
WORK = (cst.Call, cst.FormattedString, cst.ListComp, cst.DictComp, cst.SetComp, cst.GeneratorExp)
BINDS = (cst.NamedExpr, cst.Await, cst.Yield)


def unheard_log(edit: UnheardLog, scene: Scene) -> tuple[Target, ...]:
    """Each log call that the run saw unheard again and again and whose arguments are work. Raises `UsageError` where there is none."""
    seen = [place.location for place in scene.summary.written if place.unheard and place.often and scene.project.owns(place.location)]
    places = [scene.at] if scene.at is not None else list(dict.fromkeys(seen))
    if not places:
        raise refuse("the run saw no log call that nobody is shown")
    found = [(file, call) for place in places for file, call in [log_call(scene, place)] if _works(call)]
    if not found:
        raise refuse(f"{places[0]}: putting the message together is no work worth asking for")
    return tuple(_target(scene.project, file, call) for file, call in found)


def log_call(scene: Scene, place: Location) -> tuple[PythonFile, cst.Call]:
    """The log call that covers the line. Raises `UsageError` where there is none."""
    file = scene.project.python(place.file)
    for call in file.calls:
        if file.covers(call, place.line) and isinstance(call.func, cst.Attribute) and call.func.attr.value in LEVELS:
            return file, call
    raise refuse(f"{place}: no call of {', '.join(LEVELS)} of a logger stands there")


def _works(call: cst.Call) -> bool:
    return any(True for arg in call.args for _ in descendants(arg.value, WORK))


def _target(project: Project, file: PythonFile, call: cst.Call) -> Target:
    here, text = file.location(call), short(file.text(call))
    small = sole(line := file.statement(call))
    assert isinstance(call.func, cst.Attribute)
    logger = dotted(call.func.value)
    if line is None or not isinstance(small, cst.Expr) or small.value is not call or logger is None:
        raise refuse(f"{here}: `{text}` is no statement of its own")
    if any(True for _ in descendants(call, BINDS)):
        raise refuse(f"{here}: `{text}` does more than to put a message together")
    looked = quiet.Quiet(project).look(file, [arg.value for arg in call.args])
    if looked.told:
        raise refuse(looked.told)
    if long_text(file, call) is not None:
        raise refuse(f"{here}: a text of `{text}` goes over several lines")
    if any("isEnabledFor" in file.text(up.test) for up in file.ancestors(call) if isinstance(up, cst.If)):
        raise refuse(f"{here}: the logger is asked already")
    if file.full_name(call.func.value) == "logging":
        raise refuse(f"{here}: `{text}` of the module sets logging up by itself where nobody has done so")
    level, needed = imports.reach(file, "logging", LEVELS[call.func.attr.value])
    splices = (*needed, *under(file, f"if {logger}.isEnabledFor({level}):", *file.span(call), file.indent(line)))
    target = Target(here, None, lambda value: splices, f"`{text}` at {here}", f"{logger} is asked first")
    return replace(target, risk="order", because=looked.drawn) if looked.drawn else target
