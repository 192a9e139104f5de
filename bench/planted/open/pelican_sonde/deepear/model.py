from torch import Tensor, nn


class Ear(nn.Module):
    """Strided convolutions over the raw wave."""

    def __init__(self, species: int, width: int = 32) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        before = 1
        for number in range(4):
            after = width * (number + 1)
            layers += [nn.Conv1d(before, after, 9, stride=4, padding=4), nn.GroupNorm(4, after), nn.SiLU()]
            before = after
        self.stem = nn.Sequential(*layers)
        self.head = nn.Linear(before, species)

    def forward(self, wave: Tensor) -> Tensor:
        return self.head(self.stem(wave[:, None]).mean(-1))
