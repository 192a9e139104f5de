"""What a knob may ask about a run, by dotted name, and the small language of its conditions and values.

Facts: `train_loader.*`, `eval_loader.*` and `loader.*` (fields of `LoaderFacts`; the last is the one that the finding names),
`evaluation.*`, `checkpoint.*`, `logging.*` (`Activity`, and `times_too_often`, see `cadence`), `threads.*` (`Threads`), `settings.NAME`,
`device` ("cpu" or "cuda"), `torch` (2.13 is 213), `cpus`, `ranks`, the other parts of a summary by their names (`updates.*`, `numerics.*`,
`memory.*`, `operators.*`, `communication.*`, `compilation.*`, `collections.*`; of `recompute`, `in_vain`, `attention`, `ignored_targets`,
`sync_points` the one that the finding names, else the costliest), single figures such as `padding_share` and `input_shapes`, the finding's
own `finding.location` and `finding.times_too_often`, `memory_used` (most of the device's memory or, on a CPU, of the host's, as a share)
and `host_memory_used`, `batches_a_pass` (over the training loader), and in expressions `value`, what the edited place says now. None means
not measured. A text in an expression stands in quotes of its own.
"""

from __future__ import annotations

import ast
import dataclasses
import math
import operator
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, get_args, get_type_hints

from trainflash.errors import UsageError
from trainflash.knobs import cadence
from trainflash.schema import Activity, Finding, LoaderFacts, Summary, Threads
from trainflash.schema.summaries import SETTINGS

OPERATORS: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
}
FUNCTIONS: dict[str, Callable[..., Any]] = {"min": min, "max": max, "floor": math.floor}
EXPRESSIONS = "use numbers, quoted text, facts, + - * //, min, max and floor"
PARTS = ("updates", "numerics", "memory", "operators", "communication", "compilation", "collections", "data_function")
LISTS = ("recompute", "attention", "sync_points", "in_vain", "ignored_targets")
FIGURES = ("padding_share", "common_padding_share", "input_shapes", "listed_numbers", "epochs", "steps")
ROOTS = (
    "train_loader", "eval_loader", "loader", "evaluation", "checkpoint", "logging", "threads", "settings", "device", "torch", "cpus",
    "ranks", "value", "finding", "memory_used", "host_memory_used", "batches_a_pass", *PARTS, *LISTS, *FIGURES,
)  # fmt: skip
_KINDS: dict[str, type] = {
    **dict.fromkeys(("train_loader", "eval_loader", "loader"), LoaderFacts),
    **dict.fromkeys(("evaluation", "checkpoint", "logging"), Activity),
    **{"threads": Threads, "finding": Finding},
}


def exists(name: str) -> bool:
    """Whether a run can have a fact of this name."""
    return name in beside(name)


def beside(name: str) -> tuple[str, ...]:
    """The names that may stand where `name` does: roots, or all fields of its own."""
    root, dot, _ = name.partition(".")
    if not dot or root not in ROOTS:
        return ROOTS
    if root == "settings":
        return tuple(f"settings.{setting}" for setting in SETTINGS)
    hint = _KINDS.get(root, get_type_hints(Summary).get(root))
    kind = next((each for each in _parts(hint) if dataclasses.is_dataclass(each)), None)
    if kind is None:
        return (root,)
    more = ("times_too_often",) if kind in (Activity, Finding) else ()
    return tuple(f"{root}.{field}" for field in (*(each.name for each in dataclasses.fields(kind)), *more))


def names_in(expression: object) -> tuple[str, ...]:
    """The facts that an expression of a knob's `values` asks for. Raises `UsageError` when it cannot be read."""
    if not isinstance(expression, str):
        return ()
    read = [node for node in ast.walk(_tree(expression)) if isinstance(node, (ast.Name, ast.Attribute))]
    inside = {id(node.value) for node in read if isinstance(node, ast.Attribute)}
    return tuple(ast.unparse(node) for node in read if id(node) not in inside and ast.unparse(node) not in FUNCTIONS)


def _parts(hint: Any) -> tuple[Any, ...]:
    """A type and those that it is put together from, such as `Memory | None` and `tuple[Recompute, ...]`."""
    return (hint, *(part for each in get_args(hint) for part in _parts(each)))


def _tree(expression: str) -> ast.expr:
    try:
        return ast.parse(expression, mode="eval").body
    except SyntaxError:
        raise UsageError(f"cannot read the expression {expression!r}", EXPRESSIONS) from None


@dataclass(frozen=True)
class Condition:
    """One demand on a fact. Exactly one comparison is given; `unknown` says what holds where the fact was not measured."""

    fact: str
    otherwise: str  # the reason given when it does not hold
    equals: bool | int | str | None = None
    differs: bool | int | str | None = None
    below: float | None = None
    above: float | None = None
    exists: bool | None = None
    unknown: bool = False

    def holds(self, run: Facts) -> bool:
        """Whether the run meets the demand."""
        found = run.get(self.fact)
        if self.exists is not None:
            return (found is not None) is self.exists
        if found is None:
            return self.unknown
        if self.equals is not None:
            return found == self.equals
        if self.differs is not None:
            return found != self.differs
        return (self.below is None or found < self.below) and (self.above is None or found > self.above)


