"""Which call of the program an edit means: at the place that the run or the owner names, or the only one of its name."""

from __future__ import annotations

from fnmatch import fnmatchcase

import libcst as cst

from trainflash.errors import UsageError
from trainflash.knobs.kinds import (
    CallArgument,
    RemoveCall,
    ReplaceCall,
    UnwrapCall,
)
from trainflash.knobs.project import Project
from trainflash.knobs.reading import callees, hf_parser, library_settings, sources
from trainflash.knobs.reading.expressions import argument_node, given_to, no_place, refuse
from trainflash.knobs.reading.python_source import PythonFile, dotted, has_splat
from trainflash.knobs.scene import Scene
from trainflash.schema import Location

OF_LOADERS = ("train_loader", "loader")
Placed = CallArgument | ReplaceCall | RemoveCall | UnwrapCall


def wanted_location(edit: Placed, scene: Scene) -> Location | None:
    """The line of the call: the owner's choice, else what `at` means in this run; None: anywhere in the program."""
    if scene.at is not None or edit.at == "program":
        return scene.at
    if edit.at in OF_LOADERS:
        loader = scene.facts.get(edit.at)
        if loader is None:
            raise no_place("the run had no training DataLoader")
        return _in_project(loader.location, "the DataLoader", scene)
    if edit.at == "threads":
        threads = scene.summary.threads
        return _in_project(threads.set_at if threads is not None else None, "torch.set_num_threads", scene)
    if edit.at == "setting":
        setting = next((setting for setting in scene.summary.settings if setting.name == edit.setting), None)
        if setting is None:
            raise no_place(f"the run did not have {edit.setting} on")
        return _in_project(setting.location, edit.setting or "", scene)
    place = scene.facts.get(edit.at)
    return None if place is None else _in_project(place, edit.calls[0].split(".")[-1], scene)


def _in_project(location: Location | None, what: str, scene: Scene) -> Location:
    if not scene.project.owns(location):
        raise no_place(
            f"{what}: its place is " + (f"{location}, outside this project" if location is not None else "not in this project's source")
        )
    return location  # type: ignore[return-value]


def the_call(edit: Placed, scene: Scene) -> tuple[PythonFile, cst.Call]:
    """The call that `edit` means. Raises `UsageError` where that is not clear, or where a call beside it needs it as it is."""
    _alone(edit, scene)
    place = wanted_location(edit, scene)
    if place is not None:
        file = scene.project.python(place.file)
        try:
            return file, _call_at(file, edit.calls, place)
        except UsageError:
            other = None
            if isinstance(edit, CallArgument) and edit.made is not None:
                other = _unnamed(edit, scene, file, place)
            elif isinstance(edit, UnwrapCall) and not edit.segments:
                other = _by_partial(edit, file, place)
            if other is not None:
                return file, other
            within = _called_there(edit, scene.project, file, place)
            if len(within) != 1:
                raise
            return within[0]
    tails = sorted({name.split(".")[-1] for name in edit.calls})
    found = _calls_of(edit.calls, scene)
    if isinstance(edit, CallArgument) and not edit.add:
        found = [(file, call) for file, call in found if _passes(file, call, edit) or _may_spread(scene, file, call, edit)]
    parsing = [] if found else hf_parser.calls(scene.project, edit.calls)
    if parsing and isinstance(edit, CallArgument):
        found = [(file, call) for file, call in parsing if _says(scene, file, call, edit)] or parsing[:1]
    if not found:
        raise no_place(f"no call of {' or '.join(tails)} was found in the program", "name the place with --at FILE:LINE")
    if len(found) > 1:
        places = ", ".join(str(file.location(call)) for file, call in found[:4])
        raise refuse(f"{' or '.join(tails)} is called at several places: {places}", "name one with --at FILE:LINE")
    return found[0]


