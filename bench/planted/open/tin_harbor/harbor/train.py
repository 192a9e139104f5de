"""Train the pilot: python -m harbor.train"""

import argparse
import os
import time

import torch
from torch import nn

from harbor.pilot import Pilot, Round, sail
from harbor.watchers import Crew, Knobs, Reward, Variety
from harbor.waters import Harbour


def learn(pilot: Pilot, optimizer: torch.optim.Optimizer, done: Round, gamma: float, knobs: Knobs) -> torch.Tensor:
    logits, values = pilot(done.seen)
    returns = done.returns(gamma)
    gain = returns - values.detach()
    gain = (gain - gain.mean()) / (gain.std() + 1e-6)
    choice = torch.distributions.Categorical(logits=logits)
    loss = -(choice.log_prob(done.actions) * gain).mean() + 0.5 * nn.functional.mse_loss(values, returns)
    loss = loss - knobs.entropy * choice.entropy().mean()
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(pilot.parameters(), knobs.clip)
    optimizer.step()
    return loss.detach()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--boats", type=int, default=176)
    parser.add_argument("--length", type=int, default=24)
    parser.add_argument("--size", type=int, default=12)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--gamma", type=float, default=0.95)
    parser.add_argument("--lr", type=float, default=3e-3)
    parser.add_argument("--seed", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=int(os.environ.get("PLANTED_STEPS", "300")))
    options = parser.parse_args()
    torch.manual_seed(options.seed)
    harbour = Harbour(options.boats, options.size, torch.Generator().manual_seed(options.seed))
    pilot = Pilot(options.width)
    optimizer = torch.optim.Adam(pilot.parameters(), options.lr)
    crew, reward = Crew(), Reward()
    crew.join(reward)
    crew.join(Variety())

    began = time.perf_counter()
    for number in range(1, options.rounds + 1):
        done = sail(harbour, pilot, options.length)
        loss = learn(pilot, optimizer, done, options.gamma, crew.knobs)
        crew.tell(done)
        if number % 25 == 0:
            print(f"round {number} reward {reward.mean:.3f} loss {loss:.4f} entropy knob {crew.knobs.entropy:.4f}", flush=True)
    print(f"{options.rounds} steps in {time.perf_counter() - began:.2f}s, loss {loss:.6f}")


if __name__ == "__main__":
    main()
