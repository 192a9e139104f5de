"""Recurrent PPO. A step is one minibatch update."""

import os
import time
from dataclasses import dataclass

import numpy as np
import torch

from common import Running, advantages, set_up
from policy import RecurrentPolicy
from walls import Walls


@dataclass
class Args:
    walls: int = 192
    horizon: int = 14
    epochs: int = 4
    minibatches: int = 4
    updates: int = 50
    gamma: float = 0.98
    lam: float = 0.95
    clip: float = 0.2
    entropy: float = 0.01
    value: float = 0.5
    lr: float = 7e-4
    seed: int = 21


@torch.no_grad()
def rollout(args: Args, env: Walls, policy: RecurrentPolicy, seen, h) -> tuple:
    rows = {name: [] for name in ("seen", "action", "logp", "value", "reward", "done")}
    first = h
    for _ in range(args.horizon):
        logits, value, h = policy(torch.from_numpy(seen), h)
        odds = torch.distributions.Categorical(logits=logits)
        action = odds.sample()
        following, reward, done = env.step(action.numpy())
        for name, item in zip(rows, (seen, action.numpy(), odds.log_prob(action).numpy(), value.numpy(), reward, done), strict=True):
            rows[name].append(item)
        h = h * torch.from_numpy(1.0 - done.astype(np.float32))[:, None]
        seen = following
    last = policy(torch.from_numpy(seen), h)[1].numpy()
    return {name: np.stack(items) for name, items in rows.items()}, first, last, seen, h


def update(args: Args, policy, optimizer, batch: dict, h: torch.Tensor) -> float:
    odds, value = policy.unroll(batch["seen"], h, batch["done"])
    ratio = (odds.log_prob(batch["action"]) - batch["logp"]).exp()
    gain = (batch["gain"] - batch["gain"].mean()) / (batch["gain"].std() + 1e-8)
    surrogate = torch.min(ratio * gain, ratio.clamp(1 - args.clip, 1 + args.clip) * gain).mean()
    loss = -surrogate + args.value * (value - batch["target"]).pow(2).mean() - args.entropy * odds.entropy().mean()
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(policy.parameters(), 0.5)
    optimizer.step()
    return loss.item()


def main() -> None:
    args = Args()
    set_up(args.seed)
    env = Walls(args.walls, args.seed)
    policy = RecurrentPolicy(7, 6)
    optimizer = torch.optim.Adam(policy.parameters(), lr=args.lr, eps=1e-5)
    limit = int(os.environ.get("PLANTED_STEPS", args.updates * args.epochs * args.minibatches))
    seen, h = env.observe(), policy.start(args.walls)
    reward_line, step, loss = Running(10), 0, float("nan")
    rng = np.random.default_rng(args.seed)
    begun = time.perf_counter()
    while step < limit:
        rows, first, last, seen, h = rollout(args, env, policy, seen, h)
        done = rows["done"].astype(np.float32)
        gain = advantages(rows["reward"], rows["value"], done, last, args.gamma, args.lam)
        whole = {**rows, "done": done, "gain": gain, "target": gain + rows["value"]}
        tensors = {name: torch.from_numpy(array) for name, array in whole.items()}
        for _ in range(args.epochs):
            for part in np.array_split(rng.permutation(args.walls), args.minibatches):
                if step >= limit:
                    break
                index = torch.from_numpy(part)
                loss = update(args, policy, optimizer, {k: v[:, index] for k, v in tensors.items()}, first[index])
                step += 1
                print(f"step {step} loss {loss:.4f}", flush=True)
        print(f"reward {reward_line.add(float(rows['reward'].mean())):.3f}")
    print(f"{step} steps in {time.perf_counter() - begun:.2f}s, loss {loss:.6f}")


if __name__ == "__main__":
    main()
