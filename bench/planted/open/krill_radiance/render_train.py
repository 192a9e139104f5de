import os
import time

import torch
from torch.nn.functional import mse_loss
from torch.utils.data import DataLoader

from callbacks import History, KeepBest, Preview, Save
from field import RadianceField
from swarm_scene import RayBundles

STEPS = 160
SAMPLES = 1024


class Trainer:
    def __init__(self, field, loader, callbacks):
        self.field, self.loader, self.callbacks = field, loader, callbacks
        self.optimizer = torch.optim.Adam(field.parameters(), lr=5e-4)
        self.schedule = torch.optim.lr_scheduler.ExponentialLR(self.optimizer, 0.997)
        self.step = 0

    def one(self, points, colours):
        self.field.train()
        points, colours = points.to("cpu", non_blocking=True), colours.to("cpu", non_blocking=True)
        self.optimizer.zero_grad(set_to_none=False)
        self.loss = mse_loss(self.field(points), colours.clone().detach())
        self.loss.backward()
        self.norm = torch.nn.utils.clip_grad_norm_(self.field.parameters(), 1.0)
        self.optimizer.step()
        self.schedule.step()
        self.step += 1
        for callback in self.callbacks:
            callback.on_step(self)

    def fit(self, steps):
        while self.step < steps:
            for points, colours in self.loader:
                self.one(points, colours)
                if self.step >= steps:
                    break
        for callback in self.callbacks:
            callback.on_end(self)


def main():
    torch.set_num_threads(1)
    torch.manual_seed(44)
    loader = DataLoader(
        RayBundles(128, SAMPLES, 45), batch_size=None, shuffle=True, num_workers=0, generator=torch.Generator().manual_seed(46)
    )
    trainer = Trainer(RadianceField(), loader, [History(), KeepBest(20), Preview(40), Save(80)])
    steps = int(os.environ.get("PLANTED_STEPS", STEPS))
    start = time.time()
    trainer.fit(steps)
    print(f"{steps} steps in {time.time() - start:.2f}s, loss {trainer.loss.item():.6f}")


if __name__ == "__main__":
    main()
