import time

import torch

from .bench import settle
from .config import Run
from .drill import Store
from .net import Mender


class Trainer:
    def __init__(self, run: Run):
        self.run, self.store = run, Store(run.core, run.seed)
        self.net = Mender(run.core, run.net)
        self.opt = torch.optim.AdamW(self.net.parameters(), run.lr, weight_decay=0.01)
        self.pace = torch.optim.lr_scheduler.LambdaLR(self.opt, lambda n: min(1.0, (n + 1) / run.warm))

    def step(self) -> torch.Tensor:
        core, lost = self.store.draw()
        guess = self.net(core, lost)
        loss = torch.nn.functional.smooth_l1_loss(guess[lost], core[lost])
        self.opt.zero_grad(set_to_none=True)
        loss.backward()
        self.opt.step()
        self.pace.step()
        return loss.detach()

    def fit(self) -> float:
        total = torch.zeros(())
        for n in range(1, self.run.steps + 1):
            loss = self.step()
            total += loss
            if n % self.run.say_every == 0:
                print(f"slice loss {total.item() / self.run.say_every:.4f} after {n}", flush=True)
                total.zero_()
        return loss.item()


if __name__ == "__main__":
    run = Run()
    settle(run.seed)
    trainer = Trainer(run)
    began = time.perf_counter()
    loss = trainer.fit()
    print(f"{run.steps} steps in {time.perf_counter() - began:.3f} s, loss {loss:.5f}")
