"""Cases of edits that are no plain arguments of calls: a program, the line that the run names, and the lines that change or the reason."""

from __future__ import annotations

from dataclasses import MISSING, dataclass, field, fields
from pathlib import Path

import yaml


@dataclass(frozen=True)
class Case:
    """`here` marks the line that the run names; `gone` and `new` are the changed lines, or `refused` is part of the reason.

    `typed` is the command as the edit makes it, `given` the variables that it gives to the command.
    """

    knob: str
    how: str
    source: str
    here: str
    new: list[str] = field(default_factory=list)
    gone: list[str] = field(default_factory=list)
    typed: str = ""
    given: dict[str, str] = field(default_factory=dict)
    refused: str = ""
    value: str | None = None
    command: str = "python train.py"
    files: dict[str, str] = field(default_factory=dict)
    facts: dict[str, object] = field(default_factory=dict)


DATA = Path(__file__).resolve().parents[1] / "data"
FILES = (
    "knob_spellings.yaml",
    "knob_pitfalls.yaml",  # programs that a careless edit would break
    "knob_limits.yaml",  # values that the program does not allow, keys that stand twice or serve several
    "knob_padding.yaml",  # ways of padding to a fixed length
    "knob_collecting.yaml",  # helpers that collect garbage, and settings of the collector
    "knob_guards.yaml",  # debugging aids behind a setting of the program's own
    "knob_every_nth.yaml",  # statements that each step does and training can do without
    "knob_asked_first.yaml",  # work whose results only a condition behind it uses
    "knob_cadences.yaml",  # ways of saying that something happens once in N steps
    "knob_loaders.yaml",  # loaders that are made again for each pass
    "knob_recomputed.yaml",  # activation checkpointing that does more than compute again
    "knob_micro_batches.yaml",  # what is done with each micro-batch
    "knob_workers.yaml",  # samples that share something with the main process
    "knob_watching.yaml",  # watches that the program counts on
    "knob_ranks.yaml",  # what other parts of the program say of rows, batches and gradients
    "knob_ahead.yaml",  # what runs ahead of training, in threads and workers, and what is kept longer
    "knob_attention.yaml",  # attention whose products are written as sums over letters
    "knob_library_settings.yaml",  # settings of torch, and which of several that decide the same counts
    "knob_pinned.yaml",  # batches that lie on the device, or that torch does not look into
    "knob_hf_parser.yaml",  # training arguments that transformers' own parser makes
    "knob_network.yaml",  # the network, attention in it and its compiler
)


def case(name: str, plain: dict) -> Case:
    """Raises `ValueError` that names the file, the case and its wrong fields, with those that there are."""
    known = {each.name for each in fields(Case)}
    missing = {each.name for each in fields(Case) if each.default is MISSING and each.default_factory is MISSING} - set(plain)
    if set(plain) - known or missing:
        wrong = ", ".join([*(f"unknown {key!r}" for key in plain if key not in known), *(f"no {key!r}" for key in sorted(missing))])
        raise ValueError(f"{name}: {plain.get('knob')}, {plain.get('how')}: {wrong}; a case has {', '.join(sorted(known))}")
    return Case(**plain)


CASES = tuple(case(name, each) for name in FILES for each in yaml.safe_load((DATA / name).read_text(encoding="utf-8")))
