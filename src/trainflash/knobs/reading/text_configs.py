"""A configuration that stands in the source as a text: `json.loads(\"\"\"{…}\"\"\")`, and the same of YAML and TOML."""

from __future__ import annotations

from typing import Any

import libcst as cst

from trainflash.errors import UsageError
from trainflash.knobs.reading.expressions import given_to
from trainflash.knobs.reading.origins import Source
from trainflash.knobs.reading.python_source import PythonFile
from trainflash.knobs.splices import Splice
from trainflash.knobs.surfaces import configs
from trainflash.schema import Location

FORMATS = {
    "json.loads": "json",
    "tomllib.loads": "toml",
    "tomli.loads": "toml",
    "yaml.full_load": "yaml",
    "yaml.load": "yaml",
    "yaml.safe_load": "yaml",
}


def source(file: PythonFile, call: cst.Call, keys: tuple[str, ...]) -> Source | None:
    """Where the text that `call` reads says `keys`; None where it reads something else, or the text has escapes or no such key."""
    form = FORMATS.get(file.full_name(call.func) or "")
    text = _text(file, call.args[0].value) if form is not None and call.args else None
    if text is None or text.prefix not in ("", "r") or "\\" in text.raw_value:
        return None
    begin = file.span(text)[0] + len(text.prefix) + len(text.quote)
    try:
        found = [leaf for leaf in configs.leaves(f"{file.path}.{form}", text.raw_value.encode()) if leaf.path == keys]
    except UsageError:
        return None
    if len(found) != 1 or found[0].shared:
        return None
    leaf = found[0]
    here = Location(file.path, file.raw.count(b"\n", 0, begin + leaf.start) + 1)

    def write(value: Any) -> tuple[Splice, ...]:
        inner = leaf.splice(value)
        return (Splice(file.path, begin + inner.start, begin + inner.end, inner.text),)

    return Source(leaf.value, f"{'.'.join(keys)} at {here}", here, write, offset=begin + leaf.start)


def _text(file: PythonFile, node: cst.BaseExpression) -> cst.SimpleString | None:
    """A text as it is written, or the constant of the module that holds it."""
    made = given_to(file.module, node.value) if isinstance(node, cst.Name) else [node]
    return made[0] if len(made) == 1 and isinstance(made[0], cst.SimpleString) else None
