"""Checks of the training that are kept beside the starts of two programs: they hold as long as those do.

A check says under which agreements it compared. It answers the question of an owner who has given others, as long as what has changed is
the same to both: so agreeing afterwards takes no run.
"""

from __future__ import annotations

import hashlib
import shutil
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

from trainflash import fidelity
from trainflash.schema import AGREEABLE, Command, Fidelity, read_document, write_document
from trainflash.workflow.session import Session

LONGER = 1.5  # times the training that a check could look at: with less, another sees little more


@dataclass(frozen=True)
class Known:
    """`checked.json`: `asked` stands for the question, `place` is the folder of its runs, `most_s` how long it might train."""

    SCHEMA: ClassVar[str] = "checked.v1"
    asked: str
    place: str
    most_s: float


def question(session: Session, candidate: Command, demands: Any) -> str:
    """What a check of the training is asked for, and where, as a hash of the `verifying.Demands` and the environment.

    Time does not change what it saw; for agreements see `answers`.
    """
    plain = asdict(replace(demands, budget_s=0.0, min_gain=0.0, resume=False, take_up=False, ask=True, allowed=frozenset()))
    known = [sorted((name, repr(value)) for name, value in plain.items()), sorted(fidelity.environment(session.sandbox, candidate).items())]
    return hashlib.sha256(repr(known).encode()).hexdigest()


def answers(found: Fidelity, allowed: frozenset[str], offered: frozenset[str]) -> bool:
    """Whether a check that compared under its own agreements says what one under `allowed` would, and those of `offered` beside them.

    It does where each agreement that the owner has not given was needed (it would be presumed again), and where what he has agreed to and
    has changed was compared as agreed to.
    """
    changed, under = frozenset(found.changed) - {"numerics"}, frozenset(found.agreements)
    asks_more = changed - under - allowed
    if asks_more and asks_more <= offered and found.verdict == "changed":
        return False
    return under - allowed <= changed and changed & allowed & AGREEABLE <= under


def before(
    timing: Path, asked: str, directory: Path, *, allowed: frozenset[str], offered: frozenset[str], most_s: float, incomplete: bool
) -> Fidelity | None:
    """What an earlier check of these two programs found, with its runs in `directory`: they need not train again for more starts.

    One that did not see everything counts only where `incomplete` ones are wanted, or where the time is about the same: with more time
    another may see more. Its runs are brought to `directory` even then, and count as far as they go.
    """
    path, known_path = timing / "fidelity.json", timing / "checked.json"
    known = read_document(Known, known_path) if known_path.is_file() and path.is_file() else None
    if known is None or known.asked != asked or not Path(known.place).is_dir():
        return None
    own = directory / "fidelity"
    if Path(known.place) != own:
        shutil.rmtree(own, ignore_errors=True)
        shutil.copytree(known.place, own, symlinks=True)
    found = read_document(Fidelity, path)
    longer = bool(found.not_seen) and most_s >= LONGER * known.most_s and not incomplete
    if found.verdict == "inconclusive" or longer or not answers(found, allowed, offered):
        known_path.unlink()  # runs are added to these now, and a kill may leave half of one
        return None
    write_document(directory / "fidelity.json", found)
    return found


def keep(timing: Path, asked: str, directory: Path, found: Fidelity, most_s: float) -> None:
    """Remember what a check found, and where its runs lie: those of one that came to nothing count in the next."""
    (timing / "checked.json").unlink(missing_ok=True)  # a kill between the two leaves no answer to another question
    write_document(timing / "fidelity.json", found)
    write_document(timing / "checked.json", Known(asked, str(directory / "fidelity"), most_s))
