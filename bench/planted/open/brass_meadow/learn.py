"""Advantage actor-critic on a crowd of simulated arms."""

import os
import time

import torch
import yaml
from reach import runtime
from reach.actor import Actor
from reach.world import Arms


def play(world: Arms, actor: Actor, horizon: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    seen = world.reset()
    views, moves, rewards = [], [], []
    with torch.no_grad():
        for _ in range(horizon):
            policy, _ = actor(seen)
            move = policy.sample()
            views.append(seen)
            moves.append(move)
            seen, reward = world.move(move)
            rewards.append(reward)
    return torch.stack(views), torch.stack(moves), torch.stack(rewards)


def returns(rewards: torch.Tensor, discount: float) -> torch.Tensor:
    out = torch.empty_like(rewards)
    ahead = torch.zeros_like(rewards[0])
    for moment in reversed(range(len(rewards))):
        ahead = rewards[moment] + discount * ahead
        out[moment] = ahead
    return out


def main() -> None:
    with open("settings.yaml") as file:
        settings = yaml.safe_load(file)
    runtime.prepare(**settings["runtime"])
    plan = settings["learning"]
    torch.manual_seed(plan["seed"])
    world = Arms(**settings["world"], seed=plan["seed"])
    actor = Actor(world.features, world.joints, **settings["policy"])
    optimizer = torch.optim.Adam(actor.parameters(), plan["rate"], fused=True)
    rounds = int(os.environ.get("PLANTED_STEPS", plan["rounds"]))

    began = time.perf_counter()
    for number in range(1, rounds + 1):
        views, moves, rewards = play(world, actor, plan["horizon"])
        target = returns(rewards, plan["discount"])
        policy, value = actor(views)
        gain = (target - value).detach()
        gain = (gain - gain.mean()) / (gain.std() + 1e-6)
        actor_loss = -(policy.log_prob(moves).sum(-1) * gain).mean() - plan["entropy"] * policy.entropy().sum(-1).mean()
        loss = actor_loss + 0.5 * (target - value).square().mean()
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(actor.parameters(), 1.0)
        optimizer.step()
        if number % plan["report"] == 0:
            print(f"round {number} reward {rewards.mean().item():.4f} loss {loss.item():.4f}", flush=True)
    print(f"{number} steps in {time.perf_counter() - began:.2f} s, loss {loss.item():.6f}")


if __name__ == "__main__":
    main()
