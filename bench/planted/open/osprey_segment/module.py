"""The Lightning module: a feature pyramid with deep supervision."""

import lightning as L
import torch
from torch import nn


def block(inside: int, outside: int, stride: int = 1) -> nn.Sequential:
    return nn.Sequential(nn.Conv2d(inside, outside, 3, stride, 1, bias=False), nn.BatchNorm2d(outside), nn.ReLU())


class Pyramid(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.down = nn.ModuleList([block(3, width, 2), block(width, 2 * width, 2), block(2 * width, 4 * width, 2)])
        self.side = nn.ModuleList([nn.Conv2d(width * 2**n, width, 1) for n in range(3)])
        self.smooth = nn.ModuleList([block(width, width) for _ in range(3)])
        self.heads = nn.ModuleList([nn.Conv2d(width, 1, 1) for _ in range(3)])

    def forward(self, picture: torch.Tensor) -> list[torch.Tensor]:
        features, x = [], picture
        for layer in self.down:
            x = layer(x)
            features.append(x)
        maps, above = [], None
        for level in (2, 1, 0):
            here = self.side[level](features[level])
            if above is not None:
                here = here + nn.functional.interpolate(above, scale_factor=2)
            above = self.smooth[level](here)
            scores = nn.functional.interpolate(self.heads[level](above), size=picture.shape[-2:], mode="bilinear")
            maps.append(scores[:, 0])
        return maps


class NestFinder(L.LightningModule):
    def __init__(self, width: int, lr: float) -> None:
        super().__init__()
        self.save_hyperparameters()
        self.net = Pyramid(width)
        self.last_loss = float("nan")

    def training_step(self, batch, index: int) -> torch.Tensor:
        picture, outline = batch
        maps = self.net(picture)
        losses = [nn.functional.binary_cross_entropy_with_logits(scores, outline) for scores in maps]
        loss = losses[-1] + 0.3 * (losses[0] + losses[1])
        self.log_dict({"loss": loss, "finest": losses[-1]})
        self.last_loss = loss.item()
        return loss

    def validation_step(self, batch, index: int) -> None:
        picture, outline = batch
        found = self.net(picture)[-1] > 0
        real = outline > 0.5
        self.log("valid_iou", (found & real).sum() / (found | real).sum().clamp_min(1))

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), self.hparams.lr, momentum=0.9, weight_decay=1e-4)