@dataclass(frozen=True)
class Facts:
    """One run and the finding that is to be answered (None: none), asked by dotted names."""

    summary: Summary
    finding: Finding | None = None
    whole_steps: int | None = None  # of the program, where another run saw its end

    def get(self, name: str) -> Any:
        """The fact called `name`, None when it was not measured. Raises `UsageError` for a name that no run has."""
        root, _, field = name.partition(".")
        if root not in ROOTS:
            raise UsageError(f"there is no fact {name!r}", f"facts begin with {', '.join(ROOTS)}")
        if root == "settings":
            return next((setting.value for setting in self.summary.settings if setting.name == field), None)
        found = self._root(root)
        if field == "times_too_often" and (found is None or isinstance(found, (Activity, Finding))):
            kind = self.finding.kind if self.finding is not None else ""
            ran = found if isinstance(found, Activity) else self._root(kind) if kind in ACTIVITIES else None
            return cadence.times_too_often(self.finding, cadence.happens(ran, self.summary, self.whole_steps))
        if not field or found is None:
            return found
        if not hasattr(found, field):
            raise UsageError(f"there is no fact {name!r}", "look at the fields of this part of summary.json")
        return getattr(found, field)

    def happens(self) -> int | None:
        """How many times the whole program does what the finding is about, an evaluation, a checkpoint or a log line; None: not known."""
        kind = self.finding.kind if self.finding is not None else ""
        ran = self._root(kind) if kind in ACTIVITIES else None
        return None if ran is None else cadence.happens(ran, self.summary, self.whole_steps)

    def _root(self, root: str) -> Any:
        summary = self.summary
        loader = train_loader(summary)
        cpus = summary.threads.cpus if summary.threads is not None else None
        answers: dict[str, Callable[[], Any]] = {
            "train_loader": lambda: loader,
            "eval_loader": lambda: eval_loader(summary),
            "loader": self.loader,
            "evaluation": lambda: activity(summary, "Eval"),
            "checkpoint": lambda: activity(summary, "Ckpt"),
            "logging": lambda: activity(summary, "Log"),
            "threads": lambda: summary.threads,
            "device": lambda: summary.device.split(":")[0],
            "torch": lambda: _version(summary.versions.get("torch", "")),
            "cpus": lambda: None if cpus is None else max(1, math.floor(cpus)),
            "ranks": lambda: summary.ranks,
            "finding": lambda: self.finding,
            "memory_used": lambda: memory_used(summary),
            "host_memory_used": lambda: memory_used(summary, host=True),
            "batches_a_pass": lambda: None if loader is None else summary.batches_a_pass(loader),
        }
        if root in PARTS or root in FIGURES:
            return getattr(summary, root)
        if root in LISTS:
            return self._named(getattr(summary, root))
        return answers[root]() if root in answers else None

    def _named(self, found: tuple[Any, ...]) -> Any:
        """Of several the one at the finding's place, else the costliest."""
        place = self.finding.location if self.finding is not None else None
        here = [each for each in found if place is not None and each.location == place]
        return max(here or found, key=lambda each: each.share, default=None)

    def loader(self) -> LoaderFacts | None:
        """The loader that the finding names, else the one of the training."""
        place = self.finding.location if self.finding is not None else None
        named = [loader for loader in self.summary.loaders if place is not None and loader.location == place and loader.role != "unused"]
        return named[0] if named else train_loader(self.summary)

    def evaluate(self, expression: object, current: Any) -> Any:
        """The value that `expression` means in this run: a YAML scalar as it is, or arithmetic over facts; None where one is unknown.

        Raises `UsageError` when the expression is malformed.
        """
        if not isinstance(expression, str):
            return expression
        return self._evaluate(_tree(expression), current)

    def _evaluate(self, node: ast.expr, current: Any) -> Any:
        if isinstance(node, ast.Constant) and isinstance(node.value, (int, float, bool, str)):
            return node.value
        if isinstance(node, (ast.Name, ast.Attribute)):
            name = ast.unparse(node)
            return current if name == "value" else self.get(name)
        if isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
            left, right = self._evaluate(node.left, current), self._evaluate(node.right, current)
            if not _number(left) or not _number(right) or (isinstance(node.op, ast.FloorDiv) and right == 0):
                return None
            return OPERATORS[type(node.op)](left, right)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in FUNCTIONS and not node.keywords:
            values = [self._evaluate(argument, current) for argument in node.args]
            return FUNCTIONS[node.func.id](*values) if values and all(_number(value) for value in values) else None
        raise UsageError(f"cannot read the expression {ast.unparse(node)!r}", EXPRESSIONS)


def train_loader(summary: Summary) -> LoaderFacts | None:
    """The loader that fed the training: of several the one that was waited for most."""
    return summary.busiest_loader("train")


def eval_loader(summary: Summary) -> LoaderFacts | None:
    """The loader that fed evaluation."""
    return summary.busiest_loader("eval")


ACTIVITIES = ("evaluation", "checkpoint", "logging")


def activity(summary: Summary, phase: str) -> Activity | None:
    """The costliest evaluation, checkpoint or logging of the run."""
    found = [each for each in summary.activities if each.phase == phase]
    return max(found, key=lambda each: each.count * each.mean_ms, default=None)


def memory_used(summary: Summary, *, host: bool = False) -> float | None:
    """Most of the device's memory that was used, of the host's where there is no device or `host` asks for it, from 0 to 1."""
    memory = summary.memory
    if memory is None:
        return None
    pairs = ((memory.device_peak_bytes, memory.device_total_bytes), (memory.host_peak_bytes, memory.host_limit_bytes))
    used, total = pairs[host or summary.device == "cpu"]
    return used / total if used is not None and total else None


def _version(text: str) -> int | None:
    found = re.match(r"(\d+)\.(\d+)", text)
    return None if found is None else 100 * int(found[1]) + int(found[2])


def _number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
