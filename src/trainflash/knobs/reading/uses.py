"""Who else reads a value, and who calls a function: what decides whether an edit would change more than it means to."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import libcst as cst

from trainflash.knobs.project import Project
from trainflash.knobs.reading.expressions import given_to
from trainflash.knobs.reading.python_source import PythonFile, decorator_names, dotted, keyword, sole, string_value
from trainflash.schema import Location

LOG_CALLS = {"print", "info", "debug", "warning", "log", "log_params", "log_hparams", "config", "vars", "pprint"}
CHANGES = ("update", "setdefault", "pop", "popitem", "clear")  # methods of a dictionary that hand nothing on but what they are asked
COPIES = ("dict", "copy", "deepcopy")
OF_WORKERS = {"num_workers", "persistent_workers", "prefetch_factor", "multiprocessing_context", "timeout", "worker_init_fn", "pin_memory"}
STORES = (cst.AssignTarget, cst.AnnAssign, cst.AugAssign)


@dataclass(frozen=True)
class Use:
    """One more reader of a value: another loader's argument, something that only shows or checks it, or anything else."""

    location: Location
    kind: Literal["loader", "shown", "other"]
    text: str


def of_local(file: PythonFile, node: cst.Name, references: Iterable) -> list[Use]:
    """Other readers of the local variable that `node` reads; `references` are LibCST's accesses of it."""
    return [_use(file, access.node) for access in references if access.node is not node]


def of_constant(node: cst.Name, project: Project) -> list[Use]:
    """Other readers of the module's variable that `node` reads, in all files of the program."""
    readers = project.each((node.value,), lambda where, other: other is not node and _loads(where, other, node.value))
    return [_use(where, reader) for where, reader in readers]


def _loads(file: PythonFile, node: cst.CSTNode, name: str) -> bool:
    if not isinstance(node, cst.Name) or node.value != name:
        return False
    up = file.parent(node)
    if isinstance(up, (*STORES, cst.ImportAlias, cst.Param, cst.AsName, cst.FunctionDef, cst.ClassDef)):
        return (
            isinstance(up, (cst.AnnAssign, cst.Param)) and node is not getattr(up, "target", None) and node is not getattr(up, "name", None)
        )
    if (isinstance(up, cst.Arg) and up.keyword is node) or _unpacked_to(file, node):
        return False
    return not (isinstance(up, cst.Attribute) and up.attr is node)


def of_key(file: PythonFile, node: cst.CSTNode, keys: tuple[str, ...], project: Project) -> list[Use]:
    """Other readers of `x.key`, `x["key"]` or `x.get("key")`; where both name the key before it, that one must agree too."""
    found = []
    for where in project.parsed(keys[-1]):
        for other in where.nodes:
            if (where is file and (other is node or file.inside(node, other))) or not reads_key(other, keys):
                continue
            if not isinstance(where.parent(other), STORES) and not _unpacked_to(where, other) and not _callee(where, other):
                found.append(_use(where, other))
    return found


def of_spread(file: PythonFile, spread: cst.BaseExpression, name: str, project: Project) -> list[Use]:
    """Others that read `name` of the dictionary `spread`, which a call unpacks, or that are handed the whole of it."""
    key = key_of(spread)
    if isinstance(spread, cst.Name):
        scope = file.scope(spread)
        bound = [each for each in (scope[spread.value] if scope is not None else ()) if hasattr(each, "references")]
        places = [(file, access.node) for each in bound for access in each.references]
    elif key is not None:
        places = [
            (where, node)
            for where in project.parsed(key[1])
            for node in where.nodes
            if reads_key(node, (key[1],)) and not _of_library(project, where, node)
        ]
    else:
        places = []
    found = [(where, node) for where, node in places if node is not spread and _hands_on(where, node, name) and not _renewed(where, node)]
    return [_use(where, node, within=isinstance(where.parent(node), cst.StarredDictElement)) for where, node in found]


def _of_library(project: Project, file: PythonFile, node: cst.CSTNode) -> bool:
    """Whether `node` is a part of a module's name, as in `import torch.utils.data`, and no setting."""
    if any(isinstance(up, (cst.Import, cst.ImportFrom)) for up in file.ancestors(node)):
        return True
    first = (dotted(node) or "").split(".")[0]
    return first in file.imported and not file.imported[first].startswith(".") and not _is_project_module(project, file.imported[first])


