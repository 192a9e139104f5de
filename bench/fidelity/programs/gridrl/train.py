"""PPO on a small floor plan."""
import os
import sys

import torch
import torch.nn.functional as F
from agent import Agent
from world import SIZE, Floor, Floors

ITERATIONS, FLOORS, HORIZON = 12, 24, 16
PASSES, MINIBATCH = 3, 96
GAMMA, LAMBDA, CLIP = 0.97, 0.9, 0.2
RATE, ENTROPY, VALUE, MAX_NORM = 2.5e-3, 0.01, 0.5, 0.5


class Runner:
    def __init__(self):
        torch.manual_seed(101)
        self.floors = Floors(FLOORS, seed=500)
        self.agent = Agent(3 * SIZE * SIZE)
        self.optimizer = torch.optim.Adam(self.agent.parameters(), lr=RATE, eps=1e-5)
        self.iteration = 0

    def collect(self):
        rows = {"seen": [], "action": [], "chance": [], "value": [], "reward": [], "done": []}
        for _ in range(HORIZON):
            seen = self.floors.observe()
            log_chances, value = self.agent(seen)
            action = torch.multinomial(log_chances.exp().detach(), 1).squeeze(1)
            reward, done, _ = self.floors.step(action)
            chance = log_chances.gather(1, action[:, None]).squeeze(1)
            for name, thing in zip(rows, (seen, action, chance.detach().clone(), value.detach().clone(), reward, done)):
                rows[name].append(thing)
        _, last = self.agent(self.floors.observe())
        rows["advantage"] = self.advantages(rows["reward"], rows["value"], rows["done"], last.detach())
        rows["target"] = rows["advantage"] + torch.stack(rows["value"])
        return {
            n: (torch.stack(rows[n]) if isinstance(rows[n], list) else rows[n]).flatten(0, 1)
            for n in ("seen", "action", "chance", "advantage", "target")
        }

    def advantages(self, rewards, values, dones, last):
        advantages = torch.zeros(HORIZON, FLOORS)
        for floor in range(FLOORS):
            running, ahead = 0.0, last[floor].item()
            for t in reversed(range(HORIZON)):
                alive = 1.0 - dones[t][floor]
                surprise = rewards[t][floor] + GAMMA * ahead * alive - values[t][floor].item()
                running = surprise + GAMMA * LAMBDA * alive * running
                advantages[t, floor] = running
                ahead = values[t][floor].item()
        return advantages

    def loss(self, batch):
        log_chances, value = self.agent(batch["seen"])
        chance = log_chances.gather(1, batch["action"][:, None]).squeeze(1)
        advantage = (batch["advantage"] - batch["advantage"].mean()) / (batch["advantage"].std() + 1e-6)
        ratio = (chance - batch["chance"]).exp()
        gain = torch.min(ratio * advantage, ratio.clamp(1 - CLIP, 1 + CLIP) * advantage).mean()
        entropy = -(log_chances.exp() * log_chances).sum(-1).mean()
        return VALUE * F.mse_loss(value, batch["target"]) - gain - ENTROPY * entropy

    def improve(self, rows):
        losses = []
        for _ in range(PASSES):
            order = torch.randperm(HORIZON * FLOORS)
            for chosen in order.split(MINIBATCH):
                loss = self.loss({name: column[chosen] for name, column in rows.items()})
                self.optimizer.zero_grad()
                loss.backward()
                torch.nn.utils.clip_grad_norm_(self.agent.parameters(), MAX_NORM)
                self.optimizer.step()
                losses.append(loss.item())
        return losses

    def evaluate(self, episodes=40):
        self.agent.eval()
        found, steps, expected = 0, 0, 0.0
        with torch.no_grad():
            for number in range(episodes):
                floor, done = Floor(9000 + number), False
                while not done:
                    log_chances, value = self.agent(floor.observe()[None])
                    expected += value.item()
                    _, done, success = floor.step(int(log_chances.argmax()))
                    steps += 1
                found += success
        self.agent.train()
        return found / episodes, steps / episodes, expected / steps

    def save(self):
        os.makedirs("saved", exist_ok=True)
        state = {
            "agent": self.agent.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "floors": self.floors.state(),
            "rng": torch.get_rng_state(),
            "iteration": self.iteration,
        }
        torch.save(state, f"saved/{self.iteration:03d}.pt")

    def load(self, path):
        state = torch.load(path, weights_only=False)
        self.agent.load_state_dict(state["agent"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.floors.restore(state["floors"])
        torch.set_rng_state(state["rng"])
        self.iteration = state["iteration"]

    def run(self):
        while self.iteration < ITERATIONS:
            for group in self.optimizer.param_groups:
                group["lr"] = RATE * (1 - self.iteration / ITERATIONS)
            losses = self.improve(self.collect())
            self.iteration += 1
            print(f"iteration {self.iteration} losses " + " ".join(f"{loss:.4f}" for loss in losses[::3]), flush=True)
            if self.iteration % 3 == 0:
                rate, steps, value = self.evaluate()
                print(f"iteration {self.iteration} found {rate:.3f} steps {steps:.2f} value {value:.5f}", flush=True)
            if self.iteration % 4 == 0:
                self.save()


if __name__ == "__main__":
    runner = Runner()
    if "--resume" in sys.argv:
        runner.load(sys.argv[-1])
    runner.run()
