"""Whether networks draw random numbers in their forward pass: what is computed again draws others, unless torch keeps its generators."""

from __future__ import annotations

import re

import libcst as cst

from trainflash.knobs.effects import purity
from trainflash.knobs.project import Project
from trainflash.knobs.reading import callees
from trainflash.knobs.reading.expressions import literal, refuse, short
from trainflash.knobs.reading.python_source import PythonFile, descendants

DROPS = re.compile(r"(?i)drop_?(out|path)|r_?relu|stochastic_?depth|gumbel|distributions")
BY_DEFAULT = {"Transformer", "TransformerEncoderLayer", "TransformerDecoderLayer"}  # of torch.nn: dropout=0.1
LIBRARIES = ("timm.", "torchvision.models.", "transformers.", "diffusers.", "torch.hub.", "torch.distributions.")


def nothing(project: Project) -> None:
    """Raises `UsageError` where a forward pass of the program may draw: by a layer anywhere, a library's network, or its own functions."""
    for file in project.parsed():
        for call in file.calls:
            full = file.full_name(call.func) or ""
            if full.startswith(LIBRARIES):
                raise _draws(file, call)
            if full.startswith("torch.nn.") and full.split(".")[-1] in BY_DEFAULT and not _switched_off(call):
                raise _draws(file, call)
            if DROPS.search(full.split(".")[-1]) and not _switched_off(call):
                raise _draws(file, call)
    for where, function in callees.reached(project, callees.forwards(project)):
        for call in descendants(function.body, cst.Call):
            if callees.called_name(call) in purity.RANDOM_METHODS:  # type: ignore[arg-type]
                raise _draws(where, call)


def _switched_off(call: cst.Call) -> bool:
    """Whether a layer's share is written as 0."""
    given = [arg for arg in call.args if arg.keyword is None or arg.keyword.value in ("p", "dropout", "drop_prob")]
    return any(literal(arg.value) in (0, 0.0) and not isinstance(literal(arg.value), bool) for arg in given[-1:])


def _draws(file: PythonFile, call: cst.CSTNode) -> Exception:
    return refuse(f"{file.location(call)}: `{short(file.text(call))}` may draw in a forward pass, and draws again where that is run again")
