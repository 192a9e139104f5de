from torch import nn


class GateKeeper(nn.Module):
    def __init__(self, seen, width, gates):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(seen, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh())
        self.actor = nn.Linear(width, gates)
        self.critic = nn.Linear(width, 1)

    def forward(self, seen):
        hidden = self.trunk(seen)
        return self.actor(hidden), self.critic(hidden).squeeze(-1)
