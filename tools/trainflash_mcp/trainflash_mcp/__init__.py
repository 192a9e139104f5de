"""`python -m trainflash_mcp` is `trainflash mcp`, under the name that hosts know."""

from __future__ import annotations

import sys


def main() -> int:
    """Serve; the options are those of `trainflash mcp`. Returns the exit code."""
    try:
        from trainflash.cli import main as trainflash
    except ModuleNotFoundError as missing:
        if missing.name != "trainflash":
            raise
        print("error: trainflash is not installed\nmend:  pip install trainflash, or pip install -e of its checkout", file=sys.stderr)
        return 2
    return trainflash(["mcp", *sys.argv[1:]])
