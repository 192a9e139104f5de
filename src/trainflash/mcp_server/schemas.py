"""The JSON schema of each tool's document, made from the artefacts' own dataclasses by one rule."""

from __future__ import annotations

from dataclasses import fields as dataclass_fields
from functools import cache
from typing import Any, Literal, get_type_hints

from pydantic import TypeAdapter

from trainflash.workflow.shapes import SHAPES

Status = Literal["ok", "inconclusive", "rejected", "needs_approval", "failed", "error"]
ALWAYS = ("schema", "status")


@cache
def output_schema(name: str) -> dict[str, Any]:
    """Schema of the document called `name`: `schema` and `status` always, its own keys, `error`, and what `fitting` adds."""
    shape = SHAPES[name]
    fields: dict[str, Any] = {}
    if shape.artefact is not None:
        hints = get_type_hints(shape.artefact)
        fields |= {each.name: hints[each.name] for each in dataclass_fields(shape.artefact)}
    fields |= shape.beside
    beside = {"error": dict[str, Any], "whole": str, "cut": list[str]}
    made: dict[str, Any] = {"type": "object", "properties": {"schema": {"type": "string"}}, "required": list(ALWAYS)}
    definitions: dict[str, Any] = {}
    for key, kind in {"status": Status, **fields, **beside}.items():
        of_key = _short(TypeAdapter(kind).json_schema(ref_template="#/$defs/{model}"))
        definitions |= of_key.pop("$defs", {})
        made["properties"][key] = of_key
    return {**made, "$defs": definitions} if definitions else made


def _short(schema: Any) -> Any:
    """Without titles and descriptions: the names are the field's words, and a list of tools is read by assistants."""
    if isinstance(schema, dict):
        left = {
            name: value
            for name, value in schema.items()
            if not (name in ("title", "description", "default") and not isinstance(value, dict))
        }
        return {name: _short(value) for name, value in left.items()}
    return [_short(each) for each in schema] if isinstance(schema, list) else schema
