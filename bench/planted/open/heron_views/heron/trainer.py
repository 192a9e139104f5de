import time

import torch
from torch.utils.data import DataLoader

from . import transforms
from .net import Encoder, contrast
from .slides import PatchPairs


class Trainer:
    def __init__(self, settings):
        self.s = settings
        torch.manual_seed(settings.seed)
        self.data = PatchPairs(settings.patches, settings.side, transforms.default(), settings.seed)
        order = torch.Generator().manual_seed(settings.seed)
        self.loader = DataLoader(self.data, settings.batch_size, shuffle=True, drop_last=True, generator=order)
        self.net = Encoder(settings.width)
        self.opt = torch.optim.AdamW(self.net.parameters(), lr=settings.lr)

    def training_step(self, views):
        first, second = self.net(torch.cat(views)).chunk(2)
        loss = contrast(first, second, self.s.temperature)
        self.opt.zero_grad(set_to_none=True)
        loss.backward()
        self.opt.step()
        return loss.detach()

    def fit(self, limit):
        done, begun = 0, time.time()
        for epoch in range(self.s.epochs):
            self.data.epoch = epoch
            for views in self.loader:
                loss = self.training_step(views)
                done += 1
                if done >= limit:
                    break
            print(f"epoch {epoch}: {loss.item():.4f}")
            if done >= limit:
                break
        print(f"{done} steps in {time.time() - begun:.2f}s, loss {loss.item():.6f}")
