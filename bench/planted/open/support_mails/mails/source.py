import random

PARTS = ["invoice", "refund", "router", "password", "delivery", "contract", "meter", "outage", "renewal", "parcel", "claim", "tariff"]


def inbox(seed, length=700):
    """Endless mails; the queue a mail belongs to decides which words it prefers."""
    rng = random.Random(seed)
    while True:
        queue = rng.randrange(4)
        words = rng.choices(PARTS[queue * 3 : queue * 3 + 3] + PARTS, k=length // 8)
        cut = rng.randrange(5)
        yield f"{rng.random():.6f} " + " ".join(words)[cut:], queue
