"""Checks of the training that are kept beside the starts of two programs: they hold as long as those do."""

from __future__ import annotations

import hashlib
import shutil
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from trainflash import fidelity
from trainflash.schema import Command, Fidelity, read_document, write_document
from trainflash.workflow.session import Session


def question(session: Session, candidate: Command, demands: Any) -> str:
    """What a check of the training is asked for, and where, as a hash of the `verifying.Demands` and the environment.

    Time does not change what it saw; consent does: more is then compared.
    """
    plain = asdict(replace(demands, budget_s=0.0, min_gain=0.0, resume=False, take_up=False)) | {"allowed": sorted(demands.allowed)}
    known = [sorted(plain.items()), sorted(fidelity.environment(session.sandbox, candidate).items())]
    return hashlib.sha256(repr(known).encode()).hexdigest()


def before(timing: Path, asked: str, directory: Path, *, incomplete: bool) -> Fidelity | None:
    """What an earlier check of these two programs found, with its runs in `directory`: they need not train again for more starts.

    One that did not see everything counts only where `incomplete` ones are wanted: with more time another may see more.
    """
    path, key, place = (timing / f"fidelity.{name}" for name in ("json", "key", "place"))
    known = all(each.is_file() for each in (path, key, place)) and key.read_text(encoding="ascii") == asked
    found, runs = (read_document(Fidelity, path), Path(place.read_text(encoding="utf-8"))) if known else (None, None)
    if found is None or runs is None or not runs.is_dir() or (found.not_seen and not incomplete):
        key.unlink(missing_ok=True)  # its runs may be made again now, and a kill leave half of them
        return None
    own = directory / "fidelity"
    if runs != own:
        shutil.rmtree(own, ignore_errors=True)
        shutil.copytree(runs, own, symlinks=True)
    write_document(directory / "fidelity.json", found)
    return found


def keep(timing: Path, asked: str, directory: Path, found: Fidelity) -> None:
    """Remember what a check found, unless it came to nothing."""
    if found.verdict != "inconclusive":
        write_document(timing / "fidelity.json", found)
        (timing / "fidelity.place").write_text(str(directory / "fidelity"), encoding="utf-8")
        (timing / "fidelity.key").write_text(asked, encoding="ascii")
