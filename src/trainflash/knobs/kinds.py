"""Kinds of edits that a knob file may name. A new knob of one of these needs no code; what each takes stands in its docstring.

`at` says which place is meant: a role (`train_loader`, `loader`, `threads`, `setting`, `program`) or a fact
that holds a place, such as `updates.location` (where the optimizer was made), `recompute.location` or `finding.location`. The call at that
line is meant, or the only one in the functions that the line calls. Where such a fact is unknown, the only call of that name in the
program is meant.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

ROLES = ("train_loader", "loader", "threads", "setting", "program")


class Edit:
    """One kind of edit. Its name in a knob file is that of the class, in snake case."""


@dataclass(frozen=True)
class CallArgument(Edit):
    """Set `argument` of a call to the value, where that value comes from.

    `at` says which call: the one that made the training loader, the evaluation loader or the loader that the finding names, the one
    that set the threads, the one that switched `setting` on, one at a place that a fact names, or the only one of that name in the
    program. `shared` says who else may read the edited value: `loaders` other loaders too, `alone` nobody; where it is read elsewhere,
    `local` edits the call instead (`anyhow`: also where the value is computed, and the run saw which, as of a `setting` that was on).
    With `written`, `true` is written as that text. `made` names the fact that holds the class which the run saw made at `at`, for
    places where the source picks the class from a table. `share` says that a fraction there is a part of a whole, not a count, and how
    far it may grow.
    """

    calls: tuple[str, ...]  # dotted names with imports resolved (`lib.*Config`: all of that form), or `*.method`
    argument: str
    at: str = "program"
    setting: str | None = None
    position: int | None = None  # in a positional call, from 0
    default: bool | int | str | None = None  # what the call means without the argument
    fact: str | None = None  # what the run saw, to check the source against
    made: str | None = None
    add: bool = True  # may the argument be added where it is absent
    shared: Literal["loaders", "alone"] = "alone"
    local: Literal["multiply", "literal", "anyhow"] | None = None
    conflicts: tuple[str, ...] = ()  # arguments beside which it may not stand
    absent: tuple[str, ...] = ()  # calls anywhere in the program beside which it is refused
    rivals: tuple[str, ...] = ()  # settings that decide the same, as of `insert_call`
    asked: tuple[str, ...] = ()  # as of `insert_call`
    unless: tuple[str, ...] = ()  # texts of the program's Python files, as typed, beside which it is refused
    beside: tuple[str, ...] = ()  # such texts of which one must be there: what the argument is about
    written: str | None = None
    share: Literal["below one", "up to one"] | None = None
    since: str | None = None  # the first version that has the argument, such as `transformers 5.2`; what the run did not say has none
    known_since: tuple[str, ...] = ()  # first versions that take the value; what the run did not say takes it
    decides: bool = False  # as of `assigned_attribute`
    before: str | None = None  # the first version that has it no longer
    ends_workers: bool = False  # of a loader: the value leaves no worker processes
    checks: tuple[str, ...] = ()  # what must hold of the program, of `CHECKS` in `edits/checks.py`


@dataclass(frozen=True)
class ReplaceCall(Edit):
    """Replace a call by another of its module: `detect_anomaly()` by its switch, `no_grad()` in the evaluating function by another."""

    calls: tuple[str, ...]
    to: str  # replaces the last name and the arguments
    at: str = "setting"
    setting: str | None = None
    checks: tuple[str, ...] = ()  # as of `call_argument`


@dataclass(frozen=True)
class InsertCall(Edit):
    """Insert a statement behind the imports of the entry script; refused where `absent` or one of `rivals` is set already.

    Rivals are dotted names, arguments of a call (`lib.Trainer(benchmark)`), or environment variables (`$NAME`). `under` is the library's
    switch without which the setting does nothing: refused where the program may switch it off.

    `behind` is a fact that holds the line of the program that decides the setting without naming it, as a table of functions does: there
    the statement stands behind that line, and behind the loops around it.
    """

    statement: str  # `{value}` stands for the value
    module: str  # imported if it is not yet
    absent: str
    default_fact: str | None = None  # what holds without the statement
    default: bool | int | str | None = None  # the same, where the run does not say
    rivals: tuple[str, ...] = ()  # other names for the same setting
    behind: str | None = None
    under: str | None = None
    asked: tuple[str, ...] = ()  # functions that tell the setting: refused where more is done with the answer than to show it


@dataclass(frozen=True)
class AssignedAttribute(Edit):
    """Change the value that the program assigns to `attribute`, a dotted name such as `torch.backends.cudnn.benchmark`.

    Refused where the source does not show that the run came by the assignment; `under` as of `insert_call`. With `decides`, no later edit
    of the knob is tried where this one has its place and is refused: what another sets would not count beside it.
    """

    attribute: str
    decides: bool = False
    under: str | None = None


@dataclass(frozen=True)
class Environment(Edit):
    """Set an environment variable where it is written: in the command or a shell script of it.

    With `unset`, which says what holds without it, it is given to the program where nothing speaks of it; refused beside `rivals`,
    variables that decide the same.
    """

    variable: str
    unset: str | None = None
    rivals: tuple[str, ...] = ()


@dataclass(frozen=True)
class RemoveCall(Edit):
    """Take away a call that stands as a statement of its own or is all that is asserted, at the line where the run saw it.

    `instead` is written in its place where its value is only added up, kept or shown.
    """

    calls: tuple[str, ...]
    at: str
    setting: str | None = None
    absent: tuple[str, ...] = ()  # as of `call_argument`
    instead: str | None = None


@dataclass(frozen=True)
class UnwrapCall(Edit):
    """Turn `wrapper(function, *arguments)` into `function(*arguments)`; `options` are keywords of the wrapper's own, which go with it.

    With `segments` the wrapper runs a `torch.nn.Sequential` in parts, whose number stands behind it and goes, too.
    """

    calls: tuple[str, ...]
    at: str
    options: tuple[str, ...] = ()
    segments: bool = False
    refused: tuple[str, ...] = ()  # keywords that do more than that


@dataclass(frozen=True)
class ModelStatement(Edit):
    """Insert a statement about the trained network in front of the line that builds its optimizer; `{model}` stands for its name."""

    statement: str
    absent: tuple[str, ...] = ()  # calls beside which it is refused
    label: str = ""


@dataclass(frozen=True)
class ForwardBlock(Edit):
    """Put the statements from the network's forward to the loss under `with context:`; the backward pass stays outside."""

    context: str  # `{device}` stands for the kind of device of the run
    module: str
    absent: tuple[str, ...] = ()


