"""Names in the config -> the classes that they stand for."""

from collections.abc import Callable
from typing import Any

SHELVES: dict[str, dict[str, Callable]] = {}


def register(shelf: str, name: str) -> Callable:
    def keep(build: Callable) -> Callable:
        if name in SHELVES.setdefault(shelf, {}):
            raise ValueError(f"{shelf} has two of {name}")
        SHELVES[shelf][name] = build
        return build

    return keep


def build(shelf: str, settings: dict[str, Any], *args: Any, **more: Any) -> Any:
    settings = dict(settings)
    return SHELVES[shelf][settings.pop("name")](*args, **settings, **more)