def _hands_on(file: PythonFile, node: cst.CSTNode, name: str) -> bool:
    """Whether what stands around the dictionary `node` may get `name` of it."""
    up = file.parent(node)
    if isinstance(up, cst.Subscript) and up.value is node:
        place = key_of(up)
        return not isinstance(file.parent(up), STORES) and (place is None or place[1] == name)
    if isinstance(up, cst.Attribute) and up.value is node:
        call = file.parent(up)
        if not isinstance(call, cst.Call) or call.func is not up:
            return up.attr.value == name
        place = key_of(call)
        return place[1] == name if place is not None else up.attr.value not in CHANGES
    return not isinstance(up, STORES)


def _renewed(file: PythonFile, node: cst.CSTNode) -> bool:
    """Whether a name is given a copy of its own: `options = dict(options)`."""
    small = sole(file.statement(node))
    if (
        not isinstance(small, cst.Assign)
        or len(small.targets) != 1
        or not isinstance(small.value, cst.Call)
        or not isinstance(node, cst.Name)
    ):
        return False
    return (dotted(small.value.func) or "").split(".")[-1] in COPIES and dotted(small.targets[0].target) == node.value


def _unpacked_to(file: PythonFile, node: cst.CSTNode) -> bool:
    """Whether `node` is one of several targets of an assignment."""
    up = file.parent(node)
    around = file.parent(up) if isinstance(up, cst.Element) else None
    return isinstance(around, (cst.Tuple, cst.List)) and isinstance(file.parent(around), cst.AssignTarget)


def _callee(file: PythonFile, node: cst.CSTNode) -> bool:
    up = file.parent(node)
    return isinstance(node, cst.Attribute) and isinstance(up, cst.Call) and up.func is node


def key_of(node: cst.CSTNode) -> tuple[cst.BaseExpression, str] | None:
    """What is read and by which key, for `x.key`, `x["key"]`, `x.get("key", …)` and `getattr(x, "key", …)`."""
    if isinstance(node, cst.Attribute):
        return node.value, node.attr.value
    if isinstance(node, cst.Subscript) and len(node.slice) == 1 and isinstance(node.slice[0].slice, cst.Index):
        key = string_value(node.slice[0].slice.value)
        return None if key is None else (node.value, key)
    if isinstance(node, cst.Call) and node.args and isinstance(node.func, cst.Attribute) and node.func.attr.value == "get":
        key = string_value(node.args[0].value)
        return None if key is None else (node.func.value, key)
    typed = isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute) and node.func.attr.value in TYPED_READS
    if typed and node.args and isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute):
        key = string_value(node.args[1 if len(node.args) > 1 and node.args[1].keyword is None else 0].value)
        return None if key is None else (node.func.value, key)
    if isinstance(node, cst.Call) and len(node.args) > 1 and dotted(node.func) == "getattr":
        key = string_value(node.args[1].value)
        return None if key is None else (node.args[0].value, key)
    return None


TYPED_READS = ("getint", "getboolean", "getfloat")


def place_of(project: Project, node: cst.CSTNode) -> tuple[cst.BaseExpression, tuple[str, ...]] | None:
    """What is read and by which keys: as `key_of`, with the section that a ConfigParser's `get("section", "key")` names."""
    section, found = section_of(node), key_of(node)
    if found is None or section is None or not (section[2] in TYPED_READS or next(project.parsed("ConfigParser"), None)):
        return None if found is None else (found[0], (found[1],))
    return found[0], section[:2]


def section_of(node: cst.CSTNode) -> tuple[str, str, str] | None:
    """The two texts of `x.get("section", "key")`, which a dictionary reads as a key and a default, and the method."""
    if not isinstance(node, cst.Call) or not isinstance(node.func, cst.Attribute) or len(node.args) < 2:
        return None
    first, second = (string_value(arg.value) if arg.keyword is None else None for arg in node.args[:2])
    method = node.func.attr.value
    return None if first is None or second is None or method not in ("get", *TYPED_READS) else (first, second, method)


def reads_key(node: cst.CSTNode, keys: tuple[str, ...]) -> bool:
    """Whether `node` reads a value whose key path may end in `keys`."""
    found, section = key_of(node), section_of(node)
    if found is None or keys[-1] not in (found[1], section[1] if section is not None else None):
        return False
    before = key_of(found[0])
    return before is None or len(keys) < 2 or before[1] == keys[-2] or before[1] in ("args", "config", "cfg", "opt", "hparams")


def writes_to(project: Project, keys: tuple[str, ...]) -> list[tuple[PythonFile, cst.BaseExpression]]:
    """What the program assigns to `x.key` or `x["key"]` on objects other than `self`."""
    found = []
    for file in project.parsed(keys[-1]):
        for node in file.nodes:
            if isinstance(node, cst.Assign):
                for target in node.targets:
                    place = key_of(target.target)
                    if place is not None and dotted(place[0]) != "self" and reads_key(target.target, keys):
                        found.append((file, node.value))
    return found


