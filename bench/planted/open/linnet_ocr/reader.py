import torch
import torch.nn as nn


class Reader(nn.Module):
    """Columns of pixels → convolution → two-way GRU → letters (0 is the blank)."""

    def __init__(self, height: int, letters: int, width: int = 64):
        super().__init__()
        self.conv = nn.Sequential(
            nn.Conv1d(height, width, 5, padding=2),
            nn.ReLU(),
            nn.Conv1d(width, width, 4, stride=3, padding=1),
            nn.ReLU(),
        )
        self.rnn = nn.GRU(width, width, bidirectional=True)
        self.head = nn.Linear(2 * width, letters + 1)

    def forward(self, page: torch.Tensor) -> torch.Tensor:
        x = self.conv(page).permute(2, 0, 1)
        return self.head(self.rnn(x)[0]).log_softmax(-1)
