"""Makes a folder of tickets: `python tools/make_data.py data --train 2600 --valid 600 --seed 5`."""

from __future__ import annotations

import argparse
import json
import random
from pathlib import Path

QUEUES = ("billing", "delivery", "returns", "account", "warranty", "stock", "app", "store", "press", "legal", "jobs", "other")
CHANNELS = ("mail", "chat", "phone", "form")
SYLLABLES = ("ba", "co", "di", "fe", "gu", "ho", "ji", "ka", "le", "mo", "nu", "pa", "qui", "ro", "si", "ta", "ve", "wo", "xa", "zu")


def words_of(generator: random.Random, count: int) -> list[str]:
    return ["".join(generator.choices(SYLLABLES, k=generator.randint(1, 4))) for _ in range(count)]


def ticket(generator: random.Random, number: int, common: list[str], special: dict[str, list[str]], long_share: float) -> dict:
    queue = generator.randrange(len(QUEUES))
    urgency = generator.betavariate(0.6, 0.9)
    length = min(60, max(4, int(generator.lognormvariate(3.1, 0.45))))
    body = [generator.choice(special[QUEUES[queue]]) if generator.random() < 0.22 else generator.choice(common) for _ in range(length)]
    if urgency > 0.5:
        body += generator.choices(["now", "urgent", "asap", "!!!!"], k=generator.randint(1, 3))
    for _ in range(generator.randint(0, 2)):
        body.insert(generator.randrange(len(body)), str(generator.randint(10, 99_999)))
    thread = []
    if generator.random() < long_share:
        thread = [" ".join(generator.choices(common, k=generator.randint(80, 140))) for _ in range(generator.randint(2, 4))]
    return {
        "id": f"T{number:06d}",
        "subject": " ".join(body[:3]),
        "body": " ".join(body),
        "queue": queue,
        "urgency": round(urgency, 4),
        "channel": generator.choice(CHANNELS),
        "thread": thread,
    }


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--train", type=int, default=2600)
    parser.add_argument("--valid", type=int, default=600)
    parser.add_argument("--seed", type=int, default=5)
    parser.add_argument("--long-share", type=float, default=0.0, help="share of tickets with a long thread below them")
    arguments = parser.parse_args(argv)
    generator = random.Random(arguments.seed)
    common = words_of(generator, 2500)
    special = {queue: words_of(generator, 40) for queue in QUEUES}
    arguments.folder.mkdir(parents=True, exist_ok=True)
    number = 0
    for split, count in (("train", arguments.train), ("valid", arguments.valid)):
        with (arguments.folder / f"{split}.jsonl").open("w", encoding="utf-8") as file:
            for _ in range(count):
                file.write(json.dumps(ticket(generator, number, common, special, arguments.long_share)) + "\n")
                number += 1


if __name__ == "__main__":
    main()
