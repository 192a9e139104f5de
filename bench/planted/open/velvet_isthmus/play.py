"""Seas that never were."""

import os
import time

import torch
from waves.game import Game
from waves.pair import Pair
from waves.sea import drawn, spectra

DIRECTIONS, FREQUENCIES, LATENT, HIDDEN, BATCH, SEED = 24, 24, 64, 512, 448, 21
STEPS = int(os.environ.get("PLANTED_STEPS", 400))


def main() -> None:
    torch.manual_seed(SEED)
    sea = spectra(4000, DIRECTIONS, FREQUENCIES, SEED)
    game = Game(Pair(LATENT, HIDDEN, DIRECTIONS * FREQUENCIES), rate=2e-4)
    began = time.perf_counter()
    for step, draw in zip(range(1, STEPS + 1), drawn(sea, BATCH, LATENT, SEED)):
        game.round(*draw)
        if step % 40 == 0:
            print(step, {who: round(value.item(), 4) for who, value in game.score.items()}, flush=True)
    print(f"{STEPS} steps in {time.perf_counter() - began:.2f}s, loss {game.score['critic'].item():.6f}")


if __name__ == "__main__":
    main()
