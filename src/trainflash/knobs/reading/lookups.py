"""What is read by which key: attributes, subscripts, `get`, `getattr` and a ConfigParser's sections, as one."""

from __future__ import annotations

import libcst as cst

from trainflash.knobs.project import Project
from trainflash.knobs.reading.python_source import dotted, string_value

TYPED_READS = ("getint", "getboolean", "getfloat")


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
