"""Versioned documents: frozen dataclasses to and from JSON and YAML files.

A document is a frozen dataclass whose class attribute `SCHEMA` is `name.vN`; the file carries it under the key `schema`.
`None` always means "not measured". Unknown keys are ignored (a newer writer may add some); a missing or mistyped field, or
another version, is a `UsageError` that names the field. Files are written whole to a temporary name and then renamed, so a
kill at any moment leaves the old file or the new one.
"""

from __future__ import annotations

import dataclasses
import json
import os
import re
import tempfile
from pathlib import Path
from typing import Any, ClassVar, Protocol, TypeVar

import msgspec
import yaml

from trainflash.errors import UsageError


class Document(Protocol):
    """A frozen dataclass with a schema name, such as `summary.v1`."""

    SCHEMA: ClassVar[str]


D = TypeVar("D")
YAML_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # libyaml's is some ten times as fast, and not in every build
_DUMPER = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
_NO_TEXT = re.compile("[\ud800-\udfff]")  # bytes of a file's name that are no UTF-8, as Python holds them


def to_plain(value: Any) -> Any:
    """Dicts, lists, strings, numbers and None for `value`; a document gets its `schema` as the first key."""
    plain = msgspec.to_builtins(value, enc_hook=_encode_path)
    name = getattr(type(value), "SCHEMA", None)
    return {"schema": name, **plain} if name else plain


def from_plain(cls: type[D], plain: Any, source: str = "document") -> D:
    """A `cls` from plain data. Raises `UsageError` naming the wrong field and `source`."""
    name = getattr(cls, "SCHEMA", None)
    if name and isinstance(plain, dict) and plain.get("schema") != name:
        raise UsageError(
            f"{source}: is {plain.get('schema', 'of no schema')!s}, expected {name}",
            "it was written by another version of trainflash, or is another kind of file",
        )
    try:
        return _whole(msgspec.convert(plain, type=cls, str_keys=True))
    except msgspec.ValidationError as bad:
        raise UsageError(f"{source}: {bad}", "restore the file, or run the stage that writes it again") from None


def _whole(value: Any) -> Any:
    """`value` with all fields of its dataclasses set: msgspec leaves one that was not given to the class, and would not write it again."""
    if dataclasses.is_dataclass(value):
        for field in dataclasses.fields(value):
            object.__setattr__(value, field.name, _whole(getattr(value, field.name)))
    elif isinstance(value, dict):
        for item in value.values():
            _whole(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            _whole(item)
    return value


def _encode_path(value: Any) -> Any:
    if isinstance(value, Path):
        return str(value)
    raise TypeError(f"{type(value).__name__} does not belong in a document")


def dump_json(value: Any, *, indent: int | None = 2) -> str:
    """JSON text of a document; refuses NaN and infinity, which JSON does not have. Names of files that are no text stay readable."""
    text = json.dumps(to_plain(value), indent=indent, ensure_ascii=False, allow_nan=False)
    return _NO_TEXT.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def dump_yaml(value: Any) -> str:
    """YAML text with the fields in their declared order."""
    plain = to_plain(value)
    try:
        return yaml.dump(plain, Dumper=_DUMPER, sort_keys=False, allow_unicode=True, width=120)
    except UnicodeEncodeError:  # names of files that are no text, which libyaml does not take
        return yaml.safe_dump(plain, sort_keys=False, allow_unicode=True, width=120)


def load_yaml(text: str) -> Any:
    """The plain data of a YAML text. Raises `yaml.YAMLError`."""
    try:
        return yaml.load(text, YAML_LOADER)
    except (yaml.YAMLError, UnicodeEncodeError):
        return yaml.safe_load(text)  # whose errors say more


def load_yaml_documents(text: str, source: str = "document") -> list[Any]:
    """The plain data of each document of a multi-document YAML text. Raises `UsageError` naming `source` and the line."""
    try:
        return list(yaml.safe_load_all(text))
    except yaml.YAMLError as bad:
        mark = getattr(bad, "problem_mark", None)
        where = f"{source}:{mark.line + 1}" if mark else source
        raise UsageError(
            f"{where}: is not YAML: {getattr(bad, 'problem', None) or 'cannot be read'}", "mend or remove that document"
        ) from None


def write_document(path: Path, value: Any) -> None:
    """Write `value` to `path` (YAML if it ends so, else JSON), atomically and synced to disk."""
    text = dump_yaml(value) if path.suffix in {".yaml", ".yml"} else dump_json(value) + "\n"
    write_atomically(path, text)


def write_atomically(path: Path, content: str | bytes) -> None:
    """Replace `path` by `content` so that a reader sees the old file or the new one, never a part."""
    data = content.encode("utf-8") if isinstance(content, str) else content
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def read_document(cls: type[D], path: Path) -> D:
    """The document at `path`. Raises `UsageError` when it is missing, unreadable, malformed or of another version."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as bad:
        raise UsageError(f"{path}: {bad.strerror or bad}", "run the stage that writes it first") from None
    try:
        plain = load_yaml(text) if path.suffix in {".yaml", ".yml"} else json.loads(text)
    except (ValueError, yaml.YAMLError) as bad:
        raise UsageError(
            f"{path}: cannot be read: {str(bad).splitlines()[0]}", "restore the file, or run the stage that writes it again"
        ) from None
    return from_plain(cls, plain, str(path))
