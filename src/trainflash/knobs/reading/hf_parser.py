"""Training arguments of transformers that its `HfArgumentParser` makes: of the command's words, of a file, or of a dictionary.

See https://huggingface.co/docs/transformers/internal/trainer_utils (HfArgumentParser).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import libcst as cst

from trainflash.knobs.project import Project
from trainflash.knobs.reading import callees, derived
from trainflash.knobs.reading.origins import Source
from trainflash.knobs.reading.python_source import PythonFile, descendants, dotted, keyword, positional

CLASSES = ("transformers.TrainingArguments", "transformers.Seq2SeqTrainingArguments")
PARSER = "HfArgumentParser"
WORDS, MAPPING, FILES = "parse_args_into_dataclasses", "parse_dict", ("parse_json_file", "parse_yaml_file")
ENDINGS = (".json", ".yaml", ".yml")


class Reader(Protocol):
    """What follows values to where they are typed."""

    project: Project

    def source(self, file: PythonFile, node: cst.BaseExpression, keys: tuple[str, ...] = ()) -> Source | None: ...

    def configured(self, file: PythonFile, call: cst.Call, name: str) -> Source | None: ...

    def typed(self, file: PythonFile, call: cst.Call, name: str) -> Source | None: ...


def calls(project: Project, classes: tuple[str, ...]) -> list[tuple[PythonFile, cst.Call]]:
    """Calls in which a parser of one of `classes`, or of a class derived from it, makes them; all of one file belong together."""
    wanted = [name for name in classes if name in CLASSES]
    return list(_calls(project, wanted)) if wanted else []


def _calls(project: Project, classes: list[str]) -> Iterator[tuple[PythonFile, cst.Call]]:
    own = {owner.name.value for _, owner in derived.classes(project, tuple(classes))}
    for file in project.parsed(PARSER):
        made = [call for call in file.calls if (dotted(call.func) or "").split(".")[-1] == PARSER]
        names = [node for call in made for arg in call.args for node in descendants(arg, (cst.Name, cst.Attribute))]
        if any(file.full_name(node) in classes or (dotted(node) or "").split(".")[-1] in own for node in names):  # type: ignore[arg-type]
            yield from ((file, call) for call in file.calls if parses(call))


def parses(call: cst.Call) -> bool:
    """Whether a call is one of a parser's, by its name."""
    return callees.method_name(call) in (WORDS, MAPPING, *FILES)


def argument(reader: Reader, file: PythonFile, call: cst.Call, name: str) -> Source | None:
    """Where the field `name` of what such a call makes is typed; None where nobody typed it."""
    method = callees.method_name(call)
    if method == WORDS:
        return reader.typed(file, call, name)
    given = positional(call, 0) or keyword(call, "args" if method == MAPPING else f"{method.split('_')[1]}_file")  # type: ignore[union-attr]
    if method == MAPPING:
        return reader.source(file, given.value, (name,)) if given is not None else None
    by_command = given is not None and "argv" in file.text(given.value)
    if by_command and not any(word.endswith(ENDINGS) for word in reader.project.arguments):
        return None
    return reader.configured(file, call, name)
