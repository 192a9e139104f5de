"""Logged transitions of a simulated reacher arm, one shard per worker."""

import torch

STATE, ACTION = 18, 5


def record(transitions, seed):
    g = torch.Generator().manual_seed(seed)
    drift = torch.randn(STATE, STATE, generator=torch.Generator().manual_seed(1)) * 0.2
    push = torch.randn(ACTION, STATE, generator=torch.Generator().manual_seed(2)) * 0.5
    state = torch.randn(transitions, STATE, generator=g)
    action = torch.rand(transitions, ACTION, generator=g) * 2 - 1
    after = torch.tanh(state @ drift + action @ push + 0.05 * torch.randn(transitions, STATE, generator=g))
    reward = -after[:, :3].norm(dim=1) - 0.05 * action.pow(2).sum(1)
    done = (torch.rand(transitions, generator=g) < 0.02).float()
    return {"obs": state, "act": action, "rew": reward, "obs2": after, "done": done}


class Replay:
    def __init__(self, logs, seed):
        self.logs = logs
        self.size = len(logs["rew"])
        self.generator = torch.Generator().manual_seed(seed)

    def sample(self, batch_size):
        rows = torch.randint(0, self.size, (batch_size,), generator=self.generator)
        return {key: column[rows] for key, column in self.logs.items()}
