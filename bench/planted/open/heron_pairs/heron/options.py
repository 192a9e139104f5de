import argparse
from pathlib import Path


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser("heron")
    parser.add_argument("--data", type=Path, default=Path("plumage"))
    parser.add_argument("--epochs", type=int, default=90)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--temperature", type=float, default=0.2)
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--seed", type=int, default=5)
    parser.add_argument("--quiet", action="store_true")
    return parser.parse_args()
