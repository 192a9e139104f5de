"""Route support tickets to queues: python train.py [--config config.json]"""

import argparse
import json
import os
import random

import numpy as np
import torch

from tickets.data import build_loader, make_tickets
from tickets.model import TicketClassifier
from tickets.trainer import Trainer

HERE = os.path.dirname(os.path.abspath(__file__))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--config", default=os.path.join(HERE, "config.json"))
    args = parser.parse_args()
    with open(args.config) as f:
        cfg = json.load(f)
    if "PLANTED_STEPS" in os.environ:
        cfg["steps"] = int(os.environ["PLANTED_STEPS"])

    random.seed(cfg["seed"])
    np.random.seed(cfg["seed"])
    torch.manual_seed(cfg["seed"])

    texts, labels = make_tickets(cfg)
    loader, vocab = build_loader(texts, labels, cfg)
    model = TicketClassifier(len(vocab), cfg)
    print(f"{len(texts)} tickets, vocabulary {len(vocab)}, {sum(p.numel() for p in model.parameters()):,} parameters")
    Trainer(model, loader, cfg).fit()


if __name__ == "__main__":
    main()
