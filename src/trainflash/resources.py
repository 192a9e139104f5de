"""Finds the folders that travel with trainflash: `skills`, `templates`, `examples`; in an installed wheel or in a checkout."""

from __future__ import annotations

from pathlib import Path

from trainflash.errors import TrainFlashError

_PACKAGE = Path(__file__).resolve().parent


def folder(name: str) -> Path:
    """The bundled folder `name`. Raises `TrainFlashError` when this installation lacks it."""
    for place in (_PACKAGE / "_bundled" / name, _PACKAGE.parents[1] / name):
        if place.is_dir():
            return place
    raise TrainFlashError(f"this installation of trainflash has no folder {name!r}", "install trainflash again from its wheel or checkout")
