import numpy as np
import torch
from torch import nn


def q_network(inputs, actions, hidden=384):
    return nn.Sequential(nn.Linear(inputs, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, actions))


class Agent:
    def __init__(self, inputs, actions, gamma=0.97, lr=5e-4):
        self.online, self.target = q_network(inputs, actions), q_network(inputs, actions)
        self.target.load_state_dict(self.online.state_dict())
        self.optim = torch.optim.Adam(self.online.parameters(), lr=lr)
        self.gamma = gamma

    @torch.no_grad()
    def act(self, observation, explore, rng):
        if rng.random() < explore:
            return int(rng.integers(3))
        return int(self.online(torch.from_numpy(observation)).argmax())

    def learn(self, items):
        before = torch.from_numpy(np.stack([t.before for t in items]))
        after = torch.from_numpy(np.stack([t.after for t in items]))
        action = torch.tensor([t.action for t in items])
        reward = torch.tensor([t.reward for t in items], dtype=torch.float32)
        going = torch.tensor([not t.done for t in items], dtype=torch.float32)
        with torch.no_grad():
            wanted = reward + self.gamma * going * self.target(after).max(1).values
        value = self.online(before).gather(1, action.unsqueeze(1)).squeeze(1)
        loss = nn.functional.smooth_l1_loss(value, wanted)
        self.optim.zero_grad()
        loss.backward()
        self.optim.step()
        return loss.item()

    def sync(self):
        self.target.load_state_dict(self.online.state_dict())
