"""Knobs of a run and their defaults."""

import argparse
import os


def knobs():
    parser = argparse.ArgumentParser(description="mixer on land-cover tiles")
    parser.add_argument("--tiles", type=int, default=1024)
    parser.add_argument("--side", type=int, default=32)
    parser.add_argument("--patch", type=int, default=4)
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--depth", type=int, default=3)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--steps", type=int, default=int(os.environ.get("PLANTED_STEPS", 3000)))
    parser.add_argument("--seed", type=int, default=61)
    return parser.parse_args()