HOLDERS = ("args", "cfg", "conf", "config", "flags", "hparams", "opt", "options", "opts", "params", "settings")


def set_by_name(project: Project, key: str) -> tuple[PythonFile, cst.Call] | None:
    """The first call that sets `key` of options or fields behind their declaration, or by a name that is computed.

    That is `setattr`, `vars(args).update(…)`, or a copy with other values as `dataclasses.replace` makes.
    """
    for file in project.parsed():
        for call in file.calls:
            name = dotted(call.func)
            if (name or "").split(".")[-1] in ("replace", "_replace", "evolve", "model_copy") and keyword(call, key) is not None:
                return file, call
            if name == "setattr" and len(call.args) == 3 and _holds(call.args[0].value):
                if string_value(call.args[1].value) in (None, key):
                    return file, call
            elif isinstance(call.func, cst.Attribute) and call.func.attr.value == "update":
                base = call.func.value
                of_vars = isinstance(base, cst.Call) and dotted(base.func) == "vars" and base.args and _holds(base.args[0].value)
                of_dict = isinstance(base, cst.Attribute) and base.attr.value == "__dict__" and _holds(base.value)
                if of_vars or of_dict:
                    return file, call
    return None


def _holds(node: cst.BaseExpression) -> bool:
    return (dotted(node) or "").split(".")[-1].lower() in HOLDERS


def parsed_words(file: PythonFile, call: cst.Call) -> str:
    """What a call of `parse_args` is given instead of the command's words; empty where it is given nothing, or a name."""
    for arg in call.args:
        named = arg.keyword.value if arg.keyword is not None else ""
        held = [arg.value, *(given_to(file.module, dotted(arg.value) or "") if named in ("", "args") else [])]
        if named == "namespace" or any(isinstance(each, (cst.List, cst.Tuple)) for each in held):
            return file.text(arg)
    return ""


COMMANDS = ("fire.Fire", "typer.run", "defopt.run", "jsonargparse.CLI", "tyro.cli")


def is_command(project: Project, file: PythonFile, function: cst.FunctionDef) -> bool:
    """Whether a library makes a command line of the function's parameters."""
    if any(name.split(".")[-1] == "command" for name in decorator_names(file, function)):
        return True
    calls = [(where, call) for where in project.parsed(function.name.value) for call in where.calls if call.args]
    named = [call for where, call in calls if where.full_name(call.func) in COMMANDS]
    return any(dotted(call.args[0].value) == function.name.value for call in named)


def partials(project: Project, file: PythonFile, function: cst.FunctionDef) -> list[tuple[PythonFile, cst.Call]]:
    """Calls of `functools.partial` that bind arguments of `function`."""
    name = function.name.value
    calls = [(where, call) for where in project.parsed("partial", name) for call in where.calls if call.args]
    bound = [(where, call) for where, call in calls if where.full_name(call.func) in ("functools.partial", "partial")]
    return [(where, call) for where, call in bound if (dotted(call.args[0].value) or "").split(".")[-1] == name]


def writes_to_module(project: Project, path: str, name: str) -> list[tuple[PythonFile, cst.BaseExpression]]:
    """What other files assign to the variable `name` of the module at `path`: `config.WORKERS = 4`."""
    found = []
    for file in project.parsed(name):
        for node in (node for node in file.nodes if isinstance(node, cst.Assign)):
            for target in node.targets:
                place = target.target
                module = file.full_name(place.value) if isinstance(place, cst.Attribute) and place.attr.value == name else None
                if module is not None and file.path != path and is_module(path, module):
                    found.append((file, node.value))
    return found


def callers(project: Project, file: PythonFile, function: cst.FunctionDef) -> list[tuple[PythonFile, cst.Call]]:
    """Calls of `function` that the program's text shows; of a class, for its `__init__`."""
    owner = file.class_of(function)
    constructor = owner is not None and function.name.value == "__init__"
    name = owner.name.value if constructor else function.name.value  # type: ignore[union-attr]
    found = []
    for where in project.parsed(name):
        for call in where.calls:
            called = dotted(call.func)
            if isinstance(call.func, cst.Attribute) and call.func.attr.value == name:
                base = called.split(".")[0] if called else ""
                module = where.imported.get(base)
                local = module is not None and _is_project_module(project, module)
                if (owner is not None and not constructor and module is None) or ((owner is None or constructor) and local):
                    found.append((where, call))
            elif called == name and (owner is None or constructor):
                found.append((where, call))
            elif (owner is None or constructor) and isinstance(call.func, cst.Name):
                found += [(where, call)] if where.imported.get(call.func.value, "").split(".")[-1] == name else []
    return found