@dataclass(frozen=True)
class Memoize(Edit):
    """Cache a pure function's results. `memory_share` bounds them, of the memory that is available."""

    memory_share: float = 0.25


@dataclass(frozen=True)
class Interval(Edit):
    """Change N in the condition `… % N == 0` that guards the activity."""

    phase: Literal["Eval", "Ckpt", "Log"]


@dataclass(frozen=True)
class Seldom(Edit):
    """Put what only watches the training, at the finding's line, under a new condition: every so many steps."""


@dataclass(frozen=True)
class AskedFirst(Edit):
    """Put work at the finding's line, whose results only a condition behind it uses, under that condition."""


@dataclass(frozen=True)
class PadToLongest(Edit):
    """In the loader's collate function, pad to the longest sample of the batch instead of a fixed width."""


@dataclass(frozen=True)
class PaddingSetting(Edit):
    """Set what the program or its tokenizer is told about padding from `"max_length"` to `"longest"`, where that is typed."""


@dataclass(frozen=True)
class Hoist(Edit):
    """Move an assignment out of the loop around it, where nothing in the loop changes what it is made of.

    `what` is `loader`, the DataLoader that the finding names, or `pure`, the line of the finding.
    """

    what: Literal["loader", "pure"]


@dataclass(frozen=True)
class Exchange(Edit):
    """Multiply one value and divide another by the same factor, so that their product stays. The value is that of `more`."""

    more: Any
    less: Any


@dataclass(frozen=True)
class Accumulation(Edit):
    """The number by which a plain loop divides the loss of each micro-batch."""


@dataclass(frozen=True)
class DrawnBatch(Edit):
    """The number of rows in a function of the program's that draws batches, where there is no DataLoader."""


EDITS: Mapping[str, type[Edit]] = {re.sub(r"\B[A-Z]", r"_\g<0>", kind.__name__).lower(): kind for kind in Edit.__subclasses__()}
