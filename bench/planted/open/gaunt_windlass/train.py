import argparse
import os
import time

import numpy as np
import torch
import torch.nn as nn

from agent import ActorCritic, Agent, gae
from env import CraneEnv


def parse_args():
    p = argparse.ArgumentParser(description="PPO on the crane task")
    p.add_argument("--seed", type=int, default=3)
    p.add_argument("--n-envs", type=int, default=32)
    p.add_argument("--rollout", type=int, default=32)
    p.add_argument("--epochs", type=int, default=4)
    p.add_argument("--minibatches", type=int, default=2)
    p.add_argument("--lr", type=float, default=3e-4)
    p.add_argument("--gamma", type=float, default=0.98)
    p.add_argument("--lam", type=float, default=0.95)
    p.add_argument("--clip", type=float, default=0.2)
    p.add_argument("--ent-coef", type=float, default=0.01)
    p.add_argument("--vf-coef", type=float, default=0.5)
    p.add_argument("--steps", type=int, default=int(os.environ.get("PLANTED_STEPS", 2000)))
    return p.parse_args()


def collect(env, agent, obs, length):
    buf = {k: [] for k in ("obs", "action", "logp", "value", "reward", "done")}
    for _ in range(length):
        action, logp, value = agent.act(obs)
        nxt, reward, done = env.step(action.numpy())
        for k, v in zip(buf, (torch.from_numpy(obs), action, logp, value, torch.from_numpy(reward), torch.from_numpy(done))):
            buf[k].append(v)
        obs = nxt
    return {k: torch.stack(v) for k, v in buf.items()}, obs


def ppo_loss(net, mb, args):
    logits, value = net(mb["obs"])
    logps = torch.log_softmax(logits, -1)
    logp = logps.gather(1, mb["action"].unsqueeze(1)).squeeze(1)
    ratio = (logp - mb["logp"]).exp()
    adv = (mb["adv"] - mb["adv"].mean()) / (mb["adv"].std() + 1e-8)
    pg = -torch.min(ratio * adv, ratio.clamp(1 - args.clip, 1 + args.clip) * adv).mean()
    vf = 0.5 * (value - mb["ret"]).pow(2).mean()
    entropy = -(logps.exp() * logps).sum(1).mean()
    return pg + args.vf_coef * vf - args.ent_coef * entropy


def main():
    args = parse_args()
    torch.manual_seed(args.seed)
    env = CraneEnv(args.n_envs, horizon=100, rng=np.random.default_rng(args.seed))
    net = ActorCritic(env.obs_dim, env.n_actions)
    agent = Agent(net, args.seed + 1)
    opt = torch.optim.Adam(net.parameters(), lr=args.lr, eps=1e-5)
    obs = env.reset()
    size = args.n_envs * args.rollout
    step, update, loss = 0, 0, torch.tensor(float("nan"))
    start = time.perf_counter()
    while step < args.steps:
        data, obs = collect(env, agent, obs, args.rollout)
        with torch.no_grad():
            _, last_value = net(torch.from_numpy(obs))
        data["adv"], data["ret"] = gae(data["reward"], data["value"], data["done"], last_value, args.gamma, args.lam)
        mean_reward = data["reward"].mean().item()
        flat = {k: v.reshape(size, *v.shape[2:]) for k, v in data.items()}
        for _ in range(args.epochs):
            for idx in torch.randperm(size).chunk(args.minibatches):
                if step >= args.steps:
                    break
                loss = ppo_loss(net, {k: v[idx] for k, v in flat.items()}, args)
                opt.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(net.parameters(), 0.5)
                opt.step()
                step += 1
        update += 1
        if update % 10 == 0:
            print(f"update {update} step {step} reward {mean_reward:.3f} loss {loss.item():.4f}")
    took = time.perf_counter() - start
    print(f"{step} steps in {took:.2f} s, loss {loss.item():.6f}")


if __name__ == "__main__":
    main()
