"""The CI workflow of the gate for one owner's command: what is asked, put into the template. The template says what happens when."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from trainflash.errors import UsageError

_RUNNER = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_BRANCH = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]*")
_PLACE = re.compile(r"@([A-Z_]+)@")


@dataclass(frozen=True)
class Asked:
    """The workflow that an owner wants: a gate, or `verify`, which says of a pull request whether it is faster and trains the same.

    `paired` compares commits on one runner, `stored` with a baseline on runners that stay the same.
    """

    command: tuple[str, ...]
    mode: Literal["paired", "stored", "verify"] = "paired"
    metrics: tuple[str, ...] = ()
    better: Literal["lower", "higher"] = "lower"
    evaluation: tuple[str, ...] = ()  # (): the training command
    model: str | None = None
    tolerances: Mapping[str, float] = field(default_factory=dict)
    main_branch: str = "main"
    runs_on: tuple[str, ...] = ("ubuntu-latest",)
    python: str = "3.11"
    install: tuple[str, ...] = ("trainflash", "-r", "requirements.txt")
    budget_s: float = 1200.0
    warmup: int = 20
    steps: int = 100
    repeat: int = 8  # of the baseline: with eight runs a side the interval is narrower than the tolerance


def template_of(folder: Path, mode: str) -> str:
    """The template in `folder`, with the steps that each of its jobs begins with."""
    steps = (folder / "installed.yml.template").read_text(encoding="utf-8")
    return (folder / f"{name_of(mode)}.template").read_text(encoding="utf-8").replace("@INSTALLED@\n", steps)


def name_of(mode: str) -> str:
    """The name of the workflow's file."""
    return "verify_speed.yml" if mode == "verify" else "perf_gate.yml"


def rendered(template: str, asked: Asked) -> str:
    """The workflow's text. Raises `UsageError` for what cannot stand in a workflow."""
    if not asked.command:
        raise UsageError("no training command", "put it after `--`, such as `-- python train.py`")
    if not all(_RUNNER.fullmatch(label) for label in asked.runs_on) or not asked.runs_on:
        raise UsageError(f"{', '.join(asked.runs_on)!r} is no runner", "give labels, such as ubuntu-latest or self-hosted,gpu")
    if not _BRANCH.fullmatch(asked.main_branch):
        raise UsageError(f"{asked.main_branch!r} is no branch", "give the name of the main branch")
    if not re.fullmatch(r"3\.\d{1,2}", asked.python):
        raise UsageError(f"{asked.python!r} is no Python version", "such as 3.11")
    evaluated = _evaluated(asked)
    if asked.mode == "verify" and (asked.model or asked.tolerances or asked.evaluation or len(asked.metrics) > 1):
        raise UsageError(
            "a model, tolerances, an --eval-command and a second metric are a gate's", "leave them out, or choose another --mode"
        )
    values = {
        "MAIN_BRANCH": asked.main_branch,
        "RUNS_ON": asked.runs_on[0] if len(asked.runs_on) == 1 else f"[{', '.join(asked.runs_on)}]",
        "TIMEOUT": str(max(30, round(asked.budget_s / 60) * 2 + 30)),
        "PYTHON": asked.python,
        "INSTALL": _words(asked.install),
        "COMPARE": _compare(asked),
        "OPTIONS": "".join(f" {word}" for word in (*_tolerances(asked), *evaluated)),
        "BUDGET": f"{asked.budget_s:.0f}s",
        "METRIC": f" --metric {_words(asked.metrics[:1])}" if asked.metrics else "",
        "MEASURE": f"--warmup {asked.warmup} --steps {asked.steps}",
        "REPEAT": str(asked.repeat),
        "EVALUATED": "".join(f" {word}" for word in evaluated),
        "EVAL_FILE": ' --eval "$RESULTS/eval.json"' if evaluated else "",
        "COMMAND": _words(asked.command),
    }
    return _PLACE.sub(lambda found: values[found[1]], template)


def _compare(asked: Asked) -> str:
    if asked.mode == "paired":
        stored = " --allow-missing-baseline" if asked.model else ""  # a model's evaluation has no pair
        return f'--against "$BASE" --budget {asked.budget_s:.0f}s{stored}'
    return f"--warmup {asked.warmup} --steps {asked.steps} --max-repeats {asked.repeat} --allow-missing-baseline"


def _tolerances(asked: Asked) -> list[str]:
    return [f"--tolerance {name}={value:g}" for name, value in sorted(asked.tolerances.items())]


def _evaluated(asked: Asked) -> list[str]:
    words = [f"--metric {_words((each,))}" for each in asked.metrics]
    if asked.metrics and asked.better != "lower":
        words.append(f"--better {asked.better}")
    if asked.metrics and asked.evaluation:
        words.append(f"--eval-command {_words((_words(asked.evaluation),))}")
    if asked.model:
        words.append(f"--model {_words((asked.model,))}")
    return words


def _words(words: tuple[str, ...]) -> str:
    """Words as a shell reads them, on one line and without an expression of the workflow's own language."""
    text = shlex.join(words)
    if "${{" in text:
        raise UsageError("the command holds ${{, which the workflow would evaluate", "pass that by a variable of the environment")
    if not text.isprintable():
        raise UsageError("the command holds a line break or a control character", "put it into a script, and name the script")
    return text
