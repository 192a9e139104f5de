"""A value with the place where somebody typed it, and the one that counts where several may."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

from trainflash.errors import UsageError
from trainflash.knobs.reading.expressions import UNKNOWN, refuse, same
from trainflash.knobs.reading.uses import Use
from trainflash.knobs.splices import Edit
from trainflash.schema import Location


@dataclass(frozen=True)
class Source:
    """A value and where it is written. `write` makes the edit; None: the value is computed, `shown` says how."""

    value: Any
    shown: str
    location: Location
    write: Callable[[Any], tuple[Edit, ...]] | None
    uses: tuple[Use, ...] = ()
    offset: int = 0  # of its text in the file, to tell two of one line apart
    chosen: bool = False  # one of several callers passes it, told apart by its value

    @property
    def readers(self) -> tuple[Use, ...]:
        """Who else depends on the value: a log line, or a check of it, does not."""
        return tuple(use for use in self.uses if use.kind != "shown")

    def shared_with(self, use: Use) -> UsageError:
        """Why the value is not edited where it is written: `use` reads it too."""
        return refuse(f"{self.shown} is also used at {use.location} (`{use.text}`): changing it would change that too")

    def also(self, more: Iterable[Use]) -> Source:
        """The same source with `more` readers."""
        return replace(self, uses=self.uses + tuple(more))


def pick(found: list[Source | None], where: Location, expected: Any) -> Source | None:
    """The one source among `found`: all the same, or the only one whose value is `expected`. Raises `UsageError` when unclear."""
    known = [source for source in found if source is not None]
    if not known:
        return None
    places = {(source.location, source.shown, source.offset): source for source in known}
    if len(places) == 1 and len(known) == len(found):
        return known[0].also(use for source in known[1:] for use in source.uses)
    fitting = [source for source in places.values() if same(source.value, expected)]
    if len(fitting) == 1 and all(source.value is not UNKNOWN for source in known):
        times = sum(1 for source in known if (source.location, source.offset) == (fitting[0].location, fitting[0].offset))
        return replace(fitting[0], chosen=times == 1)
    listed = ", ".join(f"{source.shown} ({source.value!r})" for source in list(places.values())[:4])
    raise refuse(f"{where}: the value may come from several places: {listed}")
