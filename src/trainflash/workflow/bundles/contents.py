"""What goes into a bundle: diff, claim, verdict, starts, step times and losses, without secrets and without paths of a machine."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from trainflash import fidelity, redact, verdict
from trainflash import sandbox as sandboxes
from trainflash.errors import UsageError
from trainflash.schema import Bundle, Claim, Command, Runs, Verdict, Verified, from_plain, read_document, to_plain
from trainflash.workflow import verifying
from trainflash.workflow.bundles import archive
from trainflash.workflow.session import Session
from trainflash.workflow.states import Pair
from trainflash.workflow.verifying import Demands

# What begins at the root and has a folder: only its last name stays. Not the path of a URL, nor what goes on a relative path.
_ABSOLUTE = re.compile(r"(?<![\w./~*-])/(?:[^\s/'\"`:,;()\[\]{}<>]+/)+([^\s/'\"`:,;()\[\]{}<>]*)")
_OWN = frozenset({"machine", "load", "cpu_pressure"})  # the machine's name, and what it did besides


def diff_of(session: Session, pair: Pair) -> str:
    """The change, as a bundle may hold it. To be asked before anything is measured.

    Raises `UsageError` where it reaches outside the project or holds a secret: without that it would apply nowhere.
    """
    outside = [path for path in sandboxes.changed_files(session.sandbox, *pair.commits) if path.startswith("../")]
    if outside:
        raise UsageError(f"the change reaches outside the project, to {outside[0]}", "bundle it from the root of the repository")
    text = sandboxes.diff(session.sandbox, *pair.commits)
    hidden = next((line for line, shown in zip(text.split("\n"), redact.text(text).split("\n"), strict=False) if line != shown), None)
    if hidden is not None:
        raise UsageError(f"the change, or a line beside it, holds a secret: {redact.text(hidden)[:80]}", "take it out of the source first")
    for side in pair.commands:
        secret = next((name for name, value in redact.environment(side.env).items() if value != side.env[name]), None)
        if secret is not None:
            raise UsageError(f"the change sets {secret}, which is a secret", "set it outside of the change")
    return text


def pack(session: Session, pair: Pair, diff: str, found: Verified, directory: Path, timing: Path, demands: Demands) -> bytes:
    """The bundle of a verdict; `directory` and `timing` hold the files of its comparison and its starts."""
    claim = Claim(
        compared=replace(found.compared, command=""),
        baseline=_shown(pair.commands[0]),
        candidate=_shown(pair.commands[1]),
        words=pair.words,
        machine=facts(found.machine),
        tolerance=demands.tolerance,
        min_gain=demands.min_gain,
        allowed=tuple(sorted(demands.allowed | verdict.agreed_to(found.verdict))),
        metric=demands.metric,
        metric_tolerance=demands.metric_tolerance,
    )
    members = {
        "claim.json": archive.canonical(clean(to_plain(claim))),
        "verdict.json": archive.canonical(clean(to_plain(found.verdict))),
        "change.diff": diff.encode("utf-8", "surrogateescape"),
        **_starts(timing),
        "records.jsonl": _losses(verifying.baseline_records(session, pair.commits[0], pair.commands[0]), directory / "fidelity"),
    }
    return archive.pack({name: data for name, data in members.items() if data or name in archive.NEEDED})


def opened(path: Path) -> Bundle:
    """A bundle as it was written. Raises `UsageError` for one that cannot be used."""
    manifest, members = archive.read(path)
    claim, judged = (
        from_plain(kind, archive.plain(path, name, members[name]), f"{path}: {name}")
        for kind, name in ((Claim, "claim.json"), (Verdict, "verdict.json"))
    )
    return Bundle(manifest.digest, claim, judged, members["change.diff"].decode("utf-8", "surrogateescape"))


def clean(value: Any) -> Any:
    """Plain data without secrets, and with the last name alone of whatever begins at a machine's root."""
    if isinstance(value, str):
        return _ABSOLUTE.sub(r"\1", redact.text(value))
    if isinstance(value, Mapping):
        return {clean(name): clean(each) for name, each in value.items()}
    return [clean(each) for each in value] if isinstance(value, (list, tuple)) else value


def facts(machine: Mapping[str, str]) -> dict[str, str]:
    """What makes a machine another than the next, without its name."""
    return clean({name: value for name, value in machine.items() if name not in _OWN})


def words_of(command: Command) -> tuple[str, ...]:
    """The words of a command as bundles hold them."""
    return tuple(clean(redact.argv(command.argv)))


def _shown(command: Command) -> Command:
    return replace(command, argv=words_of(command), env=redact.environment(command.env))


def _starts(timing: Path) -> dict[str, bytes]:
    if not (timing / "runs.json").is_file():
        return {}
    runs = read_document(Runs, timing / "runs.json")
    runs = replace(runs, command=_shown(runs.command), machine=facts(runs.machine))
    steps = timing / "steps.jsonl"
    return {
        "runs.json": archive.canonical(clean(to_plain(runs))),
        "steps.jsonl": steps.read_bytes() if steps.is_file() else b"",
    }


def _losses(*places: Path) -> bytes:
    """A line for each side, rank and step of the recorded runs: counts of what it trained on, and its losses (hexadecimal)."""
    lines = []
    for side, place in zip(("baseline", "candidate"), places, strict=True):
        for (rank, step), seen in sorted(fidelity.work.recorded(place, side).items()):
            losses = [float(loss).hex() for loss in seen["losses"]]
            line = {"side": side, "rank": rank, "step": step, "samples": seen["samples"], "losses": losses}
            lines.append(json.dumps(line, sort_keys=True) + "\n")
    return "".join(lines).encode("ascii")
