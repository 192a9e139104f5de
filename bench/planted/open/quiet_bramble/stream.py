import itertools

import torch


def forever(frames, kinds, rng):
    while True:
        for i in rng.permutation(len(frames)):
            yield torch.from_numpy(frames[i]), int(kinds[i])


def mapped(samples, transform):
    for frame, kind in samples:
        yield transform(frame), kind


def batched(samples, size):
    while True:
        frames, kinds = zip(*itertools.islice(samples, size))
        yield torch.stack(frames), torch.tensor(kinds)
