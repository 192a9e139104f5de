from torch import nn


class Ringer(nn.Module):
    def __init__(self, frames, bands, width, towers):
        super().__init__()
        self.body = nn.Sequential(
            nn.Flatten(),
            nn.Linear(frames * bands, width),
            nn.ReLU(),
            nn.Linear(width, width),
            nn.ReLU(),
            nn.Linear(width, towers),
        )

    def forward(self, strikes):
        return self.body(strikes)
