"""The probe's own settings, read once from the environment that the launcher made."""

from __future__ import annotations

import os

directory = os.environ.get("TRAINFLASH_RUN", "")
capture = os.environ.get("TRAINFLASH_CAPTURE", "diagnose")
diagnose = capture == "diagnose"


def number(name: str, otherwise):
    """The environment's number `name`; `otherwise` where it is absent or no number."""
    try:
        return type(otherwise)(float(os.environ[name])) if otherwise is not None else float(os.environ[name])
    except (KeyError, ValueError):
        return otherwise
