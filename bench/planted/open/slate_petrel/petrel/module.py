import lightning as L
import torch
import torch.nn.functional as F
from torch import nn


class Forecaster(L.LightningModule):
    def __init__(self, inputs: int = 48, width: int = 768, depth: int = 4, lr: float = 3e-4) -> None:
        super().__init__()
        self.save_hyperparameters()
        layers: list[nn.Module] = [nn.Linear(inputs, width), nn.GELU()]
        for _ in range(depth - 1):
            layers += [nn.Linear(width, width), nn.GELU()]
        self.net = nn.Sequential(nn.LayerNorm(inputs), *layers, nn.Linear(width, 2))
        self.last = 0.0

    def training_step(self, batch, _index: int) -> torch.Tensor:
        x, y = batch
        loss = F.mse_loss(self.net(x), y)
        self.last = loss.detach()
        return loss

    def validation_step(self, batch, _index: int) -> None:
        x, y = batch
        self.log("val_loss", F.mse_loss(self.net(x), y), prog_bar=False)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.AdamW(self.parameters(), lr=self.hparams.lr, fused=True)
