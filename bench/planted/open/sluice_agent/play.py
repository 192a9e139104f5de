import os
import sys
import tempfile
import time

import torch
import yaml

from basins import Basins
from monitor import Monitor
from policy import GateKeeper


def rollout(policy, basins, length, gamma):
    logits, values, gates, rewards = [], [], [], []
    for _ in range(length):
        logit, value = policy(basins.observe())
        gate = torch.multinomial(logit.detach().softmax(-1), 1, generator=basins.generator).squeeze(1)
        rewards.append(basins.step(gate))
        logits.append(logit)
        values.append(value)
        gates.append(gate)
    with torch.no_grad():
        back = policy(basins.observe())[1]
    returns = []
    for reward in reversed(rewards):
        back = reward + gamma * back
        returns.insert(0, back)
    return torch.stack(logits), torch.stack(values), torch.stack(gates), torch.stack(returns)


def objective(logits, values, gates, returns, entropy_weight):
    logp = logits.log_softmax(-1)
    advantage = returns - values
    entropy = -(logp.exp() * logp).sum(-1).mean()
    actor = -(logp.gather(-1, gates[..., None]).squeeze(-1) * advantage.detach()).mean()
    return actor + 0.5 * advantage.pow(2).mean() - entropy_weight * entropy, entropy


def main(path):
    torch.set_num_threads(1)
    with open(path) as f:
        cfg = yaml.safe_load(f)
    torch.manual_seed(cfg["seed"])
    basins = Basins(cfg["basins"], cfg["gates"], torch.Generator().manual_seed(cfg["seed"] + 1))
    policy = GateKeeper(basins.observe().shape[1], cfg["width"], cfg["gates"])
    optimizer = torch.optim.Adam(policy.parameters(), lr=cfg["lr"])
    updates = int(os.environ.get("PLANTED_STEPS", cfg["updates"]))
    every = 50 if os.environ.get("PLANTED_FIX") == "1" else cfg["monitor"]["every"]
    with tempfile.TemporaryDirectory() as folder:
        monitor = Monitor(os.path.join(folder, "run.jsonl"), cfg["monitor"]["bins"], every)
        start = time.time()
        for update in range(updates):
            logits, values, gates, returns = rollout(policy, basins, cfg["rollout"], cfg["gamma"])
            loss, entropy = objective(logits, values, gates, returns, cfg["entropy"])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            monitor.record(update, {"loss": loss.item(), "entropy": entropy.item()}, policy)
        took = time.time() - start
        monitor.close()
    print(f"{updates} steps in {took:.2f}s, loss {loss.item():.6f}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "agent.yaml")
