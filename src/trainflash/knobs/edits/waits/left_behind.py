"""What making a batch does beside the batch: what it prints and writes, what it takes from others, and what it finds in files.

A thread that is ahead does it earlier, and once or twice more where the batches are left before their end.
"""

from __future__ import annotations

import libcst as cst

from trainflash.knobs.edits.waits import gone_through
from trainflash.knobs.effects import given, harmless, purity, writers, written_files
from trainflash.knobs.project import Project
from trainflash.knobs.reading import callees, callers
from trainflash.knobs.reading.callees import Function
from trainflash.knobs.reading.expressions import given_to, is_name, passed, refuse, short
from trainflash.knobs.reading.python_source import PythonFile, descendants, dotted
from trainflash.knobs.reading.whole_files import for_reading

SHOWN = {"critical", "debug", "error", "exception", "info", "warn", "warning"}
SHOWING = ("logging.", "loguru.", "mlflow.", "rich.", "tqdm", "wandb.", "warnings.")
FILES = {f"os.{name}" for name in ("link", "makedirs", "mkdir", "remove", "rename", "replace", "rmdir", "symlink", "truncate", "unlink")}
CHANGES_FILES = {"commit", "mkdir", "rmdir", "symlink_to", "touch", "unlink", "writelines", "writerow", "writerows"}
CHANGES_FILES |= {"write", "write_bytes", "write_text"}
SENDS = ("send", "sendall", "sendmsg")
ANSWERS = ("recv", "recv_into", "recvfrom", "recvmsg", "read", "readline")  # of a connection, also as a file
TAKES = {"islice", "next", "popleft", "read", "readline", "readlines", "recv"}
ITERATORS = purity.ITERATORS | {"count", "cycle", "islice", "product", "permutations", "repeat"}
DEEPEST = 3  # own: functions that hand on what they were handed


def nothing(project: Project, start: Function, inside: list[Function]) -> None:
    """Raises `UsageError` where somebody may see that batches are made ahead."""
    calls = [(file, call) for file, function in inside for call in descendants(function.body, cst.Call)]
    answered = any(callees.method_name(call) in ANSWERS for _, call in calls)  # type: ignore[arg-type]
    for file, call in calls:
        asks = callees.method_name(call) in SENDS and answered  # type: ignore[arg-type]
        if not asks and _is_seen(project, file, call):  # type: ignore[arg-type]
            told = f"`{short(file.text(call))}` shows or writes something for each batch"
            raise refuse(f"{file.location(call)}: {told}, and would do so ahead of it")
    found = written_files.again(project, inside)
    if found is not None:
        raise refuse(f"{found[0].location(found[1])}: `{short(found[0].text(found[1]))}` writes what the next batches are read from")
    _takes(project, start)


# --- what is seen


def _is_seen(project: Project, file: PythonFile, call: cst.Call) -> bool:
    full, tail, method = file.full_name(call.func) or "", callees.called_name(call), callees.method_name(call)
    if full == "print" or full.startswith(SHOWING) or full in FILES or full.startswith("shutil."):
        return True
    if next(callees.meant(project, file, call), None) is not None:
        return False  # looked into
    if full == "open" or full == "io.open":
        return not harmless.opens_to_read(call)
    if full.split(".")[0] in file.imported:
        return tail in writers.REPORTS - {"error"} and tail != "info"
    if method == "open":
        return not for_reading(call, 0)
    if method in CHANGES_FILES | SHOWN or method in SENDS or method in writers.REPORTS:
        return not _of_memory(file, call)
    return method == "log" and bool(call.args)


def _of_memory(file: PythonFile, call: cst.Call) -> bool:
    """Whether what is written into is a buffer that the function makes itself."""
    function = file.function_around(call)
    made = given_to(function.body, dotted(call.func.value) or "?") if function is not None else []  # type: ignore[union-attr]
    return bool(made) and all(isinstance(each, cst.Call) and callees.called_name(each) in ("BytesIO", "StringIO") for each in made)


# --- what is taken


def _takes(project: Project, start: Function) -> None:
    """Raises `UsageError` where the generator takes from something that is there before it and goes on being used behind it."""
    file, function = start
    params = {each.name.value: each for each in descendants(function.params, cst.Param)}  # type: ignore[attr-defined]
    outer = {each.value for each in descendants(function.body, cst.Name) if is_name(file, each)} - given.bound(function.body)  # type: ignore[attr-defined,arg-type]
    early = gone_through.cut_short(project, file, function)
    for name in sorted(outer & (set(params) | given.bound(file.module)) - {"self", "cls"}):
        taken, in_module = _taken(file, function.body, name), [(file, each) for each in given_to(file.module, name)]
        sources = _sources(project, file, function, params[name], 0) if name in params else in_module
        if not taken and not any(_is_iterator(project, where, each) for where, each in sources):
            continue
        for where, each in sources:
            if dotted(each) is not None and _taken(where, where.function_around(each) or where.module, dotted(each) or "", function):
                raise refuse(f"{where.location(each)}: others take from {where.text(each)}, too, and the batches would be ahead of them")
        if early is not None:
            told = f"the loop over the batches is left early, and the next goes on with what is left of {name}"
            raise refuse(f"{early[0].location(early[1])}: {told}, which would be ahead")


def _taken(file: PythonFile, part: cst.CSTNode, name: str, but: cst.FunctionDef | None = None) -> bool:
    """Whether the next of what `name` holds is taken in `part`, but not in the function `but`."""
    found = [call for call in descendants(part, cst.Call) if taken_from(call) == name]  # type: ignore[arg-type]
    return any(but is None or not file.inside(call, but) for call in found)


def taken_from(call: cst.Call) -> str | None:
    """From what a call takes the next: of an iterator, a file or a queue."""
    name = callees.called_name(call).split(".")[-1]
    if name not in TAKES:
        return None
    if name in ("islice", "next") or not isinstance(call.func, cst.Attribute):
        return dotted(call.args[0].value) if call.args else None
    return dotted(call.func.value)


def _sources(
    project: Project, file: PythonFile, function: cst.FunctionDef, param: cst.Param, depth: int
) -> list[tuple[PythonFile, cst.BaseExpression]]:
    """What callers hand to a parameter, and what that is given where it is a name."""
    found: list[tuple[PythonFile, cst.BaseExpression]] = []
    for where, call in callers.sites(project, file, function):
        handed = passed(where, call, file, function, param)
        name, around = dotted(handed), where.function_around(call)
        if handed is not None:
            found.append((where, handed))
        if name is None:
            continue
        own = given_to(around.body, name) if around is not None else []
        found += [(where, each) for each in own or given_to(where.module, name)]
        inner = (
            next((each for each in descendants(around.params, cst.Param) if each.name.value == name), None) if around is not None else None
        )  # type: ignore[attr-defined]
        if inner is not None and around is not None and depth < DEEPEST:
            found += _sources(project, where, around, inner, depth + 1)  # type: ignore[arg-type]
    return found


def _is_iterator(project: Project, file: PythonFile, value: cst.BaseExpression) -> bool:
    """Whether a value is used up by going through it: an iterator, an open file, what a generator makes."""
    if not isinstance(value, cst.Call):
        return isinstance(value, cst.GeneratorExp)
    if callees.called_name(value).split(".")[-1] in ITERATORS:
        return True
    return any(
        where.function_around(each) is function
        for where, function in callees.meant(project, file, value)
        for each in descendants(function.body, cst.Yield)
    )
