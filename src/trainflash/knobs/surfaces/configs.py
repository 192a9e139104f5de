"""Values in YAML, JSON, TOML and INI files: where their text lies, so that a change replaces only that text."""

from __future__ import annotations

import configparser
import json
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from io import StringIO
from typing import Any

import yaml
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode

from trainflash.errors import UsageError
from trainflash.knobs.splices import Splice, edited

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

Path = tuple[str, ...]
DEFAULTS = "DEFAULT"  # configparser's section whose values all others have, too
TRUE_WORDS = {
    "true": "false",
    "True": "False",
    "TRUE": "FALSE",
    "yes": "no",
    "Yes": "No",
    "YES": "NO",
    "on": "off",
    "On": "Off",
    "ON": "OFF",
}
BOOL_WORDS = TRUE_WORDS | {no: yes for yes, no in TRUE_WORDS.items()}


@dataclass(frozen=True)
class Leaf:
    """One scalar of a configuration file. `start` and `end` are bytes; `shared` counts the other places that an anchor brings it to."""

    file: str
    path: Path
    value: Any
    start: int
    end: int
    text: str
    shared: int = 0

    def splice(self, value: Any) -> Splice:
        """The edit that sets this scalar to `value`, in the spelling of its file."""
        return Splice(self.file, self.start, self.end, _written(value, self.text, self.file))


def leaves(file: str, raw: bytes) -> tuple[Leaf, ...]:
    """Every scalar under string keys in `raw`. Raises `UsageError` when the file cannot be read as what its name says."""
    try:
        text = raw.decode("utf-8")
        reader: Callable[[str, str], Iterator[Leaf]] = {"json": _json, "toml": _toml, "ini": _ini, "cfg": _ini}.get(
            file.rsplit(".", 1)[-1], _yaml
        )
        return tuple(reader(file, text))
    except (ValueError, YAMLError, yaml.YAMLError, configparser.Error, RecursionError) as bad:
        raise UsageError(
            f"{file}: cannot be read: {str(bad).splitlines()[0]}", "this file is left alone; make the change by hand"
        ) from None


def only_changed(file: str, raw: bytes, leaf: Leaf, splice: Splice) -> bool:
    """Whether the edit changes the value of `leaf` (and of what its anchor feeds) and nothing else in the file."""
    before, after = leaves(file, raw), leaves(file, edited(raw, [splice]))
    if [item.path for item in before] != [item.path for item in after]:
        return False
    changed = [old.path for old, new in zip(before, after, strict=True) if old.value != new.value or type(old.value) is not type(new.value)]
    return leaf.path in changed and len(changed) <= 1 + leaf.shared


def _written(value: Any, before: str, file: str) -> str:
    if isinstance(value, bool):
        if BOOL_WORDS.get(before) is not None and file.endswith((".yaml", ".yml", ".ini", ".cfg")):
            return before if (before in TRUE_WORDS) is value else BOOL_WORDS[before]
        return "true" if value else "false"
    if isinstance(value, str) and not file.endswith((".json", ".toml")):
        quote = before[:1] if before[:1] in "'\"" else ""
        return f"{quote}{value}{quote}"
    return "null" if value is None else json.dumps(value) if isinstance(value, str) else repr(value)


def _offsets(text: str) -> Callable[[int], int]:
    if text.isascii():
        return lambda index: index
    return lambda index: len(text[:index].encode("utf-8"))


def _yaml(file: str, text: str) -> Iterator[Leaf]:
    body = text.removeprefix("\ufeff")
    skipped = len(text) - len(body)
    reader = YAML()
    documents = list(reader.compose_all(StringIO(body)))
    if len(documents) != 1:
        raise ValueError("holds several documents, or none")
    at = _offsets(text)
    found = list(_nodes(documents[0], (), ()))
    for path, node in found:
        start, end = node.start_mark.index + skipped, node.end_mark.index + skipped
        source = text[start:end]
        prefix = re.match(r"(?:[&!]\S*\s+)*", source)
        start += prefix.end() if prefix else 0
        spelled = text[start:end]
        if not spelled or spelled[0] in "|>":
            continue
        shared = sum(1 for _, other in found if other is node) - 1
        yield Leaf(file, path, yaml.safe_load(spelled), at(start), at(end), spelled, shared)