def means(project: Project, where: PythonFile, call: cst.Call, file: PythonFile, function: cst.FunctionDef) -> bool:
    """Whether a call by that name in `where` is one of `function`: a method where no other class or function has one so called."""
    module = where.imported.get((dotted(call.func) or "").split(".")[0])
    if file.class_of(function) is None:
        return True
    if module is not None and not _is_project_module(project, module):
        return False
    return isinstance(call.func, cst.Attribute) and len(project.functions(function.name.value)) == 1


def _is_project_module(project: Project, module: str) -> bool:
    return any(is_module(path, module) for path in project.program)


def is_module(path: str, module: str) -> bool:
    """Whether the file at `path` can be the module of that dotted name."""
    tail = module.strip(".").replace(".", "/")
    return f"/{path}".endswith((f"/{tail}.py", f"/{tail}/__init__.py"))


def caller_use(file: PythonFile, call: cst.Call) -> Use:
    """Another caller of the function that holds the edited call."""
    return Use(file.location(call), "loader", file.text(call).split("\n")[0])


def only_refuses(node: cst.If) -> bool:
    """Whether the branch does nothing but refuse: it raises, exits, or calls a parser's `error`."""
    last = node.body.body[-1] if node.body.body else None
    small = last.body[-1] if isinstance(last, cst.SimpleStatementLine) else last
    if isinstance(small, cst.Expr) and isinstance(small.value, cst.Call):
        return (dotted(small.value.func) or "").split(".")[-1] in ("error", "exit", "fail")
    return isinstance(small, cst.Raise)


def _checks(file: PythonFile, statement: cst.CSTNode, node: cst.CSTNode) -> bool:
    """Whether `statement` reads `node` only to refuse what it holds; whether it allows a new value is asked apart (`limits`)."""
    if isinstance(statement, (cst.Assert, cst.Raise)):
        return True
    return isinstance(statement, cst.If) and file.inside(node, statement.test) and only_refuses(statement)


def _sets_workers(branch: cst.If) -> bool:
    """Whether the branch does nothing but set options of a loader's workers: `kw["persistent_workers"] = True`, `kw.update(…)`."""
    if branch.orelse is not None:
        return False
    small = [each for line in branch.body.body for each in (line.body if isinstance(line, cst.SimpleStatementLine) else [line])]
    return bool(small) and all(_sets_option(each) for each in small)


def _sets_option(node: cst.CSTNode) -> bool:
    if isinstance(node, cst.Assign) and len(node.targets) == 1:
        place = key_of(node.targets[0].target)
        return place is not None and place[1] in OF_WORKERS
    call = node.value if isinstance(node, cst.Expr) else None
    if not isinstance(call, cst.Call) or not isinstance(call.func, cst.Attribute) or call.func.attr.value != "update":
        return False
    given = [arg.keyword.value if arg.keyword is not None else None for arg in call.args]
    if len(call.args) == 1 and isinstance(call.args[0].value, cst.Dict):
        given = [string_value(each.key) if isinstance(each, cst.DictElement) else None for each in call.args[0].value.elements]
    return bool(given) and set(given) <= OF_WORKERS


def _use(file: PythonFile, node: cst.CSTNode, *, within: bool = False) -> Use:
    """`within`: it becomes part of another dictionary of arguments."""
    kind: Literal["loader", "shown", "other"] = "loader" if within else "other"
    for up in file.ancestors(node):
        if isinstance(up, cst.Arg) and up.keyword is not None and up.keyword.value in OF_WORKERS:
            kind = "loader"
            break
        if isinstance(up, cst.DictElement) and string_value(up.key) in OF_WORKERS:
            kind = "loader"
            break
        if isinstance(up, (cst.BaseCompoundStatement, cst.BaseSmallStatement)):
            if isinstance(up, cst.If) and file.inside(node, up.test) and _sets_workers(up):
                kind = "loader"
                break
            kind = "shown" if _checks(file, up, node) else kind
            break
        if isinstance(up, cst.FormattedString):
            kind = "shown"
        elif isinstance(up, cst.Call) and not file.inside(node, up.func):
            name = (dotted(up.func) or "").split(".")[-1]
            if name.endswith("Loader"):
                kind = "loader"
                break
            if name in LOG_CALLS:
                kind = "shown"
    return Use(file.location(node), kind, file.text(node))
