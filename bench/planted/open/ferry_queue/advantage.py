"""Generalised advantages, looking a limited number of minutes ahead."""

import os

import torch

BLOCKWISE = os.environ.get("PLANTED_FIX") == "1"


def blockwise(rewards, values, dones, last, gamma, lam, span):
    following = torch.cat([values[1:], last[None]])
    deltas = rewards + gamma * (1 - dones) * following - values
    out, weight, steps = torch.zeros_like(rewards), torch.ones_like(rewards), len(rewards)
    for ahead in range(min(span, steps)):
        left = steps - ahead
        out[:left] += weight[:left] * deltas[ahead:]
        weight[:left] *= gamma * lam * (1 - dones[ahead:])
    return out


def advantages(rewards, values, dones, last, gamma=0.99, lam=0.95, span=32):
    if BLOCKWISE:
        return blockwise(rewards, values, dones, last, gamma, lam, span)
    steps, count = rewards.shape
    r, v, d = rewards.T.tolist(), torch.cat([values, last[None]]).T.tolist(), dones.T.tolist()
    result = []
    for env in range(count):
        deltas = [r[env][t] + gamma * (1 - d[env][t]) * v[env][t + 1] - v[env][t] for t in range(steps)]
        row = []
        for t in range(steps):
            total, weight = 0.0, 1.0
            for k in range(t, min(t + span, steps)):
                total += weight * deltas[k]
                if d[env][k]:
                    break
                weight *= gamma * lam
            row.append(total)
        result.append(row)
    return torch.tensor(result).T
