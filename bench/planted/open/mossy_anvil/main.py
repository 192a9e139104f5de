"""Learn the energy of a cell from its atoms."""

import dataclasses
import os

import torch
from crystals import Cells
from network import EnergyNet
from packing import pack
from settings import Settings
from torch.utils.data import DataLoader
from trainer import CosineRate, Report, Trainer


def main() -> None:
    settings = Settings()
    if "PLANTED_STEPS" in os.environ:
        settings = dataclasses.replace(settings, steps=int(os.environ["PLANTED_STEPS"]))
    torch.manual_seed(settings.seed)
    loader = DataLoader(Cells(settings), settings.batch, shuffle=True, drop_last=True, collate_fn=pack)
    model = EnergyNet(settings.species, settings.width, settings.rounds, settings.cutoff)
    optimizer = torch.optim.Adam(model.parameters(), settings.rate, fused=True)
    Trainer(model, optimizer, [CosineRate(), Report(settings.report)]).fit(loader, settings.steps)


if __name__ == "__main__":
    main()
