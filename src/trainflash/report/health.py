"""Terminal report of what works on a machine."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.text import Text

from trainflash.report.ink import ink, joined, table
from trainflash.schema.health import Health

_SIGNS = {"ok": ("✓", "green"), "limited": ("!", "yellow"), "missing": ("✗", "red")}


def health(found: Health) -> RenderableType:
    """One line a check, then the mends."""
    made = table("", "What", "Found")
    for check in found.checks:
        sign, style = _SIGNS[check.state]
        made.add_row(Text(sign, style=style), ink(check.name), ink(check.found))
    mends = [joined((f"{check.name}: ", "bold"), ink(check.mend)) for check in found.checks if check.mend]
    limited = any(check.state == "limited" for check in found.checks)
    verdict = "Everything works here." if not limited else "It works here, with limits."
    return Group(made, *mends, Text(verdict if found.works else "It cannot work here yet.", style="bold"))
