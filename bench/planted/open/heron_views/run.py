import argparse
import os

from heron.config import Settings
from heron.trainer import Trainer


def parse():
    parser = argparse.ArgumentParser(description="Two-view pretraining on tissue patches")
    parser.add_argument("--epochs", type=int, default=11)
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--temperature", type=float, default=0.2)
    parser.add_argument("--seed", type=int, default=11)
    return parser.parse_args()


if __name__ == "__main__":
    args = parse()
    settings = Settings(epochs=args.epochs, lr=args.lr, temperature=args.temperature, seed=args.seed)
    Trainer(settings).fit(limit=int(os.environ.get("PLANTED_STEPS", 10**9)))
