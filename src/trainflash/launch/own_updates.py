"""Updates that the program makes without an optimizer, as an earlier run in the sandbox has found them.

They are found by looking for some steps at what changes the parameters (see the probe's `own_updates`). A run that is told of them knows
from its first backward on what ends a step; a record of the training has no updates without that.
"""

from __future__ import annotations

import json
from pathlib import Path

from trainflash.schema import Sandbox

_KEPT = "own_updates.json"  # in the sandbox: [path in the project, qualified name of the function] of each
_FACT = '"k": "update_function"'


def learn(sandbox: Sandbox, run_dir: Path) -> None:
    """After a run: keep what it has found for the runs to come."""
    found = {place for path in sorted(run_dir.glob("facts-*.jsonl")) for place in _found(sandbox, path)}
    known = _known(sandbox)
    if found - known:
        Path(sandbox.directory, _KEPT).write_text(json.dumps(sorted(found | known)), encoding="utf-8")


def told(sandbox: Sandbox) -> str | None:
    """What the next run is told, in JSON; None where nothing is known."""
    known = _known(sandbox)
    return json.dumps(sorted(known)) if known else None


def hand_on(sandbox: Sandbox, other: Sandbox) -> None:
    """What was learnt in `sandbox` holds in `other` too."""
    if (text := told(sandbox)) is not None:
        Path(other.directory, _KEPT).write_text(text, encoding="utf-8")


def _known(sandbox: Sandbox) -> set[tuple[str, str]]:
    try:
        return {(str(path), str(name)) for path, name in json.loads(Path(sandbox.directory, _KEPT).read_text(encoding="utf-8"))}
    except (OSError, ValueError, TypeError):
        return set()


def _found(sandbox: Sandbox, facts: Path) -> list[tuple[str, str]]:
    found = []
    with facts.open(encoding="utf-8", errors="replace") as lines:
        for line in lines:
            if _FACT not in line:
                continue
            try:
                path, _, name = json.loads(line)["at"]
                found.append((Path(path).relative_to(sandbox.project).as_posix(), str(name)))
            except (ValueError, KeyError, TypeError):
                continue  # cut short, or a file outside the project
    return found
