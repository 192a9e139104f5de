import torch
from lightning.pytorch import LightningModule
from torch import nn


class Finch(LightningModule):
    def __init__(self, sensors: int, traits: int, width: int, rate: float) -> None:
        super().__init__()
        self.rate = rate
        self.read = nn.GRU(sensors, width, batch_first=True)
        self.refine = nn.Sequential(nn.Linear(width, 4 * width), nn.SiLU(), nn.Linear(4 * width, width), nn.SiLU())
        self.traits = nn.Linear(width, traits)
        self.register_buffer("emphasis", torch.ones(traits))
        self.latest = torch.zeros(traits)

    def forward(self, days: torch.Tensor) -> torch.Tensor:
        return self.traits(self.refine(self.read(days)[0].mean(1)))

    def training_step(self, batch: tuple[torch.Tensor, torch.Tensor], _: int) -> torch.Tensor:
        days, traits = batch
        each = (self(days) - traits).square().mean(0)
        self.latest = each.detach()
        return (each * self.emphasis).mean()

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.AdamW(self.parameters(), self.rate, fused=True)