def _nodes(node: Node | None, path: Path, around: tuple[int, ...]) -> Iterator[tuple[Path, ScalarNode]]:
    if isinstance(node, ScalarNode):
        yield path, node
    if not isinstance(node, MappingNode) or id(node) in around:
        return
    own = {key.value: number for number, (key, _) in enumerate(node.value) if isinstance(key, ScalarNode)}
    for number, (key, value) in enumerate(node.value):
        if not isinstance(key, ScalarNode):
            continue
        if key.value == "<<":
            merged = value.value if not isinstance(value, MappingNode) else [value]
            for base in merged:
                for below, leaf in _nodes(base, (), (*around, id(node))):
                    if below and below[0] not in own:
                        yield (*path, *below), leaf
        elif own[key.value] == number:  # of a key that stands twice, the last one counts
            yield from _nodes(value, (*path, key.value), (*around, id(node)))


def _json(file: str, text: str) -> Iterator[Leaf]:
    json.loads(text.removeprefix("\ufeff"))
    decoder, at = json.JSONDecoder(), _offsets(text)

    def space(index: int) -> int:
        while index < len(text) and text[index] in " \t\r\n\ufeff":
            index += 1
        return index

    def walk(index: int, path: Path) -> Iterator[Leaf]:
        index = space(index)
        if text[index] != "{":
            value, end = decoder.raw_decode(text, index)
            if not isinstance(value, list):
                yield Leaf(file, path, value, at(index), at(end), text[index:end])
            return
        index = space(index + 1)
        members: dict[str, tuple[Leaf, ...]] = {}  # of a key that stands twice, the last one counts
        while text[index] != "}":
            key, index = decoder.raw_decode(text, index)
            index = space(space(index) + 1)
            members.pop(key, None)
            members[key] = tuple(walk(index, (*path, key)))
            _, index = decoder.raw_decode(text, index)
            index = space(index)
            index = space(index + 1) if text[index] == "," else index
        for found in members.values():
            yield from found

    yield from walk(0, ())


def _toml(file: str, text: str) -> Iterator[Leaf]:
    """Only plain `key = scalar` lines under plain tables; anything else is skipped, and the parsed document must agree."""
    document, at, table, offset = tomllib.loads(text), _offsets(text), (), 0
    for line in text.splitlines(keepends=True):
        header = re.match(r"\s*\[\s*([\w.\-\" ]+?)\s*\]\s*(?:#.*)?$", line)
        pair = re.match(r"\s*([\w.\-]+)\s*=\s*(true|false|[+-]?[\d_]+(?:\.\d+)?(?:[eE][+-]?\d+)?)\s*(?:#.*)?$", line)
        if header:
            table = tuple(part.strip(' "') for part in header[1].split("."))
        elif line.lstrip().startswith("[["):
            table = ("[[",)
        elif pair:
            path = (*table, *pair[1].split("."))
            value = tomllib.loads(f"x = {pair[2]}")["x"]
            if _at(document, path) == value:
                yield Leaf(file, path, value, at(offset + pair.start(2)), at(offset + pair.end(2)), pair[2])
        offset += len(line)


def _ini(file: str, text: str) -> Iterator[Leaf]:
    """Plain `key = value` lines under sections, whose value the parser reads as it stands; names of keys are lower case, as it has them.

    What `[DEFAULT]` says stands under each section that does not say it itself.
    """
    parsed = configparser.ConfigParser(interpolation=None, default_section="")
    parsed.read_string(text.removeprefix("\ufeff"))
    at, section, offset = _offsets(text), "", 0
    for line in text.splitlines(keepends=True):
        header = re.match(r"\[([^\]]+)\]", line)
        pair = re.match(r"([^\s=:#;][^=:]*?)\s*[=:]\s*(\S+)\s*$", line)
        if header:
            section = header[1]
        elif pair and section and parsed.get(section, pair[1], fallback=None) == pair[2]:
            words = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}
            plain = re.fullmatch(r"[+-]?\d+", pair[2])
            value = words.get(pair[2].lower(), int(pair[2]) if plain else pair[2])
            readers = [section]
            if section == DEFAULTS:
                readers = [each for each in parsed.sections() if each != DEFAULTS and not parsed.has_option(each, pair[1])]
            start, end, shared = at(offset + pair.start(2)), at(offset + pair.end(2)), len(readers) if section == DEFAULTS else 0
            for reader in readers or [section]:
                yield Leaf(file, (reader, pair[1].lower()), value, start, end, pair[2], shared)
        offset += len(line)


def _at(document: Any, path: Path) -> Any:
    for key in path:
        if not isinstance(document, dict) or key not in document:
            return None
        document = document[key]
    return document
