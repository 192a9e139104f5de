import os

import numpy as np
import torch

ALT = os.environ.get("PLANTED_FIX") == "1"


def clicks(users, items, count, seed):
    rng = np.random.default_rng(seed)
    who = rng.integers(0, users, count)
    what = (rng.beta(0.6, 3.0, count) * items).astype(np.int64)
    label = ((who * 7 + what * 3) % 11 < 4).astype(np.float32)
    return who, what, label


def profile_matrix(store, who):
    ids = who.tolist()
    found = store.get_many(ids) if ALT else [store.get(user) for user in ids]
    return torch.from_numpy(np.stack(found))


def minibatches(log, store, size, seed):
    who, what, label = log
    rng = np.random.default_rng(seed)
    while True:
        pick = rng.integers(0, len(who), size)
        yield profile_matrix(store, who[pick]), torch.from_numpy(what[pick]), torch.from_numpy(label[pick])
