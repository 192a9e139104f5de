"""The instruction files that this repository itself carries, from their one source."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from trainflash.errors import TrainFlashError
from trainflash.install import places
from trainflash.install.agents import AGENTS, CARRIED, LEGACY_CURSOR
from trainflash.install.installing import render


def rendered() -> dict[str, str]:
    """Relative path → text of every instruction file that this repository carries."""
    return {**{AGENTS[name].rules: render(name) for name in CARRIED}, LEGACY_CURSOR: render("codex")}


def main(argv: list[str] | None = None) -> int:
    """`python -m trainflash.install --render DIR`: write the carried instruction files below DIR."""
    parser = argparse.ArgumentParser(prog="python -m trainflash.install", description="Render the instruction files from their one source.")
    parser.add_argument("--render", type=Path, required=True, metavar="DIR")
    target = parser.parse_args(argv).render
    try:
        root = places.root_of(target)
        for relative, text in rendered().items():
            places.write(root / relative, text.encode())
            print(relative)
    except TrainFlashError as problem:
        print(f"trainflash: {problem.message}\n  → {problem.mend}", file=sys.stderr)
        return problem.exit_code
    return 0
