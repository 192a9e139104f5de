"""Which version of a library takes an argument: one that a run shows to be older or newer has another name for it, or none."""

from __future__ import annotations

import re
from collections.abc import Mapping

from trainflash.knobs.kinds import CallArgument
from trainflash.knobs.reading.expressions import no_place


def has(edit: CallArgument, versions: Mapping[str, str]) -> None:
    """Raises `UsageError` where the run's version of the library does not take the argument. One that is unknown takes the older name."""
    if edit.since is not None:
        library, first = edit.since.split()
        seen = _number(versions.get(library, ""))
        if seen is None or seen < (_number(first) or ()):
            raise no_place(f"{edit.argument} came with {edit.since}, and the run had {versions.get(library) or 'no known version'}")
    for each in edit.known_since:
        library, first = each.split()
        seen = _number(versions.get(library, ""))
        if seen is not None and seen < (_number(first) or ()):
            raise no_place(f"what {edit.argument} would be given came with {each}, and the run had {versions[library]}")
    if edit.before is not None:
        library, first = edit.before.split()
        seen = _number(versions.get(library, ""))
        if seen is not None and seen >= (_number(first) or ()):
            raise no_place(f"{library} has no {edit.argument} from {first} on, and the run had {versions[library]}")


def _number(text: str) -> tuple[int, int] | None:
    found = re.match(r"(\d+)\.(\d+)", text)
    return None if found is None else (int(found[1]), int(found[2]))
