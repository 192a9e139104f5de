import torch
from torch import nn


class Agent(nn.Module):
    def __init__(self, inputs, hidden=64):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(inputs, hidden), nn.Tanh(), nn.Linear(hidden, hidden), nn.Tanh())
        self.policy = nn.Linear(hidden, 4)
        self.value = nn.Linear(hidden, 1)
        nn.init.orthogonal_(self.policy.weight, 0.01)

    def forward(self, observation):
        features = self.body(observation)
        return torch.log_softmax(self.policy(features), -1), self.value(features).squeeze(-1)
