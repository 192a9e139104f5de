"""Federated rounds over the towns."""

import argparse
import os
import time

from clients import Client, GardenNet
from runtime import prepare
from server import Server


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--towns", type=int, default=12)
    parser.add_argument("--gardens", type=int, default=768)
    parser.add_argument("--share", type=float, default=0.34)
    parser.add_argument("--local-epochs", type=int, default=1)
    parser.add_argument("--batch-size", type=int, default=256)
    parser.add_argument("--features", type=int, default=64)
    parser.add_argument("--width", type=int, default=192)
    parser.add_argument("--depth", type=int, default=2)
    parser.add_argument("--lr", type=float, default=0.01)
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("--steps", type=int, default=int(os.environ.get("PLANTED_STEPS", "700")))
    options = parser.parse_args()
    log = prepare(seed=33, verbose=options.verbose)
    clients = [Client(number, options.gardens, options.features, 16) for number in range(options.towns)]
    server = Server(GardenNet(options.features, options.width, options.depth, 16))

    began, steps, round_number, loss = time.perf_counter(), 0, 0, 0.0
    while steps < options.steps:
        updates = []
        for client in server.choose(clients, options.share, round_number):
            update, taken = client.train(server.model, options.local_epochs, options.batch_size, options.lr)
            log.debug("town %d loss %.4f", client.number, update.loss)
            updates.append(update)
            steps += taken
            if steps >= options.steps:
                break
        loss = server.merge(updates)
        round_number += 1
        log.info("round %d: loss %.4f, deviation %.3f", round_number, loss, server.deviation(updates))
    print(f"{steps} steps in {time.perf_counter() - began:.2f}s, loss {loss:.6f}")


if __name__ == "__main__":
    main()
