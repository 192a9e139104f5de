import random


def vocabulary(size):
    syllables = ["ka", "lo", "mi", "ren", "tu", "sha", "vo", "pi", "dun", "es"]
    return [a + b + c for a in syllables for b in syllables for c in syllables][:size]


def turns(words, count, intents, seed):
    dice = random.Random(seed)
    keys = [dice.sample(words, 12) for _ in range(intents)]
    made = []
    for _ in range(count):
        intent = dice.randrange(intents)
        length = min(150, max(5, int(dice.lognormvariate(2.9, 0.45))))
        text = [dice.choice(keys[intent]) if dice.random() < 0.25 else dice.choice(words) for _ in range(length)]
        made.append((" ".join(text), intent))
    return made
