"""DDPG on a planar reaching task with short episodes."""

import argparse
import copy
import gc
import os
import time

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn


class ReachEnv:
    """Point mass with two-dimensional thrust that should stop on a goal."""

    obs_dim, act_dim, horizon = 6, 2, 20

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)

    def _obs(self):
        return np.concatenate([self.pos, self.vel, self.goal - self.pos]).astype(np.float32)

    def reset(self):
        self.pos = self.rng.uniform(-1, 1, 2)
        self.goal = self.rng.uniform(-1, 1, 2)
        self.vel = np.zeros(2)
        self.t = 0
        return self._obs()

    def step(self, action):
        self.vel = 0.9 * self.vel + 0.1 * action
        self.pos = self.pos + self.vel
        self.t += 1
        dist = float(np.abs(self.goal - self.pos).sum())
        reward = -dist - 0.05 * float(np.square(action).sum())
        return self._obs(), reward, self.t >= self.horizon


class Replay:
    def __init__(self, capacity, obs_dim, act_dim):
        self.obs = torch.zeros(capacity, obs_dim)
        self.act = torch.zeros(capacity, act_dim)
        self.rew = torch.zeros(capacity)
        self.next_obs = torch.zeros(capacity, obs_dim)
        self.done = torch.zeros(capacity)
        self.capacity, self.n = capacity, 0

    def add(self, obs, act, rew, next_obs, done):
        i = self.n % self.capacity
        self.obs[i] = torch.from_numpy(obs)
        self.act[i] = torch.from_numpy(act)
        self.rew[i] = rew
        self.next_obs[i] = torch.from_numpy(next_obs)
        self.done[i] = float(done)
        self.n += 1

    def sample(self, batch_size):
        idx = torch.randint(min(self.n, self.capacity), (batch_size,))
        return self.obs[idx], self.act[idx], self.rew[idx], self.next_obs[idx], self.done[idx]


def mlp(sizes, out=None):
    layers = []
    for a, b in zip(sizes[:-2], sizes[1:-1]):
        layers += [nn.Linear(a, b), nn.ReLU()]
    layers.append(nn.Linear(sizes[-2], sizes[-1]))
    if out is not None:
        layers.append(out)
    return nn.Sequential(*layers)


class Agent:
    def __init__(self, args, obs_dim, act_dim):
        h = args.hidden
        self.actor = mlp([obs_dim, h, h, act_dim], nn.Tanh())
        self.critic = mlp([obs_dim + act_dim, h, h, 1])
        self.actor_target = copy.deepcopy(self.actor)
        self.critic_target = copy.deepcopy(self.critic)
        self.actor_opt = torch.optim.Adam(self.actor.parameters(), lr=args.lr)
        self.critic_opt = torch.optim.Adam(self.critic.parameters(), lr=args.lr)
        self.gamma, self.tau = args.gamma, args.tau

    @torch.no_grad()
    def act(self, obs):
        return self.actor(torch.from_numpy(obs)).numpy()

    def update(self, batch):
        obs, act, rew, next_obs, done = batch
        with torch.no_grad():
            next_q = self.critic_target(torch.cat([next_obs, self.actor_target(next_obs)], 1)).squeeze(1)
            target = rew + self.gamma * (1 - done) * next_q
        q = self.critic(torch.cat([obs, act], 1)).squeeze(1)
        critic_loss = F.mse_loss(q, target)
        self.critic_opt.zero_grad()
        critic_loss.backward()
        self.critic_opt.step()

        self.critic.requires_grad_(False)
        actor_loss = -self.critic(torch.cat([obs, self.actor(obs)], 1)).mean()
        self.actor_opt.zero_grad()
        actor_loss.backward()
        self.actor_opt.step()
        self.critic.requires_grad_(True)

        with torch.no_grad():
            for net, tgt in ((self.actor, self.actor_target), (self.critic, self.critic_target)):
                torch._foreach_lerp_(list(tgt.parameters()), list(net.parameters()), self.tau)
        return critic_loss.detach()


def play_episode(env, agent, replay, rng, noise):
    obs, done, ret = env.reset(), False, 0.0
    while not done:
        act = agent.act(obs) + noise * rng.standard_normal(env.act_dim)
        act = np.clip(act, -1, 1).astype(np.float32)
        next_obs, rew, done = env.step(act)
        replay.add(obs, act, rew, next_obs, done)
        obs, ret = next_obs, ret + rew
    return ret


def train(args, steps):
    env = ReachEnv(args.seed)
    rng = np.random.default_rng(args.seed + 1)
    agent = Agent(args, env.obs_dim, env.act_dim)
    replay = Replay(args.capacity, env.obs_dim, env.act_dim)
    for _ in range(args.warmup_episodes):
        play_episode(env, agent, replay, rng, noise=1.0)

    step, returns = 0, []
    start = time.perf_counter()
    while step < steps:
        returns.append(play_episode(env, agent, replay, rng, args.noise))
        for _ in range(min(args.updates_per_episode, steps - step)):
            loss = agent.update(replay.sample(args.batch_size))
            step += 1
        if os.environ.get("PLANTED_FIX") != "1":
            gc.collect()
        if len(returns) % args.log_every == 0:
            print(f"episode {len(returns)}  return {np.mean(returns[-20:]):.3f}  critic loss {loss.item():.4f}")
    elapsed = time.perf_counter() - start
    print(f"{steps} steps in {elapsed:.2f} s, loss {loss.item():.6f}")


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--steps", type=int, default=1100)
    p.add_argument("--batch-size", type=int, default=256)
    p.add_argument("--hidden", type=int, default=192)
    p.add_argument("--updates-per-episode", type=int, default=8)
    p.add_argument("--warmup-episodes", type=int, default=25)
    p.add_argument("--capacity", type=int, default=20000)
    p.add_argument("--lr", type=float, default=1e-3)
    p.add_argument("--gamma", type=float, default=0.97)
    p.add_argument("--tau", type=float, default=0.01)
    p.add_argument("--noise", type=float, default=0.15)
    p.add_argument("--log-every", type=int, default=20)
    p.add_argument("--seed", type=int, default=11)
    args = p.parse_args()
    torch.manual_seed(args.seed)
    train(args, int(os.environ.get("PLANTED_STEPS", args.steps)))


if __name__ == "__main__":
    main()
