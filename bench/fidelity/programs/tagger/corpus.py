"""Made-up order lines; each word gets a tag (quantity, unit, product, other)."""
import random
import re

TAGS = ["O", "QTY", "UNIT", "PROD"]
UNITS = ["kg", "boxes", "litres", "bags", "crates"]
STEMS = ["ber", "tol", "mar", "quin", "sal", "fen", "dor", "lim"]
ENDS = ["ole", "ata", "ine", "oz", "ery"]
FILL = ["please", "send", "to", "the", "dock", "by", "monday", "we", "still", "need", "and", "also", "from", "shed", "urgent", "thanks"]


def lines(count, seed):
    rng = random.Random(seed)
    made = []
    for _ in range(count):
        words, tags = [], []
        for _ in range(rng.randint(1, 4)):
            for _ in range(rng.randint(0, 4)):
                words.append(rng.choice(FILL))
                tags.append(0)
            if rng.random() < 0.85:
                words.append(str(rng.randint(1, 99)))
                tags.append(1 if rng.random() < 0.95 else 0)
                words.append(rng.choice(UNITS))
                tags.append(2)
            words.append(rng.choice(STEMS) + rng.choice(ENDS))
            tags.append(3)
        made.append((" ".join(words), tags))
    return made


VOCABULARY = ["[PAD]", "[CLS]", "##d", "##x"] + UNITS + FILL + STEMS + ["##" + e for e in ENDS]
INDEX = {piece: i for i, piece in enumerate(VOCABULARY)}


def pieces(word):
    if word.isdigit():
        return ["##d"] * len(word)
    if word in INDEX:
        return [word]
    for stem in STEMS:
        match = re.fullmatch(f"({stem})([a-z]+)", word)
        if match:
            return [match.group(1), "##" + match.group(2)]
    return ["##x"]


class OrderLines:
    def __init__(self, count, seed):
        self.lines = lines(count, seed)

    def __len__(self):
        return len(self.lines)

    def __getitem__(self, index):
        text, tags = self.lines[index]
        ids, labels = [INDEX["[CLS]"]], [-100]
        for word, tag in zip(re.findall(r"\S+", text), tags):
            for position, piece in enumerate(pieces(word)):
                ids.append(INDEX[piece])
                labels.append(tag if position == 0 else -100)
        return {"input_ids": ids, "labels": labels}