def _alone(edit: Placed, scene: Scene) -> None:
    unwanted = edit.absent if isinstance(edit, (CallArgument, RemoveCall)) else ()
    for file, call in _calls_of(unwanted, scene):
        raise refuse(f"{file.location(call)}: `{file.text(call.func)}` needs it as it is")
    for word in edit.unless if isinstance(edit, CallArgument) else ():
        for file in scene.project.parsed(word):
            raise refuse(f"{file.path}: `{word}` needs it as it is")
    about = edit.beside if isinstance(edit, CallArgument) else ()
    if about and not any(True for word in about for _ in scene.project.parsed(word)):
        raise refuse(f"the program has no {' or '.join(about)}, which the argument is about")


def _calls_of(names: tuple[str, ...], scene: Scene) -> list[tuple[PythonFile, cst.Call]]:
    """All calls of the program that `names` mean, each once."""
    files = {file.path: file for name in names for file in scene.project.parsed(name.split(".")[-1].strip("*"))}
    return [(file, call) for file in files.values() for call in file.calls if any(_is_named(file, call, name) for name in names)]


def _is_named(file: PythonFile, call: cst.Call, name: str) -> bool:
    if name.startswith("*."):
        return isinstance(call.func, cst.Attribute) and call.func.attr.value == name[2:]
    return fnmatchcase(file.full_name(call.func) or "", name)


def _passes(file: PythonFile, call: cst.Call, edit: CallArgument) -> bool:
    return argument_node(file, call, edit.argument, edit.position) is not None


def _may_spread(scene: Scene, file: PythonFile, call: cst.Call, edit: CallArgument) -> bool:
    """Whether a `**` of the call may hold the argument; where that is not known, it may."""
    return has_splat(call, "**") and _says(scene, file, call, edit)


def _says(scene: Scene, file: PythonFile, call: cst.Call, edit: CallArgument) -> bool:
    try:
        return sources.Resolver(scene.project).argument(file, call, edit.argument, edit.position) is not None
    except UsageError:
        return True


def _call_at(file: PythonFile, calls: tuple[str, ...], place: Location) -> cst.Call:
    """The one call of `calls` at the line."""
    found = calls_at(file, calls, place)
    if len(found) != 1:
        raise refuse(f"{place}: more than one call of {' or '.join(sorted({name.split('.')[-1] for name in calls}))} at this line")
    return found[0]


def _called_there(edit: Placed, project: Project, file: PythonFile, place: Location) -> list[tuple[PythonFile, cst.Call]]:
    """Calls that `edit` means in functions of the program that the line calls, by their full names."""
    calls = [call for call in file.calls if file.lines_of(call)[0] == place.line]
    sure = [call for call in calls if isinstance(call.func, cst.Name) or callees.own_method(project, file, call)]
    starts = [found for call in sure for found in callees.meant(project, file, call)]
    return [
        (where, call)
        for where, function in callees.reached(project, starts)
        for call in where.calls
        if where.function_around(call) is function and any(_is_named(where, call, name) for name in edit.calls)
    ]


def _by_partial(edit: UnwrapCall, file: PythonFile, place: Location) -> cst.Call | None:
    """The one call at the line by a name that stands for `partial(wrapper, …)` with nothing but options of the wrapper's own."""
    found = []
    for call in file.calls:
        around = file.function_around(call)
        given = given_to(around, dotted(call.func) or "") if around is not None else []
        given = given or given_to(file.module, dotted(call.func) or "")
        made = given[0] if len(given) == 1 and file.covers(call, place.line) else None
        if isinstance(made, cst.Call) and file.full_name(made.func) == "functools.partial" and made.args:
            own = all(arg.keyword is not None and arg.keyword.value in edit.options for arg in made.args[1:])
            found += [call] if own and file.full_name(made.args[0].value) in edit.calls else []
    return found[0] if len(found) == 1 else None


