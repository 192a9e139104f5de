"""Electricity meters with daily and weekly habits."""

import torch


class Meters:
    def __init__(self, conf, seed: int):
        generator = torch.Generator().manual_seed(seed)
        hours = torch.arange(conf.days * 24, dtype=torch.float32)
        morning, evening, weekend = torch.rand(3, conf.meters, 1, generator=generator)
        daily = morning * torch.exp(-(((hours % 24 - 8) / 2) ** 2)) + evening * torch.exp(-(((hours % 24 - 19) / 3) ** 2))
        weekly = 1 - 0.5 * weekend * ((hours // 24 % 7) >= 5)
        self.load = 0.2 + daily * weekly + 0.06 * torch.randn(conf.meters, len(hours), generator=generator)
        self.conf = conf
        self.edge = int(len(hours) * 0.85)

    def windows(self, meter: torch.Tensor, start: torch.Tensor):
        span = torch.arange(self.conf.context + self.conf.ahead)
        rows = self.load[meter[:, None], start[:, None] + span]
        hour = (start[:, None] + span[: self.conf.context]) % 24
        return rows[:, : self.conf.context], hour, rows[:, self.conf.context :]

    def training(self, batch: int, seed: int):
        generator = torch.Generator().manual_seed(seed)
        limit = self.edge - self.conf.context - self.conf.ahead
        while True:
            meter = torch.randint(self.conf.meters, (batch,), generator=generator)
            start = torch.randint(limit, (batch,), generator=generator)
            yield self.windows(meter, start)

    def held_out(self, chunk: int = 60):
        start = self.load.shape[1] - self.conf.context - self.conf.ahead
        for meters in torch.arange(self.conf.meters).split(chunk):
            for day in range(2):
                yield self.windows(meters, torch.full_like(meters, start - 24 * day))
