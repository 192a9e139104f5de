from types import SimpleNamespace

SETTINGS = SimpleNamespace(
    ways=8,
    shots=4,
    queries=8,
    rounds=150,
    episodes_per_round=3,
    classes=200,
    per_class=24,
    side=20,
    workers=2,
    lr=1e-3,
    seed=17,
)
