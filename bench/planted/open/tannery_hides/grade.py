import os
import tempfile
import time

import torch
from torch.nn.functional import mse_loss
from torch.utils.data import BatchSampler, DataLoader, RandomSampler

from callbacks import Average, LineLog, Saver
from grader import Grader
from hides import Hides

CONFIG = dict(hides=16384, columns=96, groups=8, width=512, batch=384, lr=3e-4, steps=200, seed=1650)


class Trainer:
    def __init__(self, model, loader, callbacks, lr):
        self.model, self.loader, self.callbacks = model, loader, callbacks
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=lr)
        self.norm = 0.0

    def endless(self):
        while True:
            yield from self.loader

    def fit(self, steps):
        for step, (columns, price) in zip(range(steps), self.endless()):
            loss = mse_loss(self.model(columns), price)
            self.optimizer.zero_grad()
            loss.backward()
            self.norm = torch.nn.utils.clip_grad_norm_(self.model.parameters(), 5.0).item()
            self.optimizer.step()
            for callback in self.callbacks:
                callback.on_step(self, step, loss.item())
        return loss.item()


def main():
    torch.set_num_threads(1)
    torch.manual_seed(CONFIG["seed"])
    hides = Hides(CONFIG["hides"], CONFIG["columns"], CONFIG["seed"] + 1)
    order = RandomSampler(hides, generator=torch.Generator().manual_seed(CONFIG["seed"] + 2))
    loader = DataLoader(hides, sampler=BatchSampler(order, CONFIG["batch"], drop_last=True), batch_size=None, num_workers=0)
    model = Grader(CONFIG["columns"], CONFIG["groups"], CONFIG["width"])
    steps = int(os.environ.get("PLANTED_STEPS", CONFIG["steps"]))
    with tempfile.TemporaryDirectory() as folder:
        trainer = Trainer(model, loader, [LineLog(folder), Saver(folder), Average()], CONFIG["lr"])
        start = time.time()
        loss = trainer.fit(steps)
        took = time.time() - start
    print(f"{steps} steps in {took:.2f}s, loss {loss:.6f}")


if __name__ == "__main__":
    main()
