"""Proximal policy optimisation for the hovering drones: python learn.py [--params FILE] [--seed N]"""

import argparse
import time

import torch

from curiosity import VisitCounts
from params import load
from policy import Policy
from rollout import advantages, collect
from world import World


def improve(policy, optimizer, rollout, gain, learner):
    seen = torch.from_numpy(rollout.seen).flatten(0, 1)
    actions, logs = rollout.actions.flatten(), rollout.logs.flatten()
    targets = (gain + rollout.values).flatten()
    gain = gain.flatten()
    gain = (gain - gain.mean()) / (gain.std() + 1e-6)
    for _ in range(learner.passes):
        chances, value = policy(seen)
        ratio = (chances.log_prob(actions) - logs).exp()
        clipped = ratio.clamp(1 - learner.clip, 1 + learner.clip)
        surrogate = -torch.min(ratio * gain, clipped * gain).mean()
        loss = surrogate + 0.5 * (value - targets).square().mean() - 0.01 * chances.entropy().mean()
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(policy.parameters(), 0.5)
        optimizer.step()
    return loss.item()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--params", default="params.toml")
    parser.add_argument("--seed", type=int, default=9)
    args = parser.parse_args()
    params = load(args.params, args.seed)
    torch.manual_seed(params.seed)
    world = World(params)
    policy = Policy(params.world.sensors, params.learner.width)
    optimizer = torch.optim.Adam(policy.parameters(), lr=params.learner.lr)
    visits = VisitCounts(params.bonus.scale, params.bonus.weight)
    explore = visits.bonus_bulk if params.bonus.bulk else visits.bonus
    seen, value = world.reset(), float("nan")
    began = time.time()
    for update in range(1, params.learner.updates + 1):
        rollout, seen = collect(world, policy, seen, params.world.horizon)
        rewards = torch.from_numpy(rollout.rewards + explore(rollout.seen))
        gain = advantages(rollout, rewards, params.learner.gamma, params.learner.lam)
        value = improve(policy, optimizer, rollout, gain, params.learner)
        if update % 20 == 0:
            print(f"update {update} reward {rollout.rewards.mean():.4f} loss {value:.4f}", flush=True)
    print(f"{params.learner.updates} steps in {time.time() - began:.3f}s, loss {value:.6f}")


if __name__ == "__main__":
    main()
