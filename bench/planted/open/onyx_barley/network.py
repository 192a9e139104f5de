from torch import Tensor, nn


class SpectraNet(nn.Module):
    def __init__(self, width: int = 24) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv1d(1, width, 9, stride=4, padding=4),
            nn.GELU(),
            nn.Conv1d(width, 2 * width, 7, stride=4, padding=3),
            nn.GELU(),
            nn.Conv1d(2 * width, 2 * width, 5, stride=2, padding=2),
            nn.GELU(),
            nn.AdaptiveAvgPool1d(4),
            nn.Flatten(),
        )
        self.head = nn.Linear(8 * width, 1)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.body(x.unsqueeze(1))).squeeze(-1)
