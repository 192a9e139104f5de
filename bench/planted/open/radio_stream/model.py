from torch import nn


class Denoiser(nn.Module):
    def __init__(self, width=20):
        super().__init__()
        self.down = nn.Sequential(nn.Conv1d(1, width, 9, stride=4, padding=4), nn.PReLU())
        self.core = nn.Sequential(nn.Conv1d(width, width, 5, padding=2), nn.PReLU(), nn.Conv1d(width, width, 5, padding=2))
        self.up = nn.ConvTranspose1d(width, 1, 8, stride=4, padding=2)

    def forward(self, noisy):
        h = self.down(noisy)
        return self.up(h + self.core(h))