def _unnamed(edit: CallArgument, scene: Scene, file: PythonFile, place: Location) -> cst.Call | None:
    """The one call at the line whose function is picked from a table, such as `KINDS[name](…)`; the run saw what it made.

    None where something may be picked there next time that is none of `calls`, and might not take the argument.
    """
    if scene.facts.get(str(edit.made)) not in {name.rpartition(".")[2] for name in edit.calls}:
        return None
    tables = [[file.full_name(element.value) for element in node.elements] for node in file.each(cst.Dict) if node.elements]
    tables = [names for names in tables if set(names) & set(edit.calls)]
    if not tables or any(not set(names) <= set(edit.calls) for names in tables):
        return None
    found = [call for call in file.calls if file.covers(call, place.line) and _picked(file, call, edit.calls)]
    found = [call for call in found if not any(call is not each and file.inside(call, each) for each in found)]
    return found[0] if len(found) == 1 else None


def _picked(file: PythonFile, call: cst.Call, names: tuple[str, ...]) -> bool:
    """Whether the function of `call` is an entry of a table, or a name that was given nothing but such entries and `names`."""
    func, around = call.func, file.function_around(call)
    given = given_to(around or file.module, func.value) if isinstance(func, cst.Name) else [func]
    return bool(given) and all(_entry(each) or file.full_name(each) in names for each in given)


def _entry(node: cst.BaseExpression) -> bool:
    fetched = isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute) and node.func.attr.value == "get"
    return isinstance(node, cst.Subscript) or fetched


def place_among(edit: CallArgument, project: Project, file: PythonFile, call: cst.Call) -> int | None:
    """The place of the argument in this call, which is known for `calls` themselves and what a class derived from them hands on.

    Raises `UsageError` where another class of that name, with an order of its own, may be given it by its place.
    """
    if edit.position is None:
        return None
    full = library_settings.full_name(project, file, call.func) or ""
    last = full.rpartition(".")[2]
    another = any(last.endswith(name.split(".")[-1]) for name in edit.calls) or next(project.parsed(f"class {last}"), None) is not None
    if not last or not another or any(_is_named(file, call, name) or full == name for name in edit.calls):
        return edit.position
    if len([arg for arg in call.args if arg.keyword is None and arg.star != "**"]) > edit.position:
        raise refuse(f"{file.location(call)}: which argument of `{file.text(call.func)}` is {edit.argument} is not known")
    return None


def calls_at(file: PythonFile, calls: tuple[str, ...], place: Location) -> list[cst.Call]:
    """Calls of `calls` at the line; the last part of a name is enough, or that it is a subclass's own call. At least one."""
    tails = {name.split(".")[-1] for name in calls}
    named, loose = [], []
    for call in file.calls:
        if not file.covers(call, place.line):
            continue
        full = file.full_name(call.func) or ""
        tail = full.split(".")[-1]
        if any(_is_named(file, call, name) for name in calls):
            named.append(call)
        elif full.startswith("torch."):
            continue  # another function of torch that has the same last name
        elif tail in tails:
            named.append(call)
        elif any(tail.endswith(wanted) for wanted in tails) or _derived(file, call, tails):
            loose.append(call)
    found = named or loose
    exact = [call for call in found if file.lines_of(call)[0] == place.line]
    if not found:
        raise no_place(f"{place}: no call of {' or '.join(sorted(tails))} at this line")
    return exact or found


def _derived(file: PythonFile, call: cst.Call, tails: set[str]) -> bool:
    """`super().__init__(…)` in a class derived from one of `tails`, or a call of such a class of this file."""
    classes = [node for node in file.each(cst.ClassDef)]
    derived = {node.name.value for node in classes for base in node.bases if (file.full_name(base.value) or "").split(".")[-1] in tails}
    if isinstance(call.func, cst.Name):
        return call.func.value in derived
    owner = file.class_around(call)
    return owner is not None and owner.name.value in derived and file.text(call.func) == "super().__init__"
