import torch

STAGES = 5


def stage_walk(length, generator):
    """A hypnogram: a lazy random walk over wake, N1, N2, N3 and REM."""
    moves = torch.rand(length, generator=generator)
    jumps = torch.randint(1, STAGES, (length,), generator=generator)
    stage, walk = 0, []
    for move, jump in zip(moves.tolist(), jumps.tolist()):
        if move < 0.06:
            stage = (stage + jump) % STAGES
        walk.append(stage)
    return torch.tensor(walk)


def record(count, shortest, longest, channels, generator):
    prototypes = torch.randn(STAGES, channels, generator=generator)
    signals = torch.zeros(count, longest, channels)
    stages = torch.full((count, longest), -100)
    for n in range(count):
        length = int(torch.randint(shortest, longest + 1, (1,), generator=generator))
        walk = stage_walk(length, generator)
        person = 0.5 * torch.randn(channels, generator=generator)
        noise = 1.5 * torch.randn(length, channels, generator=generator)
        signals[n, :length] = prototypes[walk] + person + noise
        stages[n, :length] = walk
    return signals, stages
