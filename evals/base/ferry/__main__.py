"""`python -m ferry train --config configs/base.yaml [section.key=value …]`, `evaluate`, `describe`."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from ferry.config import ConfigError, load_config
from ferry.train.session import Session


def parser() -> argparse.ArgumentParser:
    root = argparse.ArgumentParser(prog="ferry", description=__doc__)
    commands = root.add_subparsers(dest="command", required=True)
    for name, text in (("train", "train a model"), ("evaluate", "score a checkpoint"), ("describe", "print the resolved configuration")):
        command = commands.add_parser(name, help=text)
        command.add_argument("--config", type=Path, required=True)
        command.add_argument("--out", type=Path, default=Path("runs/latest"))
        command.add_argument("--data", type=Path, default=None, help="another folder of tickets than the configuration's")
        command.add_argument("--checkpoint", type=Path, default=None)
        command.add_argument("overrides", nargs="*", metavar="section.key=value")
    return root


def main(argv: list[str] | None = None) -> int:
    arguments = parser().parse_args(argv)
    try:
        config = load_config(arguments.config, arguments.overrides)
    except ConfigError as bad:
        print(f"ferry: {bad}", file=sys.stderr)
        return 2
    if arguments.data is not None:
        config = config.with_data(arguments.data)
    if arguments.command == "describe":
        print(json.dumps(config.plain(), indent=2))
        return 0
    session = Session(config, arguments.out)
    if arguments.command == "evaluate":
        scores = session.evaluate(arguments.checkpoint)
        print(json.dumps(scores, indent=2, sort_keys=True))
        return 0
    session.train()
    return 0


if __name__ == "__main__":
    sys.exit(main())
