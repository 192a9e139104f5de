"""Made-up messages to a help desk, with what each wants."""

import random
from collections import Counter

from torch.utils.data import Dataset

INTENTS = {
    "refund": "refund money back charged twice invoice wrong amount cancelled paid",
    "delivery": "parcel late courier tracking address lost arrived box where",
    "login": "password account locked reset code email cannot sign",
    "damage": "broken screen cracked scratched defect replace photo damaged",
    "cancel": "cancel order subscription stop renew end plan month",
    "praise": "thanks great helpful quick lovely team happy recommend",
}
FILLERS = "hello i have the a my and but it was please could you for with this since yesterday again still order number today really just would like to know about when".split()
PAD, UNKNOWN, START = 0, 1, 2


def write_message(intent: str, rng: random.Random) -> str:
    length = min(max(int(rng.lognormvariate(3.1, 0.4)), 6), 60)
    telling = INTENTS[intent].split()
    other = INTENTS[rng.choice(list(INTENTS))].split()
    words = [
        rng.choice(telling) if rng.random() < 0.12 else rng.choice(other) if rng.random() < 0.06 else rng.choice(FILLERS)
        for _ in range(length)
    ]
    return " ".join(words)


class Vocabulary:
    """Words to numbers, most frequent first."""

    def __init__(self, texts: list[str]) -> None:
        counts = Counter(word for text in texts for word in text.split())
        self.numbers = {word: number for number, (word, _) in enumerate(counts.most_common(), START + 1)}

    def __len__(self) -> int:
        return len(self.numbers) + START + 1

    def encode(self, text: str) -> list[int]:
        return [START, *(self.numbers.get(word, UNKNOWN) for word in text.split())]


class Messages(Dataset):
    def __init__(self, texts: list[str], labels: list[int], vocabulary: Vocabulary) -> None:
        self.rows = [{"input_ids": vocabulary.encode(text), "label": label} for text, label in zip(texts, labels)]

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> dict:
        return self.rows[index]


def make_messages(count: int, held_out: int, seed: int) -> tuple[Messages, Messages, Vocabulary]:
    rng = random.Random(seed)
    names = list(INTENTS)
    labels = [rng.randrange(len(names)) for _ in range(count + held_out)]
    texts = [write_message(names[label], rng) for label in labels]
    vocabulary = Vocabulary(texts[:count])
    return Messages(texts[:count], labels[:count], vocabulary), Messages(texts[count:], labels[count:], vocabulary), vocabulary
