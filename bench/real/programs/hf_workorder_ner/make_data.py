"""Writes maintenance work orders with word-level BIO tags: data/train.jsonl and data/val.jsonl."""
import json
import os
import random

PARTS = ["conveyor belt", "drive motor", "gear box", "inlet valve", "hydraulic pump", "spindle bearing", "limit switch", "cooling fan",
         "control panel", "feed roller", "shaft seal", "air compressor", "safety guard", "oil filter", "heat exchanger", "chain tensioner"]
FAULTS = ["leaking", "overheating", "vibrating badly", "stuck", "worn out", "making noise", "cracked", "tripping", "misaligned", "out of oil"]
ACTIONS = ["replaced", "cleaned", "greased", "tightened", "adjusted", "inspected", "swapped", "realigned", "topped up", "rewired"]
PLACES = ["line {n}", "hall {c}", "packing cell {n}", "boiler room", "roof", "bay {n}", "press {n}"]
FILL = ["operator reported", "found", "during night shift", "again", "please check", "and", "then", "as per plan", "no spare in stock", "urgent",
        "seen on round", "was", "the", "after restart", "called contractor", "waiting for parts", "tested ok", "ran for an hour", "machine stopped"]


def piece(rng):
    kind = rng.choices(["PART", "FAULT", "ACTION", "PLACE", "O"], [3, 2, 2, 1, 5])[0]
    if kind == "PLACE":
        return rng.choice(PLACES).format(n=rng.randint(1, 40), c=rng.choice("ABCDEF")), kind
    return rng.choice({"PART": PARTS, "FAULT": FAULTS, "ACTION": ACTIONS, "O": FILL}[kind]), kind


def typo(rng, word):
    if len(word) > 4 and rng.random() < 0.08:
        i = rng.randrange(1, len(word) - 1)
        return word[:i] + word[i + 1] + word[i] + word[i + 2:]
    return word


def order(rng):
    words, tags = [], []
    for _ in range(min(24, 2 + int(rng.gammavariate(2.0, 2.2)))):
        text, kind = piece(rng)
        for i, word in enumerate(text.split()):
            words.append(typo(rng, word))
            tags.append("O" if kind == "O" else ("B-" if i == 0 else "I-") + kind)
    return {"words": words, "tags": tags}


def main():
    rng = random.Random(7)
    os.makedirs("data", exist_ok=True)
    for split, count in (("train", 2400), ("val", 400)):
        with open(f"data/{split}.jsonl", "w") as out:
            for _ in range(count):
                out.write(json.dumps(order(rng)) + "\n")


if __name__ == "__main__":
    main()
