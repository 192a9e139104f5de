"""Small files of the kernel → text and numbers; what cannot be read is None."""

from __future__ import annotations

from pathlib import Path

HOST = Path("/")


def text(path: Path) -> str | None:
    """The file's text without surrounding space; None when it cannot be read."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except (OSError, ValueError):
        return None


def number(written: str | None) -> float | None:
    """`written` as a number; None for no number."""
    try:
        return float(written) if written else None
    except ValueError:
        return None


def pairs(written: str | None) -> dict[str, int]:
    """Lines of `name value` (`name: value`, a unit behind it ignored) as a dict; other lines are left out."""
    found = {}
    for line in (written or "").splitlines():
        name, *rest = line.split()
        value = number(rest[0]) if rest else None
        if value is not None:
            found[name.rstrip(":")] = int(value)
    return found


def meminfo(root: Path = HOST) -> dict[str, int]:
    """`/proc/meminfo` in bytes."""
    return {name: kilobytes * 1024 for name, kilobytes in pairs(text(root / "proc/meminfo")).items()}


def stalled_s(written: str | None) -> float | None:
    """Seconds in which some task stalled, since boot: `total` of the line `some` of a pressure file."""
    total = _some(written).get("total")
    return None if total is None else total / 1e6


def stalled_share(written: str | None) -> float | None:
    """Share of the last ten seconds in which some task stalled, 0 to 1."""
    average = _some(written).get("avg10")
    return None if average is None else average / 100


def _some(written: str | None) -> dict[str, float]:
    for line in (written or "").splitlines():
        kind, *fields = line.split() or [""]
        if kind == "some":
            values = {name: number(value) for name, _, value in (field.partition("=") for field in fields)}
            return {name: value for name, value in values.items() if value is not None}
    return {}
