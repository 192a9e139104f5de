"""What the program sets behind a declaration: attributes and keys that it assigns, and options that it sets by name."""

from __future__ import annotations

import libcst as cst

from trainflash.knobs.project import Project, is_module
from trainflash.knobs.reading.expressions import given_to
from trainflash.knobs.reading.lookups import key_of, reads_key
from trainflash.knobs.reading.python_source import PythonFile, dotted, keyword, string_value

HOLDERS = ("args", "cfg", "conf", "config", "flags", "hparams", "opt", "options", "opts", "params", "settings")


def to_key(project: Project, keys: tuple[str, ...]) -> list[tuple[PythonFile, cst.BaseExpression]]:
    """What the program assigns to `x.key` or `x["key"]` on objects other than `self`."""
    found = []
    for file in project.parsed(keys[-1]):
        for node in file.nodes:
            if isinstance(node, cst.Assign):
                for target in node.targets:
                    place = key_of(target.target)
                    library = place is not None and (file.full_name(place[0]) or "").startswith("torch.")  # a setting, no option
                    if place is not None and not library and dotted(place[0]) != "self" and reads_key(target.target, keys):
                        found.append((file, node.value))
    return found


def to_module(project: Project, path: str, name: str) -> list[tuple[PythonFile, cst.BaseExpression]]:
    """What other files assign to the variable `name` of the module at `path`: `config.WORKERS = 4`."""
    found = []
    for file in project.parsed(name):
        for node in file.each(cst.Assign):
            for target in node.targets:
                place = target.target
                module = file.full_name(place.value) if isinstance(place, cst.Attribute) and place.attr.value == name else None
                if module is not None and file.path != path and is_module(path, module):
                    found.append((file, node.value))
    return found


def by_name(project: Project, key: str) -> tuple[PythonFile, cst.Call] | None:
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
