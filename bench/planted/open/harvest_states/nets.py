"""Teacher and student for field images."""

import torch
from torch import nn


class ConvNet(nn.Module):
    def __init__(self, width: int, blocks: int, classes: int) -> None:
        super().__init__()
        layers: list[nn.Module] = [nn.Conv2d(3, width, 3, stride=2, padding=1), nn.ReLU()]
        for number in range(blocks):
            stride = 2 if number % 2 else 1
            layers += [nn.Conv2d(width, width, 3, stride=stride, padding=1, bias=False), nn.GroupNorm(4, width), nn.ReLU()]
        self.body = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(4), nn.Flatten())
        self.neck = nn.Sequential(nn.Linear(16 * width, 256), nn.ReLU())
        self.head = nn.Linear(256, classes)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        neck = self.neck(self.body(x))
        return self.head(neck), neck


class Distillation(nn.Module):
    """Soft labels, hard labels, and similarity of the necks."""

    def __init__(self, temperature: float, soft: float, similar: float) -> None:
        super().__init__()
        self.temperature, self.soft, self.similar = temperature, soft, similar

    def forward(self, student, teacher, labels: torch.Tensor) -> torch.Tensor:
        scores, neck = student
        target, target_neck = teacher
        t = self.temperature
        soft = nn.functional.kl_div((scores / t).log_softmax(1), (target / t).softmax(1), reduction="batchmean") * t * t
        close = nn.functional.mse_loss(self._gram(neck), self._gram(target_neck))
        return self.soft * soft + (1 - self.soft) * nn.functional.cross_entropy(scores, labels) + self.similar * close

    @staticmethod
    def _gram(neck: torch.Tensor) -> torch.Tensor:
        unit = nn.functional.normalize(neck, dim=1)
        return unit @ unit.T
