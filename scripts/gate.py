#!/usr/bin/env python3
"""`trainflash gate` from a checkout, without installing it; its dependencies must be there."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))

try:
    from trainflash.cli import main
except ModuleNotFoundError as missing:
    sys.exit(f"{missing}; run `pip install -e .` in the checkout, or `make demo`, which makes its own environment")

if __name__ == "__main__":
    sys.exit(main(["gate", *sys.argv[1:]]))
